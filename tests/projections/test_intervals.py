"""Intervals and tests of differences: published values, and what holds for any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Failed, Measured, NotRun
from skillopt_es.projections.intervals import (
    Paired,
    draws,
    fewest_turned,
    hard_means,
    paired,
    sign_test,
    wilson,
)


@pytest.mark.parametrize(
    ("passed", "items", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # these four: Newcombe 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
    ],
)
def test_wilsons_interval_has_the_published_values(passed: int, items: int, low: float, high: float) -> None:
    """To four digits."""
    found = wilson(passed / items, items)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_nothing_measured_has_no_interval() -> None:
    """Not one from 0 to 1."""
    assert wilson(0.0, 0) is None


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_an_interval_holds_its_score_and_stays_between_0_and_1(mean: float, items: int) -> None:
    """And is narrower with four times the items."""
    one, more = wilson(mean, items), wilson(mean, 4 * items)
    assert one is not None
    assert more is not None
    assert 0 <= one.low <= mean + 1e-12
    assert mean - 1e-12 <= one.high <= 1
    assert more.high - more.low < one.high - one.low


@pytest.mark.parametrize(
    ("won", "lost", "probability"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (10, 2, 0.03857421875),
        (9, 1, 0.021484375),
        (7, 7, 1.0),
        (121, 59, 0.0000043),  # an example of McNemar's test in textbooks (exact)
    ],
)
def test_the_sign_test_is_mcnemars_exact_test(won: int, lost: int, probability: float) -> None:
    """Two-sided, from the binomial distribution."""
    assert sign_test(won, lost) == pytest.approx(probability, abs=1e-6)


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_sign_test_knows_no_direction(won: int, lost: int) -> None:
    """And is a probability."""
    assert sign_test(won, lost) == sign_test(lost, won)
    assert 0 < sign_test(won, lost) <= 1


def test_six_items_have_to_turn_before_it_is_more_than_noise() -> None:
    """Five of five would turn by chance alone once in sixteen."""
    assert fewest_turned() == 6
    assert Paired(items=12, won=tuple("abcde"), lost=()).within_noise
    assert not Paired(items=12, won=tuple("abcdef"), lost=()).within_noise
    assert not Paired(items=5, won=tuple("abcde"), lost=()).resolvable


def test_pairs_are_joined_by_item() -> None:
    """Whatever their order; what was measured under one text only is left out, and rounding turns nothing."""
    found = paired({"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.1 + 0.2}, {"d": 0.3, "c": 0.0, "a": 1.0, "e": 1.0})
    assert found == Paired(items=3, won=("a",), lost=("c",))
    assert paired({"a": 1.0}, {"b": 1.0}) is None


def test_draws_of_an_item_are_one_item() -> None:
    """Its score is their mean; what was not measured is neither a draw nor a 0."""
    results = {
        "a": (Measured(1.0, 1.0), Measured(0.0, 0.5)),
        "b": (Failed("sandbox", "broken"), Measured(1.0, 1.0)),
        "c": (NotRun("certain without it"),),
    }
    assert hard_means(results) == {"a": 0.5, "b": 1.0}
    assert draws(results) == (1, 2)
    assert draws({}) == (0, 0)
