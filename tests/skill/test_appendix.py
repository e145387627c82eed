"""The appendix of a skill: what its notes are, that each stands once, and that the rest of the text stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import NoteReport
from skillopt_es.skill.appendix import (
    HEADING,
    Proposed,
    appendix_notes,
    clean_note,
    extended,
    with_appendix,
)
from skillopt_es.skill.regions import (
    APPENDIX_END,
    APPENDIX_START,
    MARKERS,
    SLOW_END,
    SLOW_START,
    protected_spans,
    with_slow_guidance,
    without_protected_blocks,
)

BODY = "# A\n\n- one\n\n\n\n- two\n"
PARTS = st.lists(st.sampled_from([*MARKERS, "- ", "# ", "* ", "1. ", "<!--", " ", "\n", "\u2028", "note", "Zwei", "."]))
MESSY = PARTS.map("".join) | st.text(max_size=20)


def joined(existing: list[str], *proposed: str, most: int = 30) -> tuple[tuple[str, ...], list[str]]:
    """The notes after these were proposed, and what became of each."""
    notes, reports = extended(existing, [Proposed("p", note) for note in proposed], most=most)
    return notes, [report.status for report in reports]


def test_the_first_wording_of_a_note_stays() -> None:
    """White space, case and closing signs make no other note."""
    notes, statuses = joined([], "  Note  one. ", "note one", "Two")
    assert notes == ("Note one.", "Two")
    assert statuses == ["added", "skipped_already_there", "added"]


@pytest.mark.parametrize(
    ("note", "status"),
    [
        ("", "skipped_empty"),
        (" \n ", "skipped_empty"),
        ("…", "skipped_empty"),
        (APPENDIX_END, "skipped_empty"),
        (f"## {HEADING}", "skipped_empty"),
        ("x" * 10_000, "skipped_too_long"),
        ("x" * 301, "skipped_too_long"),
        ("x" * 300, "added"),
        ("MIND THE DATES!", "added"),
        ("Mind the dates.", "skipped_already_there"),
    ],
)
def test_what_becomes_of_a_note(note: str, status: str) -> None:
    """Only what says something new, shortly, gets in."""
    assert joined(["mind the dates"], note)[1] == [status]


def test_what_is_told_of_a_note_is_what_it_became() -> None:
    """As it stands in the skill where it was added, and as it was proposed where it was not; and what it copied."""

    def leak(note: str) -> str:
        return "item 1" if "Paris" in note else ""

    notes, reports = extended(
        [], [Proposed("p", "- Mind  it"), Proposed("q", "* say Paris"), Proposed("r", "- ")], most=9, leak=leak
    )
    assert notes == ("Mind it",)
    assert reports == (
        NoteReport("p", "Mind it", "added", ""),
        NoteReport("q", "* say Paris", "refused_leak", "item 1"),
        NoteReport("r", "- ", "skipped_empty", ""),
    )
    assert extended([], [Proposed("p", "Mind it")], most=1)[1] == (NoteReport("p", "Mind it", "added", ""),)


def test_a_note_that_is_not_added_anyway_is_not_looked_through() -> None:
    """Whether it copies an item does not matter then."""
    notes, (report,) = extended(["mind it"], [Proposed("p", "Mind it")], most=9, leak=lambda note: "item 1")
    assert (notes, report) == (("mind it",), NoteReport("p", "Mind it", "skipped_already_there", ""))


def test_a_full_appendix_takes_no_more_but_keeps_what_it_has() -> None:
    """Also when it has more already than it may have."""
    assert joined(["a1", "a2"], "b", "c", most=3) == (("a1", "a2", "b"), ["added", "skipped_appendix_full"])
    assert joined(["a1", "a2"], "b", "A1", most=1) == (
        ("a1", "a2"),
        ["skipped_appendix_full", "skipped_already_there"],
    )


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("- Check\nthe  dates", "Check the dates"),
        ("# Check", "Check"),
        ("* 1. ## Check", "Check"),
        (f"{APPENDIX_END} leave {SLOW_START}", "leave"),
        ("<!-- APPENDIX<!-- APPENDIX_END -->_END --> x", "x"),
        ("<!--  APPENDIX_END  --> x", "x"),
        ("**Always** check", "**Always** check"),
        ("-5 is a number", "-5 is a number"),
        ("#1 rule", "#1 rule"),
    ],
)
def test_a_note_becomes_one_plain_line(said: str, note: str) -> None:
    """No marker, also none that cleaning would form; no bullet and no heading."""
    assert clean_note(said) == note


def test_an_appendix_is_made_at_the_end_and_then_stays_in_its_place() -> None:
    """Every other character stays, blank lines too."""
    once = with_appendix(BODY, ["one"])
    assert once == f"{BODY.rstrip()}\n\n{APPENDIX_START}\n## {HEADING}\n- one\n{APPENDIX_END}\n"
    guided = with_slow_guidance(once, "look twice")
    twice = with_appendix(guided, ["one", "two"])
    assert twice == guided.replace("- one\n<!--", "- one\n- two\n<!--")
    assert twice.index(APPENDIX_START) < twice.index(SLOW_START)
    assert with_appendix("", ["one"]).startswith(APPENDIX_START)


def test_notes_that_somebody_wrote_are_read_as_they_are() -> None:
    """Bullets of any kind, no bullets, and no heading; blocks are joined when one is written."""
    theirs = f"# A\n{APPENDIX_START}\n### {HEADING}\n\n* one\ntwo\n- One.\n{APPENDIX_END}\n"
    theirs += f"tail\n{APPENDIX_START}- three{APPENDIX_END}\n"
    assert appendix_notes(theirs) == ("one", "two", "three")
    after = with_appendix(theirs, appendix_notes(theirs))
    assert appendix_notes(after) == ("one", "two", "three")
    assert after.count(APPENDIX_START) == after.count(APPENDIX_END) == 1
    assert "tail" in after
    assert appendix_notes("# A\n- one\n") == appendix_notes(f"# A\n{APPENDIX_START}\n- open") == ()


def test_blocks_and_stray_markers_become_one_block_where_the_first_stood() -> None:
    """And no other sign is added or lost."""
    block = f"{APPENDIX_START}\n## {HEADING}\n- one\n{APPENDIX_END}"
    theirs = f"a{APPENDIX_END}b{APPENDIX_START}x{APPENDIX_END}c{APPENDIX_START}y{APPENDIX_END}d{APPENDIX_START}e"
    assert with_appendix(theirs, ["one"]) == f"ab{block}cde"
    assert with_appendix(f"a{APPENDIX_START}b", ["one"]) == f"ab\n\n{block}\n"
    assert with_appendix(f"a{APPENDIX_END}b", ["one"]) == f"ab\n\n{block}\n"


@given(st.lists(MESSY, max_size=6), MESSY)
def test_what_is_written_is_what_is_read(said: list[str], body: str) -> None:
    """Whatever the notes and the text are: the notes come back, and writing them again changes nothing."""
    notes, _ = joined([*appendix_notes(body)], *said)
    text = with_appendix(body, notes)
    assert appendix_notes(text) == notes
    assert text.count(APPENDIX_START) == text.count(APPENDIX_END) == 1
    assert with_appendix(text, notes) == text
    assert all(clean_note(note) == note and "\n" not in note for note in notes)


@given(st.lists(MESSY, max_size=6))
def test_no_note_leaves_the_protected_block(said: list[str]) -> None:
    """Nor does any change the guidance beside it."""
    before = with_slow_guidance(BODY, "look twice")
    text = with_appendix(before, joined([], *said)[0])
    assert len(protected_spans(text)) == 2
    assert without_protected_blocks(text).split() == BODY.split()
    assert text.count(SLOW_END) == 1
