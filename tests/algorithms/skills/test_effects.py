"""What changes do is fitted to draws under parts of them: which help and which harm, whatever items are like."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.algorithms.skills.effects import Draw, effects, standard_errors
from skillopt_es.engine.draws import some_of

CHANGES = ("a", "b", "c")


def test_what_nothing_is_known_of_has_no_effect() -> None:
    assert effects([], CHANGES) == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert effects([Draw("x", frozenset(), 1.0), Draw("x", frozenset({"a"}), 0.0)], CHANGES)["b"] == 0.0


def test_an_items_own_level_says_nothing() -> None:
    """An easy item under a change is compared with itself, not with a hard one without it."""
    easy = [Draw("easy", frozenset(), 1.0), Draw("easy", frozenset({"a"}), 1.0)]
    hard = [Draw("hard", frozenset(), 0.0), Draw("hard", frozenset(), 0.0)]
    assert effects([*easy, *hard], ("a",)) == {"a": 0.0}


def test_two_changes_that_are_always_together_share_what_they_do_and_a_draw_with_one_tells_them_apart() -> None:
    both = [draw for n in range(8) for draw in (Draw(f"{n}", frozenset(), 1.0), Draw(f"{n}", frozenset("ab"), 0.0))]
    together = effects(both, ("a", "b"))
    assert together["a"] == together["b"] < 0
    apart = effects([*both, *(Draw(f"{n}", frozenset("a"), 1.0) for n in range(4))], ("a", "b"))
    assert apart["a"] > -0.2
    assert apart["b"] < -0.6


@given(
    levels=st.lists(st.floats(0, 1), min_size=6, max_size=20),
    true=st.lists(st.sampled_from([-0.75, -0.25, 0.25, 0.75]), min_size=3, max_size=3),
    seed=st.integers(0, 999),
)
def test_without_noise_every_effect_has_its_sign(levels: list[float], true: list[float], seed: int) -> None:
    """Three draws an item: without, with all, and with a part."""
    does = dict(zip(CHANGES, true, strict=True))
    draws = [
        Draw(f"{n}", frozenset(on), level + sum(does[change] for change in on))
        for n, level in enumerate(levels)
        for on in ((), CHANGES, (CHANGES[n % 3],), some_of(CHANGES, f"{seed} {n}"))
    ]
    found = effects(draws, CHANGES)
    assert all(found[change] * does[change] > 0 for change in CHANGES)


@given(st.permutations(range(5)), st.integers(0, 99))
def test_the_order_of_draws_and_names_does_not_matter(order: list[int], seed: int) -> None:
    chance = random.Random(seed)
    draws = [Draw(f"{n}", frozenset(on), float(chance.randrange(2))) for n in range(6) for on in ("", "ab", "b", "c")]
    found = effects(draws, CHANGES)
    assert effects(draws[::-1], CHANGES[::-1]) == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize(("noise", "least"), [(0.0, 0.95), (0.05, 0.9), (0.15, 0.85)])
def test_it_finds_which_of_two_edits_of_a_skill_harms(noise: float, least: float) -> None:
    """Over 100 drawn worlds: 16 items, each fails half of the time before, a dozen of them drawn under one edit."""
    right = 0
    for seed in range(100):
        chance = random.Random(seed)

        def drawn(passes: bool, chance: random.Random = chance) -> float:
            return float(passes != (chance.random() < noise))

        draws = []
        for item in range(16):
            base, helped, harmed = (chance.random() < share for share in (0.5, 0.7, 0.7))
            for on in ("", "ab", *([*some_of("ab", f"{seed} {item}")] if item < 12 else [])):
                passes = not (harmed and "b" in on) and (base or (helped and "a" in on))
                draws.append(Draw(f"{item}", frozenset(on), drawn(passes)))
        found = effects(draws, ("a", "b"))
        right += found["a"] >= 0 > found["b"]
    assert right >= least * 100


def test_how_sure_an_effect_is_depends_on_how_items_agree_and_how_many_there_are() -> None:
    """A change that breaks every item is surer than one that breaks half of them; more items make both surer."""

    def both(broken: list[bool]) -> list[Draw]:
        without = [Draw(f"{n}", frozenset(), 1.0) for n in range(len(broken))]
        return [*without, *(Draw(f"{n}", frozenset("a"), float(not each)) for n, each in enumerate(broken))]

    sure = standard_errors(both([True] * 12), ("a",))["a"]
    unsure = standard_errors(both([True, False] * 6), ("a",))["a"]
    surer = standard_errors(both([True, False] * 24), ("a",))["a"]
    assert 0 < sure < surer < unsure


def test_of_what_too_few_draws_tell_no_error_is_told() -> None:
    """One item, tried twice, fits whatever it shows; and what nobody noticed has none."""
    one = [Draw("x", frozenset(), 1.0), Draw("x", frozenset("a"), 0.0)]
    assert standard_errors(one, ("a",)) == {}
    more = [*one, Draw("y", frozenset(), 1.0), Draw("y", frozenset("a"), 1.0)]
    assert [*standard_errors(more, CHANGES)] == ["a"]


def test_the_true_effect_is_as_far_away_as_the_error_says() -> None:
    """Over many made worlds with chance in them: within two standard errors nine times in ten."""
    near = 0
    for seed in range(200):
        chance = random.Random(seed)
        draws = [
            Draw(f"{n}", frozenset(on), float(chance.random() < (0.8 if "a" not in on else 0.4)))
            for n in range(24)
            for on in ((), "ab", "a", "b")
        ]
        found, error = effects(draws, ("a", "b"))["a"], standard_errors(draws, ("a", "b"))["a"]
        near += abs(found + 0.4) < 2 * error
    assert near > 180
