"""Two texts over their draws: means, bonuses, what turned, and the noise of drawing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Measured, Score
from skillopt_es.gate.comparing import Comparison, compare, mean_over
from skillopt_es.gate.noise import Draw


def soft(hard: float, soft: float) -> float:
    return soft


def draw(results: str) -> Draw:
    """A digit is tenths of a soft score, of which 5 and more are a hard one; `-` was not measured."""
    return {f"v{at}": Measured(float(int(each) >= 5), int(each) / 10) for at, each in enumerate(results) if each != "-"}


def compared(
    current: str, candidate: str, families: dict[str, str] | None = None, bonus: tuple[float, float] = (0.0, 0.0)
) -> Comparison:
    """The comparison of draws that are written with spaces between them."""
    left, right = (tuple(map(draw, each.split())) for each in (current, candidate))
    return compare(left, right, *bonus, soft, families or {})


def test_each_item_counts_once_however_often_it_was_measured() -> None:
    """Both scores over the items that were measured under both texts."""
    found = compared("19- 37-", "28-4 6--8")
    assert found.items == ("v0", "v1")
    assert (found.candidate.hard, found.candidate.measured) == (0.75, 2)
    assert found.candidate.soft == pytest.approx(0.6)
    assert (found.current.hard, found.current.soft) == (0.5, pytest.approx(0.5))
    assert (found.candidate_draws, found.current_draws) == (2, 2)
    assert found.gain == pytest.approx(0.1)


def test_items_that_each_draw_lacks_one_of_are_put_together() -> None:
    """No draw of either text has all of them."""
    found = compared("1-3 -23", "4-6 -56")
    assert sorted(found.items) == ["v0", "v1", "v2"]
    assert (found.candidate.soft, found.current.soft) == (pytest.approx(0.5), pytest.approx(0.2))


def test_means_of_one_item_and_of_none() -> None:
    """Nothing measured comes to nothing."""
    assert mean_over([(Measured(1.0, 0.5),)]) == Score(hard=1.0, soft=0.5, measured=1)
    assert mean_over([(Measured(1.0, 0.5), Measured(0.0, 0.0))]) == Score(hard=0.5, soft=0.25, measured=1)
    assert mean_over([]) == Score(hard=0.0, soft=0.0, measured=0)


def test_what_a_text_adds_to_its_value_is_added_to_its_own() -> None:
    """Each to the worth of its scores."""
    found = compared("4", "2", bonus=(0.25, 0.125))
    assert (found.candidate_value, found.current_value) == (0.325, 0.65)


@pytest.mark.parametrize(
    ("current", "candidate", "won", "lost"),
    [
        ("0", "9", True, False),
        ("9", "0", False, True),
        ("5", "9", False, False),
        ("0 9", "9 9", False, False),
        ("9 0", "9 9", False, False),
        ("0 0", "9 0", False, False),
        ("0 0", "0 9", False, False),
        ("0 0", "9 9", True, False),
        ("9 9", "0 0", False, True),
    ],
)
def test_an_item_turned_when_every_draw_is_above_every_other(
    current: str, candidate: str, won: bool, lost: bool
) -> None:
    """By its hard score; one that flips is neither won nor lost."""
    found = compared(current, candidate)
    assert (bool(found.won), bool(found.lost)) == (won, lost)


@pytest.mark.parametrize(
    ("current", "candidate", "error"),
    [
        ("0", "9", None),
        ("00", "99", None),
        ("0- -0", "9- -9", None),
        ("4", "2 6", math.sqrt(0.08 / 2 + 0.08)),
        ("2 6", "4", math.sqrt(0.08 / 2 + 0.08)),
        ("44 44", "26 6-", math.sqrt(0.08 / 2 + 0.08 / 3) / 2),
        ("33 33 33", "44 44 44", 0.0),
    ],
    ids=["once", "once each", "never twice", "candidate twice", "current twice", "one but once", "always the same"],
)
def test_the_noise_is_the_scatter_of_what_was_drawn_again(current: str, candidate: str, error: float | None) -> None:
    """What was measured once is taken to scatter as the others do; None where nothing was measured twice."""
    found = compared(current, candidate)
    if error is None:
        assert found.error is None
    else:
        assert found.error == pytest.approx(error)
    family = compared(current, candidate, dict.fromkeys(("v0", "v1"), "f")).error
    assert (family is None) == (error is None)


def test_a_family_whose_items_move_together_is_more_noise_than_they_are_alone() -> None:
    """Twice the movement is four times the scatter; where they move against each other each counts for itself."""
    alone = math.sqrt(4 * 0.08 / 2) / 2
    families = dict.fromkeys(("v0", "v1"), "f")
    assert compared("22 66", "22 66").error == pytest.approx(alone)
    assert compared("22 66", "22 66", families).error == pytest.approx(alone * math.sqrt(2))
    assert compared("26 62", "26 62", families).error == pytest.approx(alone)


@given(st.permutations(range(5)), st.lists(st.text("0369-", min_size=5, max_size=5), min_size=2, max_size=3))
def test_the_noise_does_not_depend_on_the_order_of_the_items(order: list[int], drawn: list[str]) -> None:
    """Also where some were measured once, before or after those of their family that were measured again."""
    families = {f"v{at}": "f" for at in range(3)}
    moved = ["".join(each[at] for at in order) for each in drawn]
    renamed = {f"v{at}": families[f"v{was}"] for at, was in enumerate(order) if f"v{was}" in families}
    one = compared("33333 66666", " ".join(drawn), families).error
    other = compared("33333 66666", " ".join(moved), renamed).error
    assert (one is None) == (other is None)
    assert one is None or one == pytest.approx(other)
