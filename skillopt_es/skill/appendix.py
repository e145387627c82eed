"""
The appendix of a skill: short reminder notes between markers, which only skill-aware reflection writes.

A note is one line without markers, bullets or headings. Two notes that differ in case, white space or closing signs are
the same note, and the first wording stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from skillopt_es.events.values import NoteReport, NoteStatus
from skillopt_es.skill.regions import APPENDIX_END, APPENDIX_START, clean_of_markers

HEADING = "Execution Notes Appendix"
MOST_CHARACTERS = 300  # of one note: it reminds of a rule, it does not replace one

_BLOCK = re.compile(re.escape(APPENDIX_START) + r"(.*?)" + re.escape(APPENDIX_END), re.DOTALL)
_LEAD = re.compile(r"^(?:[-*+•]\s+|#{1,6}(?:\s+|$)|\d{1,3}[.)]\s+)+")
_CLOSING = " .;:,_-"


@frozen
class Proposed:
    """A note as an analyst wrote it, and the patch that has it."""

    patch: str
    note: str


def appendix_notes(text: str) -> tuple[str, ...]:
    """The notes that a skill text has, in order, each once."""
    lines = (line for block in _BLOCK.findall(text) for line in block.split("\n"))
    return distinct(clean_note(line) for line in lines)


def with_appendix(text: str, notes: Sequence[str]) -> str:
    """The text with exactly these notes in its appendix, where that stands or else at the end; the rest as it was."""
    bullets = "".join(f"- {note}\n" for note in notes)
    block = f"{APPENDIX_START}\n## {HEADING}\n{bullets}{APPENDIX_END}"
    first, *others = _outside(text)
    before = _without_stray_markers(first)
    if others:
        return f"{before}{block}{_without_stray_markers(''.join(others))}"
    return f"{before.rstrip()}\n\n{block}\n" if before.strip() else f"{block}\n"


def _outside(text: str) -> list[str]:
    """What stands before, between and after the blocks."""
    ends = [0, *(match.end() for match in _BLOCK.finditer(text))]
    starts = [*(match.start() for match in _BLOCK.finditer(text)), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def _without_stray_markers(text: str) -> str:
    while APPENDIX_START in text or APPENDIX_END in text:
        text = text.replace(APPENDIX_START, "").replace(APPENDIX_END, "")
    return text


def clean_note(text: str) -> str:
    """The note as one line, without markers and without what would make it a bullet or a heading."""
    previous = None
    # What is taken away may have hidden another mark before it.
    while previous != text:
        previous = text
        text = _LEAD.sub("", " ".join(clean_of_markers(text).split()))
    return text


def note_key(note: str) -> str:
    """What two wordings of the same note have in common."""
    return " ".join(note.split()).rstrip(_CLOSING).casefold()


def says_something(note: str) -> bool:
    """Whether a note has a letter or a digit and is not just the appendix's own heading."""
    return any(map(str.isalnum, note)) and note_key(note) != note_key(HEADING)


def distinct(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes that say something, each in its first wording."""
    found: dict[str, str] = {}
    for note in notes:
        if says_something(note):
            found.setdefault(note_key(note), note)
    return tuple(found.values())


def _nothing(note: str) -> str:
    return ""


def extended(
    existing: Sequence[str], proposed: Iterable[Proposed], *, most: int, leak: Callable[[str], str] = _nothing
) -> tuple[tuple[str, ...], tuple[NoteReport, ...]]:
    """
    The notes after the new ones have joined, at most so many in all, and what became of each that was proposed.

    `leak` says what a note copies of an item, which no note may.
    """
    notes = list(existing)
    keys = {note_key(note) for note in existing}
    reports = []
    for each in proposed:
        note = clean_note(each.note)
        status = _status(note, keys, room=len(notes) < most)
        copied = leak(note) if status == "added" else ""
        if copied:
            status = "refused_leak"
        if status == "added":
            notes.append(note)
            keys.add(note_key(note))
        reports.append(NoteReport(each.patch, note if status == "added" else each.note, status, copied))
    return tuple(notes), tuple(reports)


def _status(note: str, keys: set[str], *, room: bool) -> NoteStatus:
    if not says_something(note):
        return "skipped_empty"
    if len(note) > MOST_CHARACTERS:
        return "skipped_too_long"
    if note_key(note) in keys:
        return "skipped_already_there"
    return "added" if room else "skipped_appendix_full"
