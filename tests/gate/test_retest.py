"""Wins and losses that last: what turned is drawn again under both texts, and counts while every draw says so."""

from __future__ import annotations

import pytest

from skillopt_es.events.values import Measured
from skillopt_es.gate.comparing import Known, MoreDraws, Ruling, Side
from skillopt_es.gate.noise import Draw
from skillopt_es.gate.retest import retested, standing

STEADY = Known(steady=True)


def hard(hard: float, soft: float) -> float:
    return hard


def draw(results: str) -> Draw:
    """`1` for a solved item, `0` for another, `-` for one that was not measured."""
    return {f"v{at}": Measured(float(each), float(each)) for at, each in enumerate(results) if each != "-"}


def side(*results: str, known: int = 0) -> Side:
    return Side(draws=tuple(map(draw, results)), known=known)


def win(current: Side, candidate: Side, known: Known = Known(), draws: int = 3) -> Ruling | MoreDraws:  # noqa: B008
    return retested(draws, current, candidate, hard, known, ties=False)


def loss(current: Side, candidate: Side, known: Known = Known(), draws: int = 3) -> Ruling | MoreDraws:  # noqa: B008
    return retested(draws, current, candidate, hard, known, ties=True)


def said(found: Ruling | MoreDraws) -> tuple[str, str]:
    assert isinstance(found, Ruling), found
    return found.verdict, found.reason


def test_an_item_stands_where_every_draw_of_one_text_is_above_every_draw_of_the_other() -> None:
    """One that came out both ways under either text does not; nor does one that the other text has no result of."""
    current = (draw("0010-"), draw("0110-"))
    candidate = (draw("11010"), draw("11000"))
    assert standing(current, candidate, hard) == {"v0": 1.0, "v2": -1.0}


def test_what_turned_is_drawn_again_under_both_texts() -> None:
    """And of that, in the round after, what still stands."""
    current, candidate = side("0001", known=1), side("1100")
    assert win(current, candidate) == MoreDraws(candidate=2, current=2, items=("v0", "v1", "v3"))
    current, candidate = side("0001", "0001", known=1), side("1100", "1000")
    assert said(win(current, candidate)) == ("indecisive", "gain_not_held")
    current, candidate = side("00011", "00001", known=1), side("11100", "11100")
    assert win(current, candidate) == MoreDraws(candidate=3, current=3, items=("v0", "v1", "v2", "v4"))


def test_a_round_that_one_text_has_begun_is_ended_by_the_other() -> None:
    """On the same items, whatever is left to pay for it."""
    wanted = MoreDraws(candidate=0, current=2, items=("v0", "v1"))
    assert win(side("000", known=1), side("110", "110"), Known(spare=0)) == wanted


def test_a_win_has_to_be_there_after_each_draw() -> None:
    """What it is ahead by is what stands."""
    assert said(win(side("01", known=1), side("01"))) == ("reject", "not_better")
    assert said(win(side("000", "000", "000", known=1), side("110", "110", "010"))) == ("accept", "gain_held")
    assert said(win(side("001", "001", "001", known=1), side("110", "110", "100"))) == ("indecisive", "gain_not_held")


def test_a_loss_has_to_be_there_after_each_draw() -> None:
    """A tie is taken at once."""
    assert said(loss(side("01", known=1), side("10"))) == ("accept", "not_worse")
    assert loss(side("11", known=1), side("01")) == MoreDraws(candidate=2, current=2, items=("v0",))
    assert said(loss(side("11", "01", known=1), side("01", "01"))) == ("accept", "loss_not_held")
    assert said(loss(side("11", "11", "11", known=1), side("01", "01", "01"))) == ("reject", "worse")


def test_earlier_draws_of_the_current_text_count_and_are_no_fresh_ones() -> None:
    """An item of which they say both is out from the beginning."""
    current = side("001", "101", known=2)
    assert said(win(current, side("101"))) == ("reject", "not_better")
    assert win(current, side("111")) == MoreDraws(candidate=2, current=3, items=("v1",))


@pytest.mark.parametrize("known", [STEADY, Known(steady=True, spare=0)])
def test_where_nothing_ever_varied_one_draw_decides(known: Known) -> None:
    """As by a rule that draws once."""
    assert said(win(side("00", known=1), side("10"), known)) == ("accept", "better")
    assert said(loss(side("11", known=1), side("10"), known)) == ("reject", "worse")


def test_where_nobody_can_pay_for_more_the_candidate_is_not_taken() -> None:
    """Each of the items costs two results."""
    one = Known(spare=1)
    assert said(win(side("00", known=1), side("10"), one)) == ("indecisive", "gain_not_held")
    assert said(loss(side("11", known=1), side("10"), one)) == ("reject", "worse")
    assert isinstance(win(side("00", known=1), side("10"), Known(spare=2)), MoreDraws)


def test_what_coins_cannot_make_is_not_drawn_again() -> None:
    """Nine wins are three standard deviations of nine coins; for a loss two are enough, which are four items."""
    assert isinstance(win(side("0" * 8, known=1), side("1" * 8)), MoreDraws)
    assert said(win(side("0" * 9, known=1), side("1" * 9))) == ("accept", "better")
    assert isinstance(loss(side("1" * 3, known=1), side("0" * 3)), MoreDraws)
    assert said(loss(side("1" * 4, known=1), side("0" * 4))) == ("reject", "worse")


def test_items_of_one_family_are_one_coin() -> None:
    """They may turn together."""
    families = {f"v{at}": f"f{at // 3}" for at in range(9)}
    assert isinstance(win(side("0" * 9, known=1), side("1" * 9), Known(families=families)), MoreDraws)


def test_the_ruling_names_what_was_drawn_again_and_counts_as_won_and_lost_what_stands() -> None:
    found = win(side("0001", "0101", "0101", known=1), side("1110", "1110", "1110"))
    assert isinstance(found, Ruling)
    assert (found.verdict, found.again) == ("accept", ("v0", "v1", "v2", "v3"))
    assert (found.comparison.won, found.comparison.lost) == (("v0", "v2"), ("v3",))
    assert found.comparison.error is None
