"""A step's reminder notes in an imported run: who proposed them, and what the appendix has afterwards."""

from __future__ import annotations

from skillopt_es.events.catalog import AppendixConsolidated, AppendixExtended, AppendixWritten
from skillopt_es.events.values import AppendixOrder
from skillopt_es.interchange.builder import Builder
from skillopt_es.interchange.original import Step
from skillopt_es.interchange.original_edits import noted_by_original
from skillopt_es.skill.appendix import Proposed, appendix_notes, extended, with_appendix


def import_notes(build: Builder, step: Step, place: str) -> None:
    """Adds what became of the notes that the step's patches have; a gap where the files do not agree."""
    if step.notes is None:
        return
    opened = build.state.program.step
    assert opened is not None
    proposed = [Proposed(patch.patch, note) for patch in opened.patches.values() for note in patch.notes]
    before, most = (
        appendix_notes(build.current.skill.text),
        build.original.config.get("optimizer.skill_aware_max_notes"),
    )
    room = most if isinstance(most, int) else len(before) + len(proposed)
    notes, reports = extended(before, proposed, most=room)
    if notes != step.notes:
        build.gap(place, "what became of the reminder notes", "appendix_notes.json does not follow from the patches")
        return
    measured = build.original.config.get("optimizer.appendix_order") == "measured"
    order: AppendixOrder = "measured" if measured else "upstream"
    build.add(AppendixExtended(step=step.number, order=order, reports=reports, notes=notes))
    fewer = step.record.notes_consolidated if step.record else None
    if fewer is not None:
        _consolidated(build, step, place, text=step.candidate if measured else step.skill, fewer=fewer)


def _consolidated(build: Builder, step: Step, place: str, *, text: str | None, fewer: int) -> None:
    """The shorter list is only in the text that it was written into."""
    assert step.notes is not None
    notes = () if text is None else appendix_notes(text)
    if len(notes) != fewer:
        build.gap(place, "the shorter list of reminder notes", "none of the texts in the folder has so many")
        return
    build.add(AppendixConsolidated(step=step.number, result="consolidated", before=step.notes, notes=notes))


def write_notes(build: Builder, step: Step, *, kept: bool) -> None:
    """Adds that the notes went into the current skill; `kept` says whether the step's own skill file has that text."""
    notes = build.state.program.unwritten
    if not notes:
        return
    written = noted_by_original if build.of_original else with_appendix
    text = written(build.current.skill.text, notes)
    if kept and step.skill is not None and appendix_notes(step.skill) == notes:
        text = step.skill
    skill = build.tree(text)
    known = build.state.measured.get(skill.hash)
    build.add(
        AppendixWritten(
            step=step.number,
            previous=build.current.skill.hash,
            previous_value=build.current.value,
            skill=skill,
            notes=notes,
            value=known.value if known else None,
        )
    )
