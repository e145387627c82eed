"""The candidate: what becomes of the current skill under the chosen edits, or with a whole new text in its place."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.events.catalog import CandidateBuilt
from skillopt_es.events.values import Draft, Edit, EditReport, Proposal, Rewrite, SkillTree
from skillopt_es.projections.trainer import StepState, proposals_of
from skillopt_es.skill.alignment import align
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.rewriting import repaired


def built_candidate(step: StepState, current: SkillTree) -> CandidateBuilt:
    """The candidate of a step whose proposals were chosen and, where the mode wants it, rewritten into a text."""
    assert step.ranked is not None
    by_id = proposals_of(step)
    chosen = [by_id[name] for name in step.ranked.chosen]
    text = _new_text(step, chosen)
    if text is not None:
        return _rewritten(step.number, current, text, chosen)
    candidate, reports = apply_edits(current, [each for each in chosen if isinstance(each, Edit)])
    return CandidateBuilt(step=step.number, parent=current.hash, candidate=candidate, reports=reports)


def _new_text(step: StepState, chosen: Sequence[Proposal]) -> str | None:
    """The whole text that takes the skill's place; None where edits do."""
    if step.rewritten is not None:
        return step.rewritten.text
    first = chosen[0]
    return first.text if isinstance(first, Draft) else None


def _rewritten(step: int, current: SkillTree, text: str, chosen: Sequence[Proposal]) -> CandidateBuilt:
    new = repaired(current.text, text)
    candidate = current.with_text(new.text)
    status = "skipped_no_change" if candidate.hash == current.hash else "applied_rewrite"
    return CandidateBuilt(
        step=step,
        parent=current.hash,
        candidate=candidate,
        reports=tuple(EditReport(each.id, status) for each in chosen),
        rewrite=Rewrite(kept=align(current.text, new.text), repairs=new.repairs),
    )
