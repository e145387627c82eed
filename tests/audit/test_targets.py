"""The words of `diff` name two sides, or they do not."""

from __future__ import annotations

import pytest

from skillopt_es.audit.targets import Side, sides_of, skills_of


@pytest.mark.parametrize(
    ("words", "sides"),
    [
        ("one other", (Side("one", None), Side("other", None))),
        ("step 2", (Side(None, ("step", 2)), Side(None, None))),
        ("one step 2", (Side("one", ("step", 2)), Side("one", None))),
        ("step 2 epoch 1", (Side(None, ("step", 2)), Side(None, ("epoch", 1)))),
        ("one step 2 seq 9", (Side("one", ("step", 2)), Side("one", ("seq", 9)))),
        ("one step 2 other step 3", (Side("one", ("step", 2)), Side("other", ("step", 3)))),
        ("", None),
        ("one", None),
        ("step 1 step 2 step 3", None),
    ],
)
def test_two_sides_are_understood(words: str, sides: tuple[Side, Side] | None) -> None:
    """Runs, moments of one run, and moments of two."""
    assert sides_of(words.split()) == sides


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("initial best", (None, "initial", "best")),
        ("one current best", ("one", "current", "best")),
        ("one best", None),
        ("best", None),
        ("one best step 2", None),
    ],
)
def test_two_skills_are_understood(words: str, named: object) -> None:
    """By their names, of the newest run or of one."""
    assert skills_of(words.split()) == named
