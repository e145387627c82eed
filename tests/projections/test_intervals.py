"""Intervals and tests of differences: published values, and what holds for any."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Failed, Measured, NotRun
from skillopt_es.projections.intervals import (
    Paired,
    draws,
    fewest_turned,
    hard_means,
    holm,
    judged,
    judged_among,
    paired,
    sign_test,
    turned_together,
    wilson,
    wilson_by_family,
)
from skillopt_es.projections.item_results import families_of


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
    assert judged(Paired(items=12, won=tuple("abcde"), lost=())).claim == "noise"
    assert judged(Paired(items=12, won=tuple("abcdef"), lost=())).claim == "more"
    assert judged(Paired(items=5, won=tuple("abcde"), lost=())).claim == "few_items"


def outcomes(**hard: float | Sequence[float]) -> dict[str, tuple[Measured, ...]]:
    """Each item's results, one or several."""
    rows = {item: [each] if isinstance(each, float) else each for item, each in hard.items()}
    return {item: tuple(Measured(one, one) for one in row) for item, row in rows.items()}


def test_pairs_are_joined_by_item() -> None:
    """Whatever their order; what was measured under one text only is left out, and rounding turns nothing."""
    before = outcomes(a=0.0, b=1.0, c=1.0, d=0.1 + 0.2)
    assert paired(before, outcomes(d=0.3, c=0.0, a=1.0, e=1.0)) == Paired(
        items=3, won=("a",), lost=("c",), could_win=("d", "a"), could_lose=("d", "c")
    )
    assert paired(outcomes(a=1.0), outcomes(b=1.0)) is None


def test_of_each_item_as_many_draws_of_both_texts_count() -> None:
    """A mean of six is seldom 1, one draw often: that is no difference of texts."""
    one = paired(outcomes(a=[1.0, 0.0, 1.0]), outcomes(a=1.0))
    assert one == Paired(items=1, won=(), lost=(), could_lose=("a",))
    two = paired(outcomes(a=[0.0, 1.0]), outcomes(a=[1.0, 0.0, 0.0]))
    assert two == Paired(items=1, won=(), lost=(), could_win=("a",), could_lose=("a",))


def test_unequal_draws_find_a_difference_in_no_more_nulls_than_they_may() -> None:
    """One text against itself, with six draws and one; 40 items that mostly pass."""
    rng = random.Random(3)
    found, trials = 0, 300
    for _ in range(trials):
        six, one = (
            {f"x{n}": tuple(_coin(0.8, rng) for _ in range(count)) for n in range(40)} for count in (6, 1)
        )  # fmt: skip
        pair = paired(six, one)
        assert pair is not None
        found += not judged(pair).within_noise
    assert found / trials <= 0.08


def _coin(chance: float, rng: random.Random) -> Measured:
    hard = float(rng.random() < chance)
    return Measured(hard, hard)


FAMILIES = (
    pytest.param(40, 10, id="10 families of 4"),
    pytest.param(40, 4, id="4 families of 10"),
    pytest.param(100, 10, id="10 families of 10"),
    pytest.param(42, 14, id="14 families of 3"),
)


@pytest.mark.parametrize(("items", "families"), FAMILIES)
@pytest.mark.parametrize("spread", [0.0, 1.0, 1000.0], ids=["together", "akin", "alone"])
def test_an_interval_by_type_covers_what_it_says(items: int, families: int, spread: float) -> None:
    """Whether items of a family pass together, are akin, or have nothing in common: nominal is 95 %."""
    rng, trials, truth = random.Random(11), 400, 0.6
    covered = by_item = 0
    for _ in range(trials):
        chances = [
            rng.betavariate(truth * spread, (1 - truth) * spread) if spread else float(rng.random() < truth)
            for _ in range(families)
        ]
        means = {f"x{n}": float(rng.random() < chances[n % families]) for n in range(items)}
        kinds = {f"x{n}": f"f{n % families}" for n in range(items)}
        found, alone = wilson_by_family(means, kinds), wilson(sum(means.values()) / items, items)
        assert found is not None
        assert alone is not None
        covered += found.low <= truth <= found.high
        by_item += alone.low <= truth <= alone.high
    assert covered / trials >= 0.92
    assert (by_item / trials >= 0.92) == (spread == 1000.0)  # what it is for


def test_without_two_families_there_is_no_interval_by_type() -> None:
    """Items alone say nothing of types."""
    assert wilson_by_family({"a": 1.0, "b": 0.0}, {}) is None
    assert wilson_by_family({"a": 1.0, "b": 0.0}, {"a": "x", "b": "x"}) is None


@given(st.lists(st.sampled_from([-1, 1]), max_size=12))
def test_families_of_one_item_each_are_judged_as_items(nets: list[int]) -> None:
    """The same test."""
    won = sum(net > 0 for net in nets)
    assert turned_together(nets) == pytest.approx(sign_test(won, len(nets) - won))


def test_items_that_turn_together_are_fewer_than_they_look() -> None:
    """Twelve items in three families against none."""
    families = {f"x{n}": f"f{n % 3}" for n in range(12)}
    pair = Paired(items=12, won=tuple(families), lost=(), could_win=tuple(families), families=families)
    assert pair.probability < 0.001
    assert (pair.by_family, judged(pair).claim) == (0.25, "few_types")  # three families could never show more
    assert turned_together([5, -5]) == 1
    assert turned_together([3, 3, 2, 2, 1, 1]) == pytest.approx(2 / 64)


def test_only_types_that_could_turn_are_counted() -> None:
    """Seven types, of which two pass from the start: five could win, and five can show nothing of other types."""
    types = {f"x{n}": f"t{n % 7}" for n in range(15)}
    before = {item: (Measured(hard, hard),) for item, kind in types.items() for hard in [float(kind in ("t5", "t6"))]}
    pair = paired(before, dict.fromkeys(types, (Measured(1.0, 1.0),)), types)
    assert pair is not None
    assert (len(pair.won), pair.kinds_that_could, pair.kinds_turned) == (11, 5, 5)
    assert judged(pair).claim == "few_types"
    back = paired(dict.fromkeys(types, (Measured(1.0, 1.0),)), before, types)
    assert back is not None
    assert (back.kinds_that_could, back.kinds_turned, judged(back).claim) == (7, 5, "one_or_two_types")


@given(st.dictionaries(st.integers(), st.floats(0, 1), max_size=9))
def test_a_correction_makes_no_chance_smaller_and_keeps_their_order(chances: dict[int, float]) -> None:
    """And multiplies the smallest by how many there are."""
    found = holm(chances)
    assert all(found[name] >= chance for name, chance in chances.items())
    ordered = sorted(chances, key=lambda name: chances[name])
    assert [found[name] for name in ordered] == sorted(found.values())
    if ordered:
        assert found[ordered[0]] == min(1.0, chances[ordered[0]] * len(chances))


def test_with_more_comparisons_more_has_to_turn() -> None:
    """Six of six items are more than noise alone, and not as one of seven comparisons."""
    pair = Paired(items=12, won=tuple("abcdef"), lost=())
    same = Paired(items=12, won=(), lost=())
    found = judged_among({"a": pair, **{f"b{n}": same for n in range(6)}})
    assert (judged(pair).claim, found["a"].claim) == ("more", "noise")
    assert found["a"].probability == pytest.approx(7 * pair.probability)


def test_a_family_is_a_type_that_is_not_everybodys() -> None:
    """Nor only its own."""
    assert families_of({"a": "x", "b": "x", "c": "y"}) == {"a": "x", "b": "x", "c": "y"}
    assert families_of({"a": "x", "b": "x", "c": ""}) == {"a": "x", "b": "x"}
    assert families_of({"a": "x", "b": "x"}) == families_of({"a": "x", "b": "y"}) == families_of({"a": ""}) == {}


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
