"""Reminder notes in the optimizer's replies, parsed at the edge; whether one is fit for the appendix is seen later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import Cause, Json, clean_text
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.parts import STRING, list_of, object_of, text_in
from skillopt_es.skill.appendix import MOST_CHARACTERS, clean_note, distinct

KEY = "appendix_notes"
CONSOLIDATION_SCHEMA = object_of(reasoning=STRING, **{KEY: list_of(STRING)})
_NOT_TEXTS = Unusable(f"`{KEY}` must be a list of texts (an empty one if there is nothing to remind of)")


@frozen(kw_only=True)
class ConsolidationReply:
    """A shorter list of notes."""

    notes: tuple[str, ...]
    reasoning: str


def read_notes(found: Mapping[str, Json], *, most: int) -> tuple[str, ...] | Unusable:
    """The first so many notes of a reply that are not blank; a missing list is an empty one."""
    rows = found.get(KEY)
    if rows is None:
        return ()
    if isinstance(rows, str):
        rows = [rows]
    if not isinstance(rows, list):
        return _NOT_TEXTS
    notes = []
    for row in rows:
        text = _text_of(row)
        if text is None:
            return _NOT_TEXTS
        if text:
            notes.append(text)
    return tuple(notes[:most])


def _text_of(row: Json) -> str | None:
    """A note's text, also from an object that holds it as `note` or `content`; None for anything else."""
    value = row.get("note", row.get("content")) if isinstance(row, dict) else row
    return clean_text(value).strip() if isinstance(value, str) else None


def cause_of(row: Mapping[str, Json]) -> Cause:
    """Whether a finding is a defect of the skill or a lapse of the agent; empty when it says neither."""
    said = str(row.get("cause", "")).casefold()
    if "lapse" in said:
        return "lapse"
    return "defect" if "defect" in said else ""


def read_consolidation(text: str, *, before: Sequence[str]) -> ConsolidationReply | Unusable:
    """A consolidation's reply: at least one note and fewer than before, each fit for the appendix."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    said = read_notes(found, most=len(before))
    if isinstance(said, Unusable):
        return said
    notes = distinct(map(clean_note, said))
    if not 0 < len(notes) < len(before):
        return Unusable(f"`{KEY}` must have fewer notes than the {len(before)} that there are, but at least one")
    if any(len(note) > MOST_CHARACTERS for note in notes):
        return Unusable(f"a note must have at most {MOST_CHARACTERS} characters")
    return ConsolidationReply(notes=notes, reasoning=text_in(found, "reasoning"))
