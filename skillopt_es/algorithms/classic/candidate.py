"""The candidate: what becomes of the current skill under the chosen edits, or with a whole new text in its place."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.algorithms.classic.appendix import notes_for_candidate, with_notes
from skillopt_es.algorithms.classic.state import StepState, proposals_of
from skillopt_es.algorithms.steps import leaking
from skillopt_es.events.catalog import CandidateBuilt
from skillopt_es.events.values import REFUSED_LEAK, Draft, Edit, EditReport, Proposal, Rewrite, SkillTree, Suggestion
from skillopt_es.skill.alignment import align
from skillopt_es.skill.edits import SKIPPED_PINNED, apply_edits_but
from skillopt_es.skill.leaks import LeakGuard
from skillopt_es.skill.pins import lost_pins
from skillopt_es.skill.rewriting import repaired


def built_candidate(
    step: StepState, current: SkillTree, guard: LeakGuard, *, close_gaps: bool = False, pins: Sequence[str] = ()
) -> CandidateBuilt:
    """
    The chosen proposals, as edits or as a whole text, and the step's notes; either may be missing, not both.

    An edit that copies a tried item, or takes a line of `pins` away, is left out; a whole text that does leaves the
    skill as it is.
    """
    by_id = proposals_of(step)
    chosen = [by_id[name] for name in step.ranked.chosen] if step.ranked else []
    text = _new_text(step, chosen)
    if text is None:
        edits = [each for each in chosen if isinstance(each, Edit)]
        candidate, reports = apply_edits_but(leaking(edits, guard), current, edits, close_gaps=close_gaps, pins=pins)
        reports = (*reports, *_not_rewritten(chosen))
        rewrite = None
    else:
        candidate, reports, rewrite = _rewritten(current, text, chosen, guard, pins)
    notes = notes_for_candidate(step)
    return CandidateBuilt(
        step=step.number,
        parent=current.hash,
        candidate=with_notes(candidate, notes),
        reports=reports,
        rewrite=rewrite,
        notes=len(step.extended.added) if step.extended and notes else 0,
        gaps_closed=close_gaps and text is None,
    )


def _new_text(step: StepState, chosen: Sequence[Proposal]) -> str | None:
    """The whole text that takes the skill's place; None where edits or notes do."""
    if step.rewritten is not None and step.rewritten.result == "written":
        return step.rewritten.text
    first = chosen[0] if chosen else None
    return first.text if isinstance(first, Draft) else None


def _not_rewritten(chosen: Sequence[Proposal]) -> list[EditReport]:
    """Suggestions that no rewrite came of: the candidate has the step's notes alone."""
    return [EditReport(each.id, "skipped_no_rewrite") for each in chosen if isinstance(each, Suggestion)]


def _rewritten(
    current: SkillTree, text: str, chosen: Sequence[Proposal], guard: LeakGuard, pins: Sequence[str]
) -> tuple[SkillTree, tuple[EditReport, ...], Rewrite]:
    new = repaired(current.text, text)
    same = new.text.rstrip() == current.text.rstrip()  # how a file ends is no change to evaluate
    leak = guard.leak(new.text)
    lost = next(iter(lost_pins(current, current.with_text(new.text), pins)), "")
    status = REFUSED_LEAK if leak else "skipped_no_change" if same else SKIPPED_PINNED if lost else "applied_rewrite"
    reports = tuple(EditReport(each.id, status, leak or lost) for each in chosen)
    candidate = current if same or leak or lost else current.with_text(new.text)
    return candidate, reports, Rewrite(kept=align(current.text, candidate.text), repairs=new.repairs)
