"""Chance: how probable it is that an edit does nothing, by what its tasks came to and by how the target answers."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from algorithms.search.test_search import agent, searched
from hypothesis import given
from hypothesis import strategies as st

import skillopt_es as so
from skillopt_es.algorithms.search.chance import Chances, Draws, History, kinds_of_target
from skillopt_es.algorithms.search.credit import Results, Screened
from skillopt_es.algorithms.search.state import Search
from skillopt_es.engine.algorithms import fold

STAYS, TURNS = (0.0, 0.0), (0.0, 1.0)
FAILED, PASSED = (0.0,), (1.0,)


def luck(*, known: list[Draws], before: Draws = FAILED, after: Draws = PASSED, history: History | None = None) -> float:
    """The luck of an edit of one task, where tasks came to this when they were drawn more than once."""
    found = History(own=(before,)) if history is None else history
    return Chances(kinds=kinds_of_target(known), histories={"a": found}).luck({"a": (before, after)})


def test_one_draw_that_turned_is_enough_for_a_target_that_never_varies_and_not_before_that_is_known() -> None:
    """Nor for one of whose tasks some are coins."""
    assert luck(known=[]) > 0.1
    assert luck(known=[STAYS] * 8) < 0.1
    assert luck(known=[STAYS] * 8 + [TURNS] * 4) > 0.1


def test_every_further_draw_that_stays_speaks_for_an_edit_under_either_text() -> None:
    """And one that does not, against it."""
    known = [STAYS] * 8 + [TURNS] * 2
    once = luck(known=known)
    assert luck(known=known, after=(1.0, 1.0)) < once
    assert luck(known=known, before=(0.0, 0.0)) < once
    assert luck(known=known, after=(1.0, 0.0)) > once
    assert luck(known=known, before=(0.0, 1.0)) > once


def test_a_task_that_failed_under_earlier_texts_is_no_coin() -> None:
    """One that passed under one of them may well be."""
    known = [STAYS] * 8 + [TURNS] * 2
    once = luck(known=known)
    assert luck(known=known, history=History(own=(FAILED, FAILED, FAILED))) < once
    assert luck(known=known, history=History(own=(FAILED, PASSED, FAILED))) > once


def test_a_task_that_came_out_in_two_ways_under_other_edits_is_more_likely_a_coin() -> None:
    """What another edit has done to it says the same of both, as long as it stays."""
    known = [STAYS] * 8 + [TURNS] * 2
    coin = luck(known=known, history=History(own=(FAILED,), others=((1.0, 0.0), (0.0, 1.0))))
    assert coin > luck(known=known, history=History(own=(FAILED,), others=((1.0, 1.0),)))


def test_where_few_tasks_fail_those_that_do_are_rather_coins() -> None:
    """A skill that solves nearly all has not many rules to learn."""
    known = [STAYS] * 8 + [TURNS] * 2
    few, many = (luck(known=known, history=History(own=(FAILED,), failing=share)) for share in (0.1, 0.9))
    assert few > 2 * many


def test_a_task_that_slipped_once_counts_for_less_where_tasks_are_coins() -> None:
    """A coin falls like this as often as not; where all tasks vary now and then, none is a coin for that."""
    draws = {"before": (0.0, 0.0), "after": (1.0, 0.0, 1.0, 1.0)}
    slips = [(0.0,) * 6 + (1.0,), (1.0,) * 6 + (0.0,)] * 6
    coins = [STAYS] * 12 + [(0.0, 1.0, 0.0, 1.0)] * 4
    assert 2 * luck(known=slips, **draws) < luck(known=coins, **draws)


def test_an_edit_that_fixes_one_of_three_tasks_is_worth_less_than_one_that_was_tried_on_one() -> None:
    """The others count, too."""
    chances = Chances(kinds=kinds_of_target([STAYS] * 8 + [TURNS]), histories={})
    one = chances.luck({"a": (FAILED, PASSED)})
    assert chances.luck({"a": (FAILED, PASSED), "b": (FAILED, FAILED), "c": (FAILED, FAILED)}) > one
    assert chances.luck({"a": (FAILED, PASSED), "b": (FAILED, PASSED)}) < one


def test_parts_of_a_point_count_like_whole_ones() -> None:
    """A draw is nearer to the first one before, or to the first one after."""
    known = [STAYS] * 8 + [TURNS]
    whole = luck(known=known, before=(0.0, 0.0), after=(1.0, 1.0))
    assert luck(known=known, before=(0.3, 0.25), after=(0.6, 0.7)) == pytest.approx(whole)


DRAWS = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=5).map(tuple)
HISTORIES = st.builds(
    History,
    own=st.lists(DRAWS, max_size=4).map(tuple),
    others=st.lists(DRAWS, max_size=3).map(tuple),
    failing=st.floats(0.05, 0.95),
)


@given(known=st.lists(DRAWS, max_size=8), history=HISTORIES, before=DRAWS, after=DRAWS)
def test_luck_is_a_probability_whatever_was_drawn(
    known: list[Draws], history: History, before: Draws, after: Draws
) -> None:
    """Also where no kind of target could have drawn it."""
    assert 0.0 <= luck(known=known, history=history, before=before, after=after) <= 1.0
    assert sum(kinds_of_target(known)) == pytest.approx(1.0)


def test_thousands_of_draws_are_not_too_many() -> None:
    """Their product is a chance that no number can hold."""
    known = [STAYS] * 5000 + [TURNS] * 1000
    assert sum(kinds_of_target(known)) == pytest.approx(1.0)
    assert 0.0 < luck(known=known, before=(0.0,) * 200, after=(1.0,) * 200) < 0.1


@given(known=st.lists(DRAWS, max_size=8), order=st.randoms(use_true_random=False))
def test_what_the_target_is_like_does_not_go_by_the_order_of_tasks(known: list[Draws], order: Random) -> None:
    """Nor does equal evidence ever give other logs."""
    other = [*known]
    order.shuffle(other)
    assert kinds_of_target(known) == kinds_of_target(other)


@pytest.mark.parametrize(("coins", "slips"), [(0.2, 0.0), (0.5, 0.0), (0.0, 0.15), (0.2, 0.1)])
def test_few_useless_edits_get_through_where_the_target_varies(coins: float, slips: float) -> None:
    """At most one in twenty, each drawn as often as may be, by the rule that the search goes by."""
    draw = Random(f"{coins} {slips}")
    known: list[Draws] = []
    kept = 0
    for _ in range(400):
        chance = 0.5 if draw.random() < coins else slips
        before, after = _drawn(draw, chance, 1), _drawn(draw, chance, 1)
        while before == (0.0,) and after[0] == 1.0 and len(before) + len(after) < 8:
            screened = _screened(known[-60:], before, after)
            if screened.won or not screened.better:
                break
            if len(after) <= len(before):
                after += _drawn(draw, chance, 1)
            else:
                before += _drawn(draw, chance, 1)
        kept += _screened(known[-60:], before, after).won
        known += [draws for draws in (before, after) if len(draws) > 1]
    assert kept <= 20


def _drawn(draw: Random, chance: float, many: int) -> Draws:
    return tuple(float(draw.random() < chance) for _ in range(many))


def _screened(known: list[Draws], before: Draws, after: Draws) -> Screened:
    chances = Chances(kinds=kinds_of_target([*known, before, after]), histories={"a": History(own=(before,))})
    return Screened(results={"a": Results(before=before, after=after)}, chances=chances)


def test_all_draws_of_a_run_are_remembered_by_the_text_that_they_were_made_under(tmp_path: Path) -> None:
    """Those of the current texts apart from those that were only tried."""
    asked = Counter[tuple[str, str]]()

    def slipping(request: so.ChatRequest) -> str:
        said = request.messages[0].content, request.messages[-1].content
        asked[said] += 1
        return "never" if Random(f"{said} {asked[said]}").random() < 0.2 else agent(request)

    run = searched(tmp_path, agent=slipping, **{"budget.max_calls": 150})
    algorithm = fold(each.event for each in run.events()).algorithm
    assert isinstance(algorithm, Search)
    own = [each for texts in algorithm.drawn.values() for each in texts if each.own]
    tried = [each for texts in algorithm.drawn.values() for each in texts if not each.own]
    assert own
    assert tried
    assert any(len(each.outcomes) > 1 for each in own + tried)
    rows = [each.event for each in run.events(["RolloutCompleted"]) if each.event.purpose == "train"]
    assert sum(len(each.outcomes) for each in own + tried) == len(rows)
