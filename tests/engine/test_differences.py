"""What differs is told by field, the first few, cut where it begins to differ."""

from __future__ import annotations

import pytest

from skillopt_es.engine.differences import (
    ILLEGAL,
    Difference,
    all_of,
    came_out_otherwise,
    cannot_go_on,
    mapping_differences,
    mismatch,
)
from skillopt_es.events.catalog import Recorded, SealedTestOpened, StepSkipped


def recorded(event: object) -> Recorded:
    """An event in its place in a log."""
    return Recorded(seq=7, recorded_at="2026-01-01T00:00:00Z", prev_hash="", hash="", event=event)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a is 1, but follows as 2"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1] is 2, but follows as 3"]),
        ({"a": 1}, {}, ["a is 1, but follows as absent"]),
        ({}, {"a": "x"}, ["a is absent, but follows as 'x'"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a is [1], but follows as [1, 2]"]),
    ],
)
def test_each_field_that_differs_is_named(left: dict[str, object], right: dict[str, object], said: list[str]) -> None:
    """By its way through the values."""
    assert [str(each) for each in mapping_differences(left, right)] == said


def test_a_long_text_is_shown_where_it_begins_to_differ() -> None:
    """Not at its beginning, which is the same."""
    [found] = mapping_differences({"a": "x" * 500 + "one"}, {"a": "x" * 500 + "other"})
    assert found.recorded.startswith("…'xx")
    assert found.recorded.endswith("xone'")
    assert found.derived.endswith("xother'")


def test_of_many_only_the_first_are_told() -> None:
    """Five lines say enough."""
    assert len(mapping_differences({str(n): 0 for n in range(9)}, {str(n): 1 for n in range(9)})) == 5


def test_a_mismatch_says_its_event_and_step() -> None:
    """In words, or by its fields; all but the first stand after another."""
    one = mismatch(recorded(StepSkipped(step=3, reason="nothing_to_fix")), "is not what follows")
    two = came_out_otherwise(recorded(SealedTestOpened(look=1, by="final")), (Difference("look", "1", "2"),))
    assert str(one) == "event 7 (StepSkipped) is not what follows"
    assert str(two).endswith("does not follow from the evidence: look is 1, but follows as 2")
    assert (one.step, two.step) == (3, None)
    assert [each.follow_up for each in all_of([one, two])] == [False, True]
    assert "leads to no state" in str(cannot_go_on(one_event(), ILLEGAL[0]("so")))


def one_event() -> Recorded:
    """Any event."""
    return recorded(StepSkipped(step=1, reason="nothing_to_fix"))
