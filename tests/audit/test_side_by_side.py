"""Runs beside each other: how often runs that are equal are told apart."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from skillopt_es.audit.side_by_side import Side, against_first
from skillopt_es.events.values import Measured, Score
from skillopt_es.presenting.sides import first_words
from skillopt_es.projections.intervals import LEVEL

RUNS, ITEMS, TRIALS = 8, 40, 200


def ended(name: str, passed: list[bool] | None) -> Side:
    """A run whose best skill passed these test items."""
    results = {f"x{at}": (Measured(float(each), float(each)),) for at, each in enumerate(passed or [])}
    share = sum(passed) / len(passed) if passed else 0.0
    score = None if passed is None else Score(hard=share, soft=share, measured=len(passed))
    return Side(
        name=name, folder=Path(name), status="completed", forked=None, metric="hard", step=1, steps=1, accepted=0,
        rejected=0, indecisive=0, skipped=0, unknown=0, baseline=None, best=None, value=None, over={}, chosen=False,
        test_initial=None, test_best=score, test_final=None, spent=None, there=None, seconds=None, tested=results,
    )  # fmt: skip


@pytest.mark.parametrize("leader_first", [False, True], ids=["as named", "the best first"])
def test_equal_runs_are_seldom_told_apart(leader_first: bool) -> None:
    """Eight runs whose best skills are equally good; without correction up to a third of the tables would be wrong."""
    rng, wrong = random.Random(17), 0
    for _ in range(TRIALS):
        sides = [ended(f"r{at}", [rng.random() < 0.6 for _ in range(ITEMS)]) for at in range(RUNS)]
        if leader_first:
            sides.sort(key=lambda each: each.test_best.hard if each.test_best is not None else 0.0, reverse=True)
        wrong += any(each is not None and not each.within_noise for each in against_first(sides).values())
    assert wrong / TRIALS <= LEVEL


def test_a_leader_that_is_named_first_stands_for_all_pairs() -> None:
    """A run that is named first and does not lead was not picked for its score."""
    good, bad = [True] * 20, [False] * 10 + [True] * 10
    sides = {"good": ended("good", good), "bad": ended("bad", bad), "bad2": ended("bad2", bad)}
    leading = against_first([sides["good"], sides["bad"], sides["bad2"]])
    behind = against_first([sides["bad"], sides["good"], sides["bad2"]])
    assert {str(run): each.comparisons for run, each in leading.items() if each is not None} == {"bad": 3, "bad2": 3}
    assert {str(run): each.comparisons for run, each in behind.items() if each is not None} == {"good": 2, "bad2": 2}
    assert "all pairs, because the first leads: 3 comparisons" in first_words(leading.values())
    assert "(Holm) for 2 comparisons" in first_words(behind.values())


def test_runs_without_a_test_are_compared_by_nothing() -> None:
    """Neither is better then."""
    assert against_first([ended("a", None), ended("b", [True])]) == {Path("b"): None}
    assert against_first([ended("a", [True])]) == {}
