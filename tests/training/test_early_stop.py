"""Exact early rejection: whatever the results, the order and the waves, the verdict is that of the whole evaluation."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from skillopt_es.events.values import Measured
from skillopt_es.training.early_stop import Begun, cannot_win, lost_early, next_wave, opposed, run_order
from skillopt_es.training.gate_compare import Draw, Worth
from skillopt_es.training.gate_rules import MoreDraws, Rule, Ruling, Side, judge

RULES = (
    Rule(),
    Rule(no_regression=1, min_items=2),
    Rule(name="confirm", draws=2),
    Rule(name="confirm", draws=3, no_regression=2),
    Rule(name="paired", draws=2, standard_errors=1.0),
    Rule(name="paired", draws=3, standard_errors=0.5, min_items=3),
)
METRICS: dict[str, Worth] = {
    "hard": lambda hard, soft: hard,
    "soft": lambda hard, soft: soft,
    "mixed": lambda hard, soft: (1 - 0.3) * hard + 0.3 * soft,
}


def table(chance: random.Random, items: tuple[str, ...], level: float, kind: str, failing: float) -> Draw:
    """A draw in which some items failed, and so are not in it."""

    def outcome() -> Measured:
        if kind == "whole":
            return Measured(*(2 * [float(chance.random() < level)]))
        hard = chance.choice((0.0, 1.0, 0.5, 1 / 3)) if kind == "parts" else float(chance.random() < level)
        return Measured(hard, chance.choice((hard, 0.1, 0.7, chance.random())))

    return {item: outcome() for item in items if chance.random() >= failing}


class Case:
    """Everything that could be drawn of two texts, one random table a draw."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.items = tuple(f"v{index}" for index in range(chance.randint(1, 8)))
        self.rule = chance.choice(RULES)
        self.metric = chance.choice(sorted(METRICS))
        kind, failing = chance.choice(("whole", "parts", "any")), chance.choice((0.0, 0.0, 0.2, 0.5))
        level = chance.random()
        better = min(1.0, max(0.0, level + chance.uniform(-0.3, 0.4)))
        self.known = chance.randint(1, 3)
        self.theirs = [table(chance, self.items, level, kind, failing) for _ in range(7)]
        self.ours = [table(chance, self.items, better, kind, failing) for _ in range(4)]
        self.bonus = chance.choice((0.0, 0.0, 0.05, -0.05, 1 / 3, -1 / 3))

    def sides(self, current: int, candidate: int) -> tuple[Side, Side]:
        return (
            Side(draws=tuple(self.theirs[:current]), known=self.known),
            Side(draws=tuple(self.ours[:candidate]), bonus=self.bonus),
        )

    def whole(self) -> Ruling:
        """The ruling when every draw is made to its end."""
        current, candidate = self.known, 0
        while isinstance(found := self.judged(current, candidate), MoreDraws):
            current, candidate = found.current or current, found.candidate or candidate
        return found

    def judged(self, current: int, candidate: int) -> Ruling | MoreDraws:
        return judge(self.rule, *self.sides(current, candidate), METRICS[self.metric])

    def in_waves(self, size: int) -> tuple[Ruling, int]:
        """The ruling when draws end early, and how many items were not run."""
        current, candidate, worth = self.known, 0, METRICS[self.metric]
        while isinstance(found := self.judged(current, candidate), MoreDraws):
            current = found.current or current
            if not found.candidate:
                continue
            left, right = self.sides(current, candidate)
            order = run_order(self.items, opposed(self.rule, left, right)[0], worth)
            drawn, done = self.ours[candidate], set[str]()
            while (wave := next_wave(order, done, size))[0]:
                begun = Begun(
                    measured={item: drawn[item] for item in done if item in drawn},
                    failed={item for item in done if item not in drawn},
                )
                if cannot_win(self.rule, left, right, begun, self.items, worth):
                    ruling = lost_early(self.rule, left, right, begun, self.items, worth)
                    return ruling, len(self.items) - len(done)
                done.update(wave[0])
            candidate = found.candidate
        return found, 0

    @property
    def pauses(self) -> bool:
        """Whether a whole draw measured nothing: then a run pauses, and nothing is decided."""
        return not all((*self.ours, *self.theirs))


@pytest.mark.parametrize("tables", [1_500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_score_tables_give_the_verdicts_of_whole_evaluations_with_every_wave_size(tables: int) -> None:
    saved: Counter[bool] = Counter()
    cases = 0
    seed = 0
    while cases < tables:
        seed += 1
        case = Case(seed)
        if case.pauses:
            continue
        cases += 1
        whole = case.whole()
        for size in range(1, len(case.items) + 1):
            early, left_out = case.in_waves(size)
            assert (early.verdict, early.reason) == (whole.verdict, whole.reason), (seed, size)
            assert early.exact == (left_out == 0)
            if left_out:
                assert early.comparison.candidate_value >= _whole_value(whole, early) - 1e-9, (seed, size)
            saved[left_out > 0] += 1
    assert saved[True] > saved[False] / 4


def _whole_value(whole: Ruling, early: Ruling) -> float:
    same = whole.comparison.candidate_draws == early.comparison.candidate_draws
    return whole.comparison.candidate_value if same else -1.0


def test_what_the_current_skill_failed_is_run_first() -> None:
    current: Draw = {"a": Measured(1, 1), "b": Measured(0, 0), "d": Measured(0.5, 0.5)}
    assert run_order(("a", "b", "c", "d"), (current,), METRICS["hard"]) == ("b", "d", "a", "c")


def test_against_a_perfect_skill_nothing_is_run() -> None:
    current = Side(draws=({"a": Measured(1, 1), "b": Measured(1, 1)},), known=1)
    assert cannot_win(Rule(), current, Side(), Begun(measured={}), ("a", "b"), METRICS["hard"])


def test_a_tie_ends_an_evaluation_of_whole_points() -> None:
    current = Side(draws=({"a": Measured(0, 0), "b": Measured(1, 1)},), known=1)
    begun = Begun(measured={"a": Measured(0, 0)})
    assert cannot_win(Rule(), current, Side(), begun, ("a", "b"), METRICS["hard"])
    begun = Begun(measured={"a": Measured(1, 1)})
    assert not cannot_win(Rule(), current, Side(), begun, ("a", "b"), METRICS["hard"])


def test_an_item_that_may_still_fail_does_not_count_against_the_candidate() -> None:
    current = Side(draws=({"a": Measured(0, 0), "b": Measured(1, 1)},), known=1)
    lower = Side(bonus=-0.4)
    begun = Begun(measured={"a": Measured(1, 1)})
    assert not cannot_win(Rule(), current, lower, begun, ("a", "b"), METRICS["hard"])


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (set(), (("a", "b"), True)),
        ({"a"}, (("b",), False)),
        ({"a", "b"}, (("c",), True)),
        ({"a", "b", "c"}, ((), False)),
    ],
)
def test_a_wave_that_was_begun_is_run_to_its_end(done: set[str], expected: tuple[tuple[str, ...], bool]) -> None:
    assert next_wave(("a", "b", "c"), done, 2) == expected
