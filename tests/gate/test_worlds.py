"""What the benchmark of the gate counts: the same each time, no more than any rule can reach, and what is known."""

from __future__ import annotations

import pytest
from bench.bench_gate import PAIRED, RULES, SAFE, best_of_any, churn, churn_row, climb, families, flaky, power_row, seen
from support.params import parametrized


def test_the_same_question_has_the_same_answer() -> None:
    """Row by row."""
    assert power_row(("`strict`", "one coin", 20, 5)) == power_row(("`strict`", "one coin", 20, 5))
    assert churn_row(("`strict`", 0.1, 20, 5)) == churn_row(("`strict`", 0.1, 20, 5))


@parametrized("items", [20, 40, 100], by_default=1)
def test_edits_of_no_gain_win_as_often_as_they_are_ahead(items: int) -> None:
    """By every rule: a target that never flips has no noise of drawing."""
    for rule in (RULES["`strict`"], SAFE):
        assert churn(rule, items, 0.1, 150) == pytest.approx({20: 0.35, 40: 0.40, 100: 0.44}[items], abs=0.12)


def test_no_rule_beats_the_bound() -> None:
    """Which is the share of nulls itself where there is no gain, and all where the gain is plain."""
    assert best_of_any(40, 0.1, 0.0, 0.3) == pytest.approx(0.3)
    assert best_of_any(40, 0.1, 0.1, 1.0) == pytest.approx(1.0)
    null, ten = (churn(SAFE, 40, 0.1, 200, gain) for gain in (0.0, 0.1))
    assert ten <= best_of_any(40, 0.1, 0.1, null) + 0.05


def test_the_score_that_edits_of_no_gain_leave_is_far_above_the_truth() -> None:
    """Fresh draws of the same items do not help: the items were chosen for."""
    above, covered = climb(SAFE, 40, 50, 8)
    assert above > 20
    assert covered == 0


def test_a_first_gate_costs_more_than_a_later_one_and_a_gain_more_than_none() -> None:
    """A current skill that has all its draws is not drawn again."""
    first, later = (seen(PAIRED, flaky(40), 0.0, 80, later=known) for known in (False, True))
    assert 85 < first.spent < 110
    assert 55 < later.spent < 75
    assert seen(PAIRED, flaky(40), 0.1, 40).spent > 180


def test_what_turned_costs_little_to_draw_again_and_luck_does_not_last() -> None:
    """Beside a rule that draws all items again: fewer attempts, fewer lucky texts, more of the gains."""
    for gain, taken in ((0.0, 0.0), (0.05, 0.6)):
        lasting, paired = (seen(rule, flaky(40), gain, 80) for rule in (SAFE, PAIRED))
        assert lasting.spent < paired.spent / 1.8
        assert lasting.taken >= taken
    assert seen(SAFE, flaky(40), 0.0, 300).taken < 0.02
    assert seen(SAFE, families(40), 0.0, 300).taken < 0.02


def test_families_are_taken_for_what_they_are() -> None:
    """About as seldom as items that flip alone: noise by item would take more than .12."""
    assert seen(PAIRED, families(100), 0.0, 150).taken <= 0.12
