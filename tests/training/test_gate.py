"""The gate over what was measured."""

from __future__ import annotations

import pytest

from skillopt_es.events.values import Measured, Score
from skillopt_es.projections.state import Measurement
from skillopt_es.training import gate


@pytest.mark.parametrize(
    ("value", "current", "best", "action"),
    [
        (0.6, 0.5, True, "accept_new_best"),
        (0.6, 0.5, False, "accept"),
        (0.5, 0.5, False, "reject"),
        (0.4, 0.5, True, "reject"),
        (0.1, 0.0, True, "accept_new_best"),
        (0.0, 0.0, False, "reject"),
        (-0.1, -0.5, True, "accept_new_best"),
    ],
)
def test_a_candidate_must_be_strictly_better(value: float, current: float, best: bool, action: str) -> None:
    """Than the current skill to be taken, than the best to be the best; 0 is a score like any other."""
    assert gate.verdict(value, current, best, use_gate=True) == action
    assert gate.verdict(value, current, best, use_gate=False) == "force_accept"


def test_candidate_and_current_are_compared_on_the_same_items() -> None:
    """An item that one of them was not measured on counts for neither."""
    hard = Measured(1, 1)
    soft = Measured(0, 0)
    candidate = Measurement(score=Score(1, 1, 2, 1), value=1, place="g", items={"a": hard, "b": hard})
    current = Measurement(score=Score(0.5, 0.5, 2, 1), value=0.5, place="b", items={"b": hard, "c": soft})
    count, left, right = gate.on_common_items(candidate, current)
    assert (count, left.hard, right.hard) == (1, 1.0, 1.0)
