"""
Reminder notes: what analysts are asked for, and the way of their answers to the appendix of a skill.

With skill-aware reflection an analyst tells a defect of the skill from a lapse. A defect becomes an edit; a lapse,
where the skill was right and the agent did not follow it, becomes a reminder note. Off, the question is the one without
it, character for character. Too many notes are said again in fewer by the optimizer; where it does not, they stay.

In the order `measured` a step's notes go into its candidate, so that the gate measures what it takes. In the order
`after_verdict`, SkillOpt's, they go into the current skill after the verdict, whatever it was, without being measured.
"""

from __future__ import annotations

from functools import partial

from skillopt_es.algorithms.classic.jobs import ConsolidateJob
from skillopt_es.algorithms.classic.modes import mode_of
from skillopt_es.algorithms.classic.state import ClassicState, OpenStep, StepState
from skillopt_es.algorithms.optimizer import question
from skillopt_es.config import OptimizerConfig, RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.work import Decide, Questions
from skillopt_es.events.catalog import AppendixConsolidated, AppendixExtended, AppendixWritten
from skillopt_es.events.places import Place
from skillopt_es.events.values import AppendixOrder, CallRef, PatchSource, SkillTree
from skillopt_es.gate.verdicts import kept_score
from skillopt_es.replies.notes import CONSOLIDATION_SCHEMA, ConsolidationReply, read_consolidation
from skillopt_es.skill.appendix import Proposed, appendix_notes, extended, with_appendix
from skillopt_es.skill.leaks import LeakGuard


def notes_work(config: RunConfig, step: StepState, place: Place) -> Decide | Questions | None:
    """What is still to do about the notes of a step whose analysts have all answered."""
    if step.extended is None:
        return Decide("extend_appendix") if any(patch.notes for patch in step.patches.values()) else None
    threshold = config.optimizer.skill_aware_consolidate_threshold
    many = 0 < threshold < len(step.extended.notes)
    if many and step.extended.added and step.consolidated is None:
        return Questions((ConsolidateJob(slot=place / "appendix", notes=step.extended.notes),))
    return None


def extension(step: StepState, current: SkillTree, config: RunConfig, guard: LeakGuard) -> AppendixExtended:
    """The notes of all analysts, in the order of the plan, joined to those that the skill has."""
    proposed = [Proposed(group.id, note) for group in step.planned for note in step.patches[group.id].notes]
    most = config.optimizer.skill_aware_max_notes
    notes, reports = extended(appendix_notes(current.text), proposed, most=most, leak=guard.leak)
    order: AppendixOrder = "after_verdict" if config.follows("notes_after_verdict") else "measured"
    return AppendixExtended(step=step.number, order=order, reports=reports, notes=notes)


def notes_for_candidate(step: StepState) -> tuple[str, ...]:
    """The whole appendix that the step's candidate gets; empty when it keeps the one it has."""
    return step.notes if step.extended is not None and step.extended.order == "measured" else ()


def fate_of_notes(step: StepState) -> str:
    """What becomes of the notes of a step without a candidate, in a few words; empty when there are none."""
    if step.extended is None:
        return ""
    if not step.extended.added:
        return "no reminder note is new"
    return "its reminder notes follow" if step.extended.order == "after_verdict" else "its reminder notes are dropped"


def with_notes(skill: SkillTree, notes: tuple[str, ...]) -> SkillTree:
    """The skill with these notes in its main file; unchanged when there are none."""
    return skill.with_text(with_appendix(skill.text, notes)) if notes else skill


def written(state: ClassicState, config: RunConfig) -> AppendixWritten:
    """The notes of the last step in the current skill, after the verdict."""
    skill = with_notes(state.current.skill, state.algorithm.unwritten)
    known = state.measured.get(skill.hash)
    return AppendixWritten(
        step=state.steps_done,
        previous=state.current.skill.hash,
        previous_value=state.current.value,
        skill=skill,
        notes=state.algorithm.unwritten,
        value=known.value if known else None,
        stale_from=kept_score(state.current, skill, config),
    )


MOST_NOTES = 3  # of one analyst


def asks_for_notes(optimizer: OptimizerConfig, kind: PatchSource) -> bool:
    """Whether the analysts of failures or of successes are asked for reminder notes; those who draft never are."""
    if not optimizer.use_skill_aware_reflection or mode_of(optimizer).kind.whole:
        return False
    return kind == "failure" or optimizer.skill_aware_appendix_source == "both"


def consolidate(
    job: ConsolidateJob, state: ClassicState, at: OpenStep, config: RunConfig, evidence: RecordedTexts
) -> Asking[ConsolidationReply]:
    """The shorter list, or the old one and why."""
    step, before = at.step, job.notes
    lines = [f"{number}. {note}" for number, note in enumerate(before, start=1)]
    request = question(
        config,
        slot=job.slot,
        stage="appendix",
        prompt="consolidate_notes",
        sections=(f"## Reminder notes ({len(before)})\n" + "\n".join(lines),),
        schema=CONSOLIDATION_SCHEMA,
    )
    named = partial(AppendixConsolidated, step=step.number, before=before, notes=before)

    def shorter(reply: ConsolidationReply, calls: tuple[CallRef, ...]) -> AppendixConsolidated:
        return named(result="consolidated", notes=reply.notes, reasoning=reply.reasoning, calls=calls)

    read = partial(read_consolidation, before=before)
    return Asking(request=request, read=read, event=shorter, none=named)
