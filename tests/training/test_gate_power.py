"""What the simulation says of the gate's rules, against what can be counted by hand."""

from __future__ import annotations

import random
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Failed, Measured
from skillopt_es.training.calibration import Worth, attempts, calibrate, null_accepts, recommended, together
from skillopt_es.training.gate_power import (
    Chances,
    Counted,
    always,
    drift,
    improved,
    posterior,
    power,
    scatter,
    smallest_gain,
)
from skillopt_es.training.gate_rules import Rule

STRICT = Rule(name="strict", draws=1)
CONFIRM = Rule(name="confirm", draws=2)
PAIRED = Rule(name="paired", draws=2, standard_errors=1.0)
RULES = (STRICT, CONFIRM, PAIRED)


def coins(flaky: int, fixed: int = 28) -> Chances:
    """Items that pass every other time, and others that always or never do."""
    return {**{f"x{n}": float(n % 2) for n in range(fixed)}, **{f"f{n}": 0.5 for n in range(flaky)}}


def test_a_strict_gate_takes_what_chance_says_it_takes() -> None:
    """Twelve fair coins beat twelve others in (1 - C(24, 12) / 2^24) / 2 of all cases; confirmed, in its square."""
    exact = (1 - comb(24, 12) / 2**24) / 2
    assert power(STRICT, always(coins(12)), trials=2000, seed=1).accepted == pytest.approx(exact, abs=0.03)
    assert power(CONFIRM, always(coins(12)), trials=2000, seed=1).accepted == pytest.approx(exact**2, abs=0.03)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_where_nothing_flips_every_rule_is_right(rule: Rule) -> None:
    """A text against itself never wins, one more item always does."""
    known = always(coins(0, 12))
    assert power(rule, known, trials=20, seed=1).accepted == 0
    assert power(rule, known, gain=1 / 12, trials=20, seed=1).accepted == 1
    assert smallest_gain(rule, known, 12, trials=20, seed=1) == 1 / 12
    assert drift(rule, known, steps=5, trials=3, seed=1, fresh=False).points == 0


def test_the_same_seed_says_the_same() -> None:
    """And another one something else."""
    same = [power(STRICT, always(coins(8)), trials=100, seed=seed) for seed in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


def test_a_score_that_decided_nothing_does_not_drift() -> None:
    """The draws that won do."""
    pooled = drift(STRICT, always(coins(12)), trials=100, seed=3, fresh=False)
    fresh = drift(STRICT, always(coins(12)), trials=100, seed=3, fresh=True)
    assert pooled.points > 5
    assert abs(fresh.points) < 2
    assert fresh.spent > pooled.spent


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
    """From two attempts each, of many items whose chances differ: the posterior scatters as much as the truth."""
    rng = random.Random(5)
    truth = [rng.betavariate(0.5, 0.5) for _ in range(3000)]
    counts = {f"i{n}": Counted(tried=2, passed=sum(rng.random() < p for _ in range(2))) for n, p in enumerate(truth)}
    seen = scatter(counts.values())
    assert seen is not None
    really = sum(p * (1 - p) for p in truth) / len(truth)
    assert seen == pytest.approx(really, rel=0.1)
    drawn = posterior(counts, seen)(random.Random(6))
    assert sum(p * (1 - p) for p in drawn.values()) / len(drawn) == pytest.approx(really, rel=0.1)


def test_items_that_never_flipped_are_taken_at_their_word() -> None:
    """No scatter, no doubt."""
    counts = {"a": Counted(tried=2, passed=2), "b": Counted(tried=2, passed=0)}
    assert scatter(counts.values()) == 0
    assert posterior(counts, 0.0)(random.Random(1)) == {"a": 1.0, "b": 0.0}
    assert scatter([Counted(tried=1, passed=1)]) is None


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


def test_without_repeats_nothing_is_said() -> None:
    """Of neither kind of item."""
    assert calibrate(attempts(tried("s", "v1", 1)), ["v1"], STRICT) is None
    assert null_accepts(attempts(tried("s", "v1", 1)), {"v1"}, STRICT) is None


def test_repeats_of_training_items_stand_in_for_those_of_validation_items() -> None:
    """And it says so."""
    rows = [*tried("s", "v1", 1), *tried("s", "v2", 0), *tried("s", "t1", 1, 0), *tried("s", "t2", 1, 1)]
    found = calibrate(attempts(rows), ["v1", "v2"], STRICT, trials=50)
    assert found is not None
    assert (found.source, found.repeated, found.flip_rate) == ("training", 2, 0.5)
    rows += tried("s", "v2", 0)
    found = calibrate(attempts(rows), ["v1", "v2"], STRICT, trials=50)
    assert found is not None
    assert (found.source, found.repeated, found.flip_rate) == ("validation", 1, 0)


def test_flaky_items_call_for_another_rule() -> None:
    """Where strict takes much that changes nothing; where nothing flips, the cheapest rule will do."""
    rng = random.Random(4)
    flaky = [row for n in range(40) for row in tried("s", f"v{n}", *(float(rng.random() < 0.5) for _ in range(3)))]
    found = calibrate(attempts(flaky), [f"v{n}" for n in range(40)], STRICT, trials=120)
    assert found is not None
    own = found.rules[0]
    assert own.own
    assert own.null_accepts > 0.3
    assert found.recommended.name != "strict"
    steady = [row for n in range(40) for row in tried("s", f"v{n}", n % 2, n % 2)]
    calm = calibrate(attempts(steady), [f"v{n}" for n in range(40)], CONFIRM, trials=20)
    assert calm is not None
    assert calm.recommended.name == "strict"


def test_the_least_harmful_rule_is_recommended_where_none_is_good() -> None:
    """By its null accepts alone."""
    worths = [
        Worth(rule=rule, own=False, null_accepts=share, smallest=None, spent=1.0)
        for rule, share in ((STRICT, 0.4), (CONFIRM, 0.2))
    ]
    assert recommended(worths).rule == CONFIRM
