"""The alignment of two texts: which lines survive, in order, the same at any time and for any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import SameLines
from skillopt_es.skill.alignment import align, lines_of

LINES = st.lists(st.sampled_from(["", "- a", "- b", "- c", "# d", "  ", "text"]), max_size=25)
FEW = st.lists(st.sampled_from("ab"), max_size=12)
TEXTS = LINES.map("\n".join) | FEW.map("\n".join) | st.text(max_size=40)


@given(TEXTS, TEXTS)
def test_runs_rise_and_hold_equal_lines(before: str, after: str) -> None:
    """Every run is a stretch of both texts, after the one before it on both sides."""
    old, new = lines_of(before), lines_of(after)
    old_place = new_place = 0
    for run in align(before, after):
        assert run.length > 0
        assert run.old_start >= old_place
        assert run.new_start >= new_place
        old_place, new_place = run.old_start + run.length, run.new_start + run.length
        assert old[run.old_start : old_place] == new[run.new_start : new_place]
    assert old_place <= len(old)
    assert new_place <= len(new)


@given(TEXTS, TEXTS)
def test_kept_lines_and_new_ones_are_the_new_text(before: str, after: str) -> None:
    """What is recorded of a rewrite, and the lines that it does not keep, give the text again."""
    old, new = lines_of(before), lines_of(after)
    runs = align(before, after)
    kept = {run.new_start + at for run in runs for at in range(run.length)}
    own = iter([line for number, line in enumerate(new) if number not in kept])
    starts = {run.new_start: run for run in runs}
    rebuilt: list[str] = []
    while len(rebuilt) < len(new):
        run = starts.get(len(rebuilt))
        rebuilt += [next(own)] if run is None else old[run.old_start : run.old_start + run.length]
    assert rebuilt == new


@given(TEXTS)
def test_a_text_keeps_all_of_itself(text: str) -> None:
    """In one run; an empty text has none."""
    count = len(lines_of(text))
    assert align(text, text) == ((SameLines(0, 0, count),) if count else ())


@given(LINES, LINES, LINES)
def test_lines_put_into_a_text_leave_its_others(head: list[str], middle: list[str], tail: list[str]) -> None:
    """An insertion keeps everything."""
    before, after = "\n".join([*head, "§", *tail]), "\n".join([*head, "§", *middle, *tail])
    assert sum(run.length for run in align(before, after)) == len(lines_of(before))


def test_lines_that_stand_once_decide_where_blank_lines_belong() -> None:
    """A section that moved up past a new one keeps its own lines together."""
    before = "# A\n\n- one\n\n# B\n\n- two\n"
    after = "# New\n\n- three\n\n# B\n\n- two\n\n- four\n"
    assert SameLines(3, 3, 4) in align(before, after)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("u - - -", "- - - u", [(0, 3, 1)]),
        ("b a", "a a b", [(0, 2, 1)]),
        ("a a b", "b a", [(2, 0, 1)]),
        ("a b", "b a", [(1, 0, 1)]),
        ("d a h g b a f g i", "g i e b d e b c h", [(0, 4, 1), (2, 8, 1)]),
    ],
    ids=["against several", "not once in the new", "not once in the old", "one of two", "two of several"],
)
def test_a_line_that_stands_once_on_both_sides_decides(
    before: str, after: str, kept: list[tuple[int, int, int]]
) -> None:
    """Rather than lines that stand often, on one side or on both; where only one of two can be kept, the later one."""
    runs = align(before.replace(" ", "\n"), after.replace(" ", "\n"))
    assert list(runs) == [SameLines(*each) for each in kept]


@given(st.permutations(range(9)), st.integers(0, 9), st.integers(0, 9))
def test_of_lines_that_stand_once_as_many_are_kept_as_can_be(order: list[int], start: int, end: int) -> None:
    """In order: as many as the longest rising part of their numbers has."""
    moved = order[start:] + order[:end]
    moved = list(dict.fromkeys(moved))
    longest = [0] * (len(moved) + 1)
    for at, number in enumerate(moved):
        longest[at] = 1 + max((longest[past] for past in range(at) if moved[past] < number), default=0)
    runs = align("\n".join(map(str, range(9))), "\n".join(map(str, moved)))
    assert sum(run.length for run in runs) == max(longest)


def test_stretches_of_repeated_lines_are_compared_unless_they_are_very_long() -> None:
    """Wherever they stand, and however often a line stands in them."""
    head = "".join(f"line {number}\n" for number in range(2000))

    def kept(count: int) -> int:
        old, new = "a\nb\n" * count, "b\nb\na\n" * count
        return sum(run.length for run in align(f"{head}{old}", f"{head}{new}")) - 2000

    assert kept(80) >= 80
    assert kept(400) == 0


def test_the_end_of_the_last_line_does_not_matter() -> None:
    """A text without a line break at its end keeps its last line when it gets one."""
    assert align("a\nb", "a\nb\n") == (SameLines(0, 0, 2),)


def test_hostile_texts_take_no_long_time() -> None:
    """A hundred thousand equal lines on both sides."""
    began = time.monotonic()
    align("\n" * 50_000 + "x" + "\n" * 50_000, "\n" * 30_000 + "y\nx" + "\n" * 70_000)
    assert time.monotonic() - began < 5
