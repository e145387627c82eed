"""The rules of the gate over draws alone."""

from __future__ import annotations

import random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import DRAWS_ONCE, GateRule, Measured
from skillopt_es.gate.comparing import NOTHING_KNOWN, REASONS, Known, MoreDraws, Reason, Ruling, Side
from skillopt_es.gate.noise import Draw
from skillopt_es.gate.rules import RULES, NotWorse, NotWorseRetest, Paired, Retest, Rule, Strict

STRICT = Strict()
RETEST = Retest(repeats=3)
PAIRED = Paired(repeats=3, standard_errors=1.5)


def hard(hard: float, soft: float) -> float:
    return hard


def draw(results: str) -> Draw:
    """`1` for a solved item, `0` for another, `-` for one that was not measured."""
    return {f"v{index}": Measured(float(each), float(each)) for index, each in enumerate(results) if each != "-"}


def side(*results: str, known: int = 0, bonus: float = 0.0) -> Side:
    return Side(draws=tuple(map(draw, results)), known=known, bonus=bonus)


def ruled(rule: Rule, current: Side, candidate: Side, known: Known = NOTHING_KNOWN) -> tuple[str, str]:
    found = rule.judge(current, candidate, hard, known)
    assert isinstance(found, Ruling), found
    return found.verdict, found.reason


@pytest.mark.parametrize("rule", [STRICT, RETEST, PAIRED])
def test_without_a_draw_the_rule_asks_for_the_first(rule: Rule) -> None:
    assert rule.judge(side("01"), Side(), hard) == MoreDraws(candidate=1, current=0)
    assert rule.judge(Side(), Side(), hard) == MoreDraws(candidate=1, current=1)


def test_a_rule_of_which_nothing_is_said_is_one_draw_without_a_clause() -> None:
    assert Strict() == Strict(repeats=1, judge_noise=0.0, no_regression=None, min_items=0)
    assert Paired() == Paired(repeats=1, standard_errors=0.0)
    assert Side() == Side(draws=(), known=0, bonus=0.0)


@pytest.mark.parametrize("rule", [STRICT, RETEST, PAIRED])
def test_a_text_that_was_drawn_is_not_asked_for_again(rule: Rule) -> None:
    assert rule.judge(Side(), side("01"), hard) == MoreDraws(candidate=0, current=1)


def test_each_rule_asks_only_for_what_the_other_text_has() -> None:
    assert PAIRED.judge(side("0110"), side("1110", "1110"), hard) == MoreDraws(candidate=0, current=2)
    assert PAIRED.judge(side("0110", "0110"), side("1110"), hard) == MoreDraws(candidate=2, current=0)


def test_a_ruling_counts_the_draws_of_its_rounds_and_no_more() -> None:
    once = STRICT.judge(side("0110", "0000", known=1), side("1101", "0000"), hard)
    assert isinstance(once, Ruling)
    assert (once.verdict, once.comparison.candidate_draws, once.comparison.current_draws) == ("accept", 1, 1)


def test_a_gain_as_small_as_a_rounding_is_none() -> None:
    assert ruled(PAIRED, side("00", "00", "00"), side("00", "00", "00", bonus=1e-9)) == ("reject", "not_better")
    assert ruled(PAIRED, side("00", "00", "00"), side("00", "00", "00", bonus=2e-9)) == ("accept", "beyond_noise")


def test_a_gain_that_is_just_the_noise_is_within_it() -> None:
    current, candidate = side("0101", "0110", "0101"), side("1111", "1011", "1101")
    seen = PAIRED.judge(current, candidate, hard)
    assert isinstance(seen, Ruling)
    assert seen.comparison.error is not None
    just = Paired(repeats=3, standard_errors=seen.comparison.gain / seen.comparison.error)
    assert ruled(just, current, candidate) == ("indecisive", "within_noise")


def test_where_nothing_was_measured_twice_the_noise_is_not_known() -> None:
    rule = Paired(repeats=2, standard_errors=1.5)
    assert ruled(rule, side("0-", "-0"), side("1-", "-1")) == ("indecisive", "few_items")


@pytest.mark.parametrize("rule", [STRICT, RETEST, PAIRED])
def test_a_tie_is_no_win(rule: Rule) -> None:
    assert ruled(rule, side("0110", known=1), side("1001")) == ("reject", "not_better")


def test_strict_takes_a_win_in_one_draw() -> None:
    assert ruled(STRICT, side("0110", known=1), side("1101")) == ("accept", "better")


def test_paired_takes_a_lasting_gain_of_a_world_in_which_nothing_flips() -> None:
    assert ruled(PAIRED, side("0110", "0110", "0110", known=3), side("1110", "1110", "1110")) == (
        "accept",
        "beyond_noise",
    )


def test_paired_does_not_draw_on_where_nothing_flips() -> None:
    twice = side("0110", "0110", known=2)
    assert ruled(PAIRED, twice, side("1110", "1110")) == ("accept", "beyond_noise")
    assert PAIRED.judge(twice, side("1110", "1111"), hard) == MoreDraws(candidate=3, current=3)


def test_paired_draws_on_where_an_item_ever_flipped_though_two_draws_agree() -> None:
    """A coin gives the same twice, every other time: no error is no proof."""
    current, candidate = side("0110", "0110", known=2), side("1110", "1110")
    coin = Known(flipped=frozenset({"v0"}))
    assert PAIRED.judge(current, candidate, hard, coin) == MoreDraws(candidate=3, current=3)
    elsewhere = Known(flipped=frozenset({"another item"}))
    assert ruled(PAIRED, current, candidate, elsewhere) == ("accept", "beyond_noise")


def test_items_that_flip_together_are_more_noise_than_as_many_that_flip_alone() -> None:
    """Six items of one family, of which all pass or none; two others are gained for good."""
    current = side("00000000", "11111100", "00000000", known=3)
    candidate = side("11111111", "00000011", "11111111")
    family = Known(families={f"v{n}": "f" for n in range(6)})
    assert ruled(PAIRED, current, candidate) == ("accept", "beyond_noise")
    assert ruled(PAIRED, current, candidate, family) == ("indecisive", "within_noise")


def test_two_items_of_a_family_that_flip_against_each_other_are_noise_all_the_same() -> None:
    """Their sum never moves; each of them does."""
    current, candidate = side("0110", "1010", "0110", known=3), side("0111", "1011", "0111")
    found = PAIRED.judge(current, candidate, hard, Known(families={"v0": "f", "v1": "f"}))
    assert isinstance(found, Ruling)
    assert found.comparison.error == pytest.approx((4 / 3 / 3) ** 0.5 / 4)


def test_families_of_one_item_each_are_the_items() -> None:
    """The same error, also where items were not measured in each draw."""
    ours, theirs = side("1101", "0-11", "1011"), side("0-01", "0111", "00-1", known=3)
    alone = PAIRED.judge(theirs, ours, hard, Known(families={f"v{n}": f"f{n}" for n in range(4)}))
    assert alone == PAIRED.judge(theirs, ours, hard)


def test_paired_asks_for_the_draws_that_the_texts_do_not_have_yet() -> None:
    assert PAIRED.judge(side("0110", known=1), side("1110"), hard) == MoreDraws(candidate=2, current=2)
    assert PAIRED.judge(side("0110", "0110", "0110", known=3), side("1110"), hard) == MoreDraws(candidate=2, current=0)


def test_paired_does_not_draw_on_what_is_not_ahead() -> None:
    assert ruled(PAIRED, side("0110", "0111", known=2), side("1110", "0010")) == ("reject", "not_better")


def test_paired_is_undecided_within_the_noise() -> None:
    current = side("010101", "101010", "010101", known=3)
    assert ruled(PAIRED, current, side("101011", "010101", "101010")) == ("indecisive", "within_noise")


def test_an_item_that_flips_is_neither_won_nor_lost() -> None:
    found = PAIRED.judge(side("0101", "0110", "0101"), side("1111", "1011", "1101"), hard)
    assert isinstance(found, Ruling)
    assert found.comparison.won == ("v0",)
    assert found.comparison.lost == ()


def test_a_lost_item_too_many_refuses_a_win() -> None:
    rule = Strict(no_regression=0)
    assert ruled(rule, side("0011", known=1), side("1101")) == ("reject", "items_lost")
    assert ruled(Strict(no_regression=1), side("0011", known=1), side("1101")) == ("accept", "better")


@pytest.mark.parametrize(("noise", "verdict"), [(0.0, "accept"), (0.3, "accept"), (0.4, "indecisive")])
def test_a_win_that_a_wavering_judge_can_make_is_none(noise: float, verdict: str) -> None:
    """One item of four is a quarter; the judge's noise of one grade is halved over four items, and there are two."""
    assert ruled(Strict(judge_noise=noise), side("0110", known=1), side("1110"))[0] == verdict


def test_too_few_measured_items_decide_nothing() -> None:
    assert ruled(Strict(min_items=4), side("0-11", known=1), side("1111")) == ("indecisive", "few_items")
    assert ruled(Strict(min_items=4), side("0011", known=1), side("1111")) == ("accept", "better")


def test_items_that_one_text_was_not_measured_on_do_not_count() -> None:
    assert ruled(STRICT, side("-001", known=1), side("1001")) == ("reject", "not_better")


def test_what_a_text_adds_to_its_value_counts_in_every_rule() -> None:
    current = side("0110", "0110", "0110", known=1)
    for rule in (STRICT, RETEST, PAIRED):
        assert ruled(rule, current, side("0110", "0110", "0110", bonus=0.01))[0] == "accept"


def test_what_cannot_carry_a_rule_is_said_with_what_would_be_enough() -> None:
    assert STRICT.too_little(1) is None
    assert "5 items are enough, or evaluation.gate_repeats: 5" in str(PAIRED.too_little(3))
    assert "from 4 validation items with 3 draws; 5 items are enough, or evaluation.gate_repeats: 4" in str(
        PAIRED.too_little(4)
    )
    assert PAIRED.too_little(5) is None
    assert Strict(min_items=8).too_little(8) is None
    assert Strict(no_regression=7).too_little(8) is None
    assert "there are 8 validation items" in str(Strict(min_items=9).too_little(8))
    assert "give at most 7" in str(Strict(no_regression=8).too_little(8))


results = st.text(alphabet="01", min_size=12, max_size=12)


@given(st.lists(results, min_size=3, max_size=4), st.lists(results, min_size=3, max_size=4))
def test_no_rule_takes_a_text_that_is_not_ahead_over_the_draws_it_used(ours: list[str], theirs: list[str]) -> None:
    for rule in (STRICT, PAIRED):
        found = rule.judge(side(*theirs, known=1), side(*ours), hard)
        assert isinstance(found, Ruling)
        if found.verdict == "accept":
            assert found.comparison.gain > 0


def accepted(rule: Rule, gain: int, trials: int) -> float:
    """How often a rule takes a text that solves `gain` of 40 items more, where 12 others pass now and then."""
    chance = random.Random(5)

    def drawn(solved: int) -> Draw:
        flaky = "".join(str(int(chance.random() < (0.2, 0.8)[index % 2])) for index in range(12))
        return draw(flaky + "1" * (14 + solved) + "0" * (14 - solved))

    taken = 0
    for _ in range(trials):
        ours, theirs = [drawn(gain)], [drawn(0)]
        while isinstance(
            found := rule.judge(Side(draws=tuple(theirs), known=1), Side(draws=tuple(ours)), hard), MoreDraws
        ):
            ours += [drawn(gain)] * bool(found.candidate)
            theirs += [drawn(0)] * bool(found.current)
        taken += found.verdict == "accept"
    return taken / trials


def test_paired_seldom_takes_a_text_that_changes_nothing_and_mostly_sees_ten_points() -> None:
    assert accepted(STRICT, 0, 600) > 0.35
    assert accepted(PAIRED, 0, 400) <= 0.1
    assert accepted(PAIRED, 4, 200) >= 0.88


def test_a_null_of_families_that_flip_together_is_taken_no_more_often_than_one_of_items() -> None:
    """40 items in 10 families, of which three flip as one; strict would take two of five."""
    families = {f"v{n}": f"f{n // 4}" for n in range(40)}

    def null(known: Known, trials: int = 300) -> float:
        chance, taken = random.Random(5), 0

        def drawn() -> Draw:
            together = [str(int(chance.random() < (0.2, 0.8, 0.5)[n])) * 4 for n in range(3)]
            return draw("".join(together) + "1" * 14 + "0" * 14)

        for _ in range(trials):
            ours, theirs = [drawn()], [drawn()]
            while isinstance(
                found := PAIRED.judge(Side(draws=tuple(theirs), known=1), Side(draws=tuple(ours)), hard, known),
                MoreDraws,
            ):
                ours += [drawn()] * bool(found.candidate)
                theirs += [drawn()] * bool(found.current)
            taken += found.verdict == "accept"
        return taken / trials

    assert null(Known(families=families)) <= 0.1 < null(Known())


def test_every_rule_has_a_class_and_every_reason_its_words() -> None:
    """Whatever a config may name, and a verdict may give."""
    assert {*RULES} == {*get_args(GateRule)}
    assert set(REASONS) == {*get_args(Reason), "lost_recall", "misrouted", "by_hand"}  # and what overrules a rule


def test_a_rule_that_draws_once_heeds_no_number_of_repeats() -> None:
    """Those that are below the gate know it by name."""
    assert {name for name, rule in RULES.items() if "repeats" not in rule.heeds} == DRAWS_ONCE


def test_a_rule_is_known_by_its_name_to_take_ties_and_to_retest() -> None:
    """A tie is accepted by those that say so, and by no other."""
    tie = side("0110", known=1), side("1001")
    for rule in (Strict(), Paired(repeats=2), Retest(repeats=1), NotWorse(), NotWorseRetest(repeats=1)):
        found = rule.judge(*tie, hard)
        assert isinstance(found, Ruling)
        assert (found.verdict == "accept") is rule.takes_ties is (rule.name in ("not_worse", "not_worse_retest"))
        assert rule.retests is (rule.name in ("retest", "not_worse_retest"))


def test_the_settings_of_a_rule_are_those_that_it_heeds() -> None:
    """As a config has them."""
    assert STRICT.settings == {"evaluation.gate_rule": "strict"}
    assert RETEST.settings == {"evaluation.gate_rule": "retest", "evaluation.gate_repeats": 3}
    assert PAIRED.settings == {
        "evaluation.gate_rule": "paired",
        "evaluation.gate_repeats": 3,
        "evaluation.gate_standard_errors": 1.5,
    }


def test_a_rule_is_named_with_the_settings_that_matter_to_it() -> None:
    assert [STRICT.title, RETEST.title] == ["strict", "retest, 3 draws"]
    assert PAIRED.title == "paired, 1.5 errors, 3 draws"


def test_the_usual_forms_of_the_rules_are_those_of_the_page_about_the_gate() -> None:
    """Every rule is measured by them."""
    assert [form for rule in RULES.values() for form in rule.usual()] == [
        Strict(),
        Paired(repeats=2, standard_errors=1.0),
        Paired(repeats=3, standard_errors=1.5),
        Retest(repeats=4),
    ]
