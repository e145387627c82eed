"""Bets gain nothing on average where nothing is better, whatever the numbers, and seldom come to enough."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt_es.events.values import Bets
from skillopt_es.gate.bets import (
    ENOUGH,
    ERROR,
    FRACTIONS,
    Purse,
    bet_on,
    least_gain,
    most_wealth,
    next_stake,
    type_gains,
    wealth,
)

GAINS = (-1.0, -0.5, 0.0, 0.5, 1.0)


def mean_wealth(stake: float, chances: dict[float, float], bets: int, least: float = 0.0) -> float:
    """The mean of what so many bets come to, over every way in which they can go."""
    total = 0.0
    for row in product(chances, repeat=bets):
        total += math.prod(chances[gain] for gain in row) * wealth(stake, row, least)
    return total


@st.composite
def no_better(draw: st.DrawFn) -> dict[float, float]:
    """Chances of gains with a mean of exactly 0: each gain as likely as its opposite."""
    half = draw(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any))
    weights = {0.0: 2 * half[0], 0.5: half[1], -0.5: half[1], 1.0: half[2], -1.0: half[2]}
    return {gain: weight / sum(weights.values()) for gain, weight in weights.items()}


def test_the_shares_are_the_whole_stake() -> None:
    """And no fraction can lose more than it has."""
    assert math.isclose(sum(FRACTIONS.values()), 1)
    assert all(0 <= fraction < 1 for fraction in FRACTIONS)


@given(no_better(), st.integers(0, 3), st.floats(0.01, 1))
@settings(max_examples=20)
def test_where_nothing_is_better_the_mean_stays_as_it_is(chances: dict[float, float], bets: int, stake: float) -> None:
    """By every way in which up to three bets can go."""
    assert mean_wealth(stake, chances, bets) == pytest.approx(stake)


@given(no_better(), st.floats(0, 0.9))
def test_a_bound_is_bet_on_in_the_same_way(chances: dict[float, float], least: float) -> None:
    """Gains whose mean is the bound prove no more than it."""
    shifted = {gain * (1 - least) + least: chance for gain, chance in chances.items()}
    assert mean_wealth(1.0, shifted, 2, least) == pytest.approx(1.0)
    assert all(wealth(1.0, [gain, -1.0], least) >= 0 for gain in GAINS)


def by_counts(won: int, lost: int) -> float:
    """What a stake of 1 comes to by so many items won and lost."""
    return sum(share * (1 + part) ** won * (1 - part) ** lost for part, share in FRACTIONS.items())


def chance_of_enough(up: float, down: float, bets: int) -> float:
    """The chance that bets on passes and failures ever come to enough: exact, by how many were won and lost so far."""
    reached, ways = 0.0, {(0, 0): 1.0}
    for _ in range(bets):
        following: defaultdict[tuple[int, int], float] = defaultdict(float)
        for (won, lost), chance in ways.items():
            following[won + 1, lost] += chance * up
            following[won, lost + 1] += chance * down
            following[won, lost] += chance * (1 - up - down)
        done = [way for way in following if by_counts(*way) >= ENOUGH]
        reached += sum(following.pop(way) for way in done)
        ways = following
    return reached


def test_counts_say_it_all() -> None:
    """Where items pass or fail, an order does not matter."""
    assert by_counts(3, 2) == pytest.approx(wealth(1.0, [1.0, -1.0, 1.0, -1.0, 1.0]))


@pytest.mark.parametrize("turned", [0.1, 1.0])
def test_an_edit_of_no_effect_is_certified_in_one_case_of_twenty_at_most(turned: float) -> None:
    """However often one looks: after each of 60 items."""
    assert 0 < chance_of_enough(turned / 2, turned / 2, 60) <= ERROR


def test_a_gain_is_seen() -> None:
    """Twelve points of a fifth that turns, on 100 items."""
    assert chance_of_enough(0.16, 0.04, 100) > 0.5


@given(st.lists(st.sampled_from(GAINS), max_size=30), st.floats(0.01, 1))
def test_who_has_enough_bets_no_further(gains: list[float], stake: float) -> None:
    """So a later loss takes nothing back; otherwise it is as if all were bet on."""
    told = bet_on(stake, (), gains)
    counts = [wealth(stake, gains[:count]) for count in range(len(gains) + 1)]
    first = next((each for each in counts if each >= ENOUGH), counts[-1])
    assert told == pytest.approx(first)


def test_a_loss_after_enough_takes_nothing_back() -> None:
    """Who has proved it stops there; the same loss before it counts."""
    enough = [1.0] * 8
    assert bet_on(1.0, (), [*enough, -1.0, -1.0]) == bet_on(1.0, (), enough) >= ENOUGH
    assert bet_on(1.0, (), [-1.0, -1.0, *enough]) < ENOUGH


def test_no_bet_can_lose_more_than_it_has() -> None:
    """Also where a gain above a high bound is bet on: a second total loss is no win."""
    assert wealth(1.0, [-1.0, -1.0], 0.9) < wealth(1.0, [-1.0], 0.9)


@given(st.lists(st.sampled_from(GAINS), max_size=12), st.randoms())
def test_what_was_bet_before_has_no_order(before: list[float], rng: object) -> None:
    """A log does not keep it, and a product of floats depends on it."""
    other = sorted(before, reverse=True)
    assert bet_on(1.0, before, (1.0, -0.5)) == bet_on(1.0, other, (1.0, -0.5))


def test_losses_are_passed_on_and_winnings_are_not() -> None:
    """What a good text has won must not certify the next one; what many bad ones lost must not be forgotten."""
    assert next_stake(None) == 1.0
    assert next_stake(Bets(stake=0.5, gains={}, wealth=15.0)) == 0.5
    assert next_stake(Bets(stake=0.5, gains={}, wealth=0.25)) == 0.25


@pytest.mark.parametrize("good", [(False, False), (True, False), (False, True, False)])
def test_a_row_of_challengers_gains_nothing_on_average(good: tuple[bool, ...]) -> None:
    """Between those that are no better there may be good ones, which win all: the mean stake never rises."""
    stakes = {1.0: 1.0}
    for wins in good:
        rows = [((1.0, 1.0), 1.0)] if wins else [(row, 1 / 9) for row in product((-1.0, 0.0, 1.0), repeat=2)]
        following: defaultdict[float, float] = defaultdict(float)
        for stake, chance in stakes.items():
            for row, likely in rows:
                after = next_stake(Bets(stake=stake, gains={}, wealth=bet_on(stake, (), row)))
                following[after] += chance * likely
        stakes = following
    assert sum(stake * chance for stake, chance in stakes.items()) < 1


def test_the_least_gain_is_below_the_mean() -> None:
    """Nothing is said where nothing is proved."""
    assert least_gain(1.0, (), [1.0] * 3) is None
    least = least_gain(1.0, (), [1.0] * 12 + [0.0] * 8)
    assert least is not None
    assert 0 <= least < 0.6
    assert least_gain(1.0, [1.0] * 12, [1.0] * 12) > 0.5  # type: ignore[operator]


def test_what_cannot_win_any_more_is_known_beforehand() -> None:
    """Seven items are too few, whatever they come to."""
    assert most_wealth(1.0, (), 7) < ENOUGH <= most_wealth(1.0, (), 8)


def test_items_of_a_type_are_one_bet() -> None:
    """Each type has the mean of its items; one without a type stands for itself."""
    gains = type_gains({"a": 1.0, "b": 0.0, "c": -1.0}, {"a": "sum", "b": "sum"})
    assert gains == {"sum": 0.5, "c": -1.0}
    assert Purse(stake=1.0).and_then(gains).gains == gains
