"""
Reminder notes: from what the analysts of a step proposed to the appendix of a skill. Pure.

In the order `measured` a step's notes go into its candidate, so that the gate measures what it takes. In the order
`upstream`, the original's, they go into the current skill after the verdict, whatever it was, without being measured.
"""

from __future__ import annotations

from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Decide, Questions
from skillopt_es.events.catalog import AppendixExtended, AppendixWritten
from skillopt_es.events.places import Place
from skillopt_es.events.values import SkillTree
from skillopt_es.gate.verdicts import kept_score
from skillopt_es.programs.classic.jobs import ConsolidateJob
from skillopt_es.programs.classic.state import ClassicState, StepState
from skillopt_es.skill.appendix import Proposed, appendix_notes, extended, with_appendix
from skillopt_es.skill.leaks import LeakGuard


def notes_task(run: RunData, step: StepState, place: Place) -> Decide | Questions | None:
    """What is still to do about the notes of a step whose analysts have all answered."""
    if step.extended is None:
        return Decide("extend_appendix") if any(patch.notes for patch in step.patches.values()) else None
    threshold = run.config.optimizer.skill_aware_consolidate_threshold
    many = 0 < threshold < len(step.extended.notes)
    if many and step.extended.added and step.consolidated is None:
        return Questions((ConsolidateJob(slot=place / "appendix"),))
    return None


def extension(step: StepState, current: SkillTree, run: RunData, guard: LeakGuard) -> AppendixExtended:
    """The notes of all analysts, in the order of the plan, joined to those that the skill has."""
    assert step.groups is not None
    proposed = [Proposed(group.id, note) for group in step.groups for note in step.patches[group.id].notes]
    optimizer = run.config.optimizer
    most = optimizer.skill_aware_max_notes
    notes, reports = extended(appendix_notes(current.text), proposed, most=most, leak=guard.leak)
    return AppendixExtended(step=step.number, order=optimizer.appendix_order, reports=reports, notes=notes)


def notes_for_candidate(step: StepState) -> tuple[str, ...]:
    """The whole appendix that the step's candidate gets; empty when it keeps the one it has."""
    return step.notes if step.extended is not None and step.extended.order == "measured" else ()


def fate_of_notes(step: StepState) -> str:
    """What becomes of the notes of a step without a candidate, in a few words; empty when there are none."""
    if step.extended is None:
        return ""
    if not step.extended.added:
        return "no reminder note is new"
    return "its reminder notes follow" if step.extended.order == "upstream" else "its reminder notes are dropped"


def with_notes(skill: SkillTree, notes: tuple[str, ...]) -> SkillTree:
    """The skill with these notes in its main file; unchanged when there are none."""
    return skill.with_text(with_appendix(skill.text, notes)) if notes else skill


def written(state: ClassicState, run: RunData) -> AppendixWritten:
    """The notes of the last step in the current skill, after the verdict."""
    assert state.current is not None
    skill = with_notes(state.current.skill, state.program.unwritten)
    known = state.measured.get(skill.hash)
    return AppendixWritten(
        step=state.steps_done,
        previous=state.current.skill.hash,
        previous_value=state.current.value,
        skill=skill,
        notes=state.program.unwritten,
        value=known.value if known else None,
        stale_from=kept_score(state.current, skill, run),
    )
