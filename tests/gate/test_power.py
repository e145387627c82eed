"""What the simulation says of the gate's rules, against what can be counted by hand."""

from __future__ import annotations

import math
import random
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.params import parametrized

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Failed, Measured
from skillopt_es.gate.calibration import (
    Calibration,
    NotKnown,
    Null,
    Worth,
    attempts,
    calibrate,
    own_null,
    recommended,
    together,
)
from skillopt_es.gate.flips import Counted, Flips, Tried, flips_in, worlds
from skillopt_es.gate.power import (
    Chances,
    better,
    churned,
    churning,
    improved,
    most_churn,
    power,
    smallest_gain,
)
from skillopt_es.gate.rules import Paired, Retest, Rule, Strict

STRICT = Strict()
PAIRED = Paired(repeats=2, standard_errors=1.0)
SAFE = Retest(repeats=4)
RULES = (STRICT, PAIRED)


def coins(flaky: int, fixed: int = 28) -> Chances:
    """Items that pass every other time, and others that always or never do."""
    return {**{f"x{n}": float(n % 2) for n in range(fixed)}, **{f"f{n}": 0.5 for n in range(flaky)}}


def known(chances: Chances, trials: int) -> list[Chances]:
    """Worlds in which these are the chances."""
    return [chances] * trials


def test_a_strict_gate_takes_what_chance_says_it_takes() -> None:
    """Twelve fair coins beat twelve others in (1 - C(24, 12) / 2^24) / 2 of all cases."""
    exact = (1 - comb(24, 12) / 2**24) / 2
    assert power(STRICT, known(coins(12), 2000), seed=1).accepted == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_where_nothing_flips_every_rule_is_right(rule: Rule) -> None:
    """A text against itself never wins, one more item always does."""
    steady = known(coins(0, 12), 20)
    assert power(rule, steady, seed=1).accepted == 0
    assert power(rule, steady, better(1 / 12), seed=1).accepted == 1
    assert smallest_gain(rule, steady, 12, seed=1) == 1 / 12


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_where_nothing_flips_a_change_for_no_gain_is_taken_whenever_it_is_ahead(rule: Rule) -> None:
    """Of 40 steady items each turns with a chance of a tenth, up as often as down: the difference of two Poissons."""
    ahead = (1 - math.exp(-4) * sum(2 ** (2 * k) / math.factorial(k) ** 2 for k in range(30))) / 2
    found = power(rule, known(coins(0, 40), 1500), churning(0.1), seed=1).accepted
    assert found == pytest.approx(ahead, abs=0.04)
    assert ahead == pytest.approx(0.397, abs=0.001)


def test_draws_that_are_there_already_are_not_paid_again() -> None:
    """A first comparison draws both texts, a later one the candidate alone, unless more is wanted of it."""
    paired = Paired(repeats=3, standard_errors=1.5)
    first = power(paired, known(coins(12), 200), seed=1)
    later = power(paired, known(coins(12), 200), seed=1, before=3)
    assert first.spent > 90 > later.spent > 40


def test_of_what_turned_alone_a_draw_costs_only_that() -> None:
    """A first draw of 40 items, and a few items more."""
    assert 40 < power(SAFE, known(coins(12), 200), seed=1).spent < 50


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.integers(0, 9))
@settings(max_examples=40, deadline=None, database=None)
def test_churn_turns_what_it_says_and_gains_nothing(chances: list[float], seed: int) -> None:
    """Over many edits, as far as the items differ at all."""
    before = {f"i{n}": each for n, each in enumerate(chances)}
    rng, often = random.Random(seed), 400
    pairs = [(before[item], each) for _ in range(often) for item, each in churned(before, 0.1, rng).items()]
    turned = sum(abs(new - old) for old, new in pairs) / len(pairs)
    assert turned == pytest.approx(min(0.1, most_churn(before)), abs=0.04)
    assert sum(new - old for old, new in pairs) / len(pairs) == pytest.approx(0, abs=0.04)


def test_the_smallest_gain_is_the_first_that_is_taken_often_enough() -> None:
    """Looking no further than to where that is certain changes nothing."""
    flaky = known(coins(12), 60)
    gains = [n / 40 for n in range(1, 41)]
    shares = [power(PAIRED, flaky, better(gain), seed=4).accepted for gain in gains[:8]]
    found = smallest_gain(PAIRED, flaky, 40, seed=4)
    assert found in gains
    assert shares[gains.index(found)] >= 0.8


def test_the_same_seed_says_the_same() -> None:
    """And another one something else."""
    same = [power(STRICT, known(coins(8), 100), seed=seed) for seed in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 1))
def test_a_gain_is_as_large_as_it_says(chances: list[float], gain: float) -> None:
    """Unless there is no room for it; no item gets worse."""
    before = {f"i{n}": each for n, each in enumerate(chances)}
    after = improved(before, gain, random.Random(0))
    room = 1 - sum(chances) / len(chances)
    assert sum(after.values()) / len(after) == pytest.approx(sum(chances) / len(chances) + min(gain, room))
    assert all(before[item] <= after[item] <= 1 + 1e-9 for item in before)


def test_flips_are_estimated_without_bias() -> None:
    """From two attempts each, of many items whose chances differ: the chances scatter as much as the truth."""
    rng = random.Random(5)
    truth = [rng.betavariate(0.5, 0.5) for _ in range(3000)]
    counts = {f"i{n}": Counted(tried=2, passed=sum(rng.random() < p for _ in range(2))) for n, p in enumerate(truth)}
    seen = flips_in({("s", item): each for item, each in counts.items()})
    assert seen is not None
    really = sum(2 * p * (1 - p) for p in truth) / len(truth)
    assert seen.rate == pytest.approx(really, rel=0.1)
    [drawn] = worlds(counts, [seen.rate], random.Random(6))
    assert sum(2 * p * (1 - p) for p in drawn.values()) / len(drawn) == pytest.approx(really, rel=0.1)


def test_items_that_did_not_flip_yet_may() -> None:
    """Nothing of 36: as often as in a tenth of cases, says the interval, and the worlds that are drawn know of it."""
    none: Tried = {("s", f"v{n}"): Counted(tried=2, passed=2 * (n % 2)) for n in range(36)}
    flips = flips_in(none)
    assert flips is not None
    assert (flips.rate, flips.interval.low, flips.interval.high) == (0.0, 0.0, pytest.approx(0.0964, abs=1e-4))
    rng = random.Random(1)
    rates = [flips.drawn(rng) for _ in range(400)]
    assert 0 < sum(rates) / len(rates) < 0.03
    assert sum(rate <= flips.interval.high for rate in rates) > 390
    assert flips_in({("s", "v1"): Counted(tried=1, passed=1)}) is None


def test_an_item_that_was_repeated_under_several_texts_counts_once() -> None:
    """Repeats of one item say little of others."""
    one: Tried = {(text, "v1"): Counted(tried=2, passed=1) for text in "abcd"}
    assert flips_in({**one, ("a", "v2"): Counted(tried=2, passed=2)}) == Flips(rate=0.5, items=2, texts=4)


def tried(skill: str, item: str, *results: float) -> list[RolloutCompleted]:
    """Attempts at an item."""
    return [
        RolloutCompleted(
            place=f"p{number}", purpose="selection", item=item, skill=skill, outcome=Measured(hard, hard),
            task_type="", turns=1,
        )
        for number, hard in enumerate(results)
    ]  # fmt: skip


def test_attempts_are_counted_by_text_and_item() -> None:
    """Over several logs; what was not measured is no attempt."""
    failed = RolloutCompleted(
        place="p", purpose="selection", item="v1", skill="s", outcome=Failed("timeout", ""), task_type="", turns=1
    )
    one = attempts([*tried("s", "v1", 1, 0), *tried("t", "v1", 1), failed])
    both = together(one, attempts(tried("s", "v1", 1)))
    assert both == {("s", "v1"): Counted(tried=3, passed=2), ("t", "v1"): Counted(tried=1, passed=1)}


def known_of(found: Calibration | NotKnown) -> Calibration:
    """A calibration that could be made."""
    assert isinstance(found, Calibration)
    return found


def test_without_repeats_nothing_is_said() -> None:
    """Of neither kind of item; and nothing of a text that was never tried."""
    once = attempts(tried("s", "v1", 1))
    found = calibrate(once, ["v1"], STRICT, skill="s")
    assert isinstance(found, NotKnown)
    assert "no item was tried twice" in found.why
    assert own_null(once, ["v1"], STRICT, skill="s") is None
    found = calibrate(attempts(tried("s", "v1", 1, 1)), ["v1"], STRICT, skill="best")
    assert isinstance(found, NotKnown)
    assert "never tried" in found.why


def test_it_is_of_the_text_that_was_asked_for() -> None:
    """However often a refused one was tried."""
    rows = [*tried("refused", "v1", 0, 0, 0, 0), *tried("best", "v1", 1, 1)]
    found = known_of(calibrate(attempts(rows), ["v1"], STRICT, skill="best", trials=20))
    assert (found.skill, found.items, found.room) == ("best", {"v1": Counted(tried=2, passed=2)}, 0)


def test_repeats_of_training_items_stand_in_for_those_of_validation_items() -> None:
    """And it says so."""
    rows = [*tried("s", "v1", 1), *tried("s", "v2", 0), *tried("s", "t1", 1, 0), *tried("s", "t2", 1, 1)]
    found = known_of(calibrate(attempts(rows), ["v1", "v2"], STRICT, skill="s", trials=50))
    assert (found.source, found.flips) == ("training", Flips(rate=0.5, items=2, texts=1))
    rows += tried("s", "v2", 0)
    found = known_of(calibrate(attempts(rows), ["v1", "v2"], STRICT, skill="s", trials=50))
    assert (found.source, found.flips) == ("validation", Flips(rate=0.0, items=1, texts=1))


def repeated(items: int, *of: int) -> tuple[Tried, list[str]]:
    """Attempts at so many items, and their names."""
    rng = random.Random(4)
    rows = [
        row
        for n in range(items)
        for row in tried("s", f"v{n}", *(float(rng.random() < 0.5) if not of else of[n % len(of)] for _ in range(3)))
    ]
    return attempts(rows), [f"v{n}" for n in range(items)]


@pytest.mark.slow
def test_flaky_items_call_for_another_rule() -> None:
    """Where strict takes much that changes nothing."""
    found = known_of(calibrate(*repeated(40), STRICT, skill="s", trials=120))
    own = found.rules[0]
    assert own.own
    assert own.null.itself > 0.3
    assert found.recommended.name != "strict"


@parametrized("own", [STRICT, SAFE], ids=lambda rule: rule.name, by_default=1)
def test_that_no_flip_was_seen_speaks_for_no_weaker_rule(own: Rule) -> None:
    """The repeats leave open that the same text is taken often; and so is an edit of no gain, by every rule."""
    found = known_of(calibrate(*repeated(40, 0, 1), own, skill="s", trials=120))
    strict = next(each for each in found.rules if each.rule.name == "strict")
    assert strict.null.itself < 0.16 < strict.null.itself_most
    assert found.recommended == SAFE
    assert all(each.null.churn is not None and each.null.churn > 0.25 for each in found.rules)


def test_at_the_ceiling_there_is_no_gain_to_be_seen_and_no_churn() -> None:
    """Every item passes; that is no fault of a rule."""
    found = known_of(calibrate(*repeated(12, 1), PAIRED, skill="s", trials=30))
    assert found.room == 0
    assert all(each.smallest is None for each in found.rules)


def test_the_least_harmful_rule_is_recommended_where_none_is_good() -> None:
    """By what it takes at most."""
    worths = [
        Worth(
            rule=rule, own=False, null=Null(itself=0.1, itself_most=share, churn=None, turned=0.0), smallest=None,
            first=1.0, later=1.0,
        )
        for rule, share in ((STRICT, 0.4), (PAIRED, 0.2))
    ]  # fmt: skip
    assert recommended(worths, Flips(rate=0.1, items=9, texts=1)).rule == PAIRED
