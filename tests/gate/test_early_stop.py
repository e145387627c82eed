"""Exact early rejection: whatever the results, the order and the waves, the verdict is that of the whole evaluation."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from skillopt_es.events.values import Measured
from skillopt_es.gate.comparing import MoreDraws, Ruling, Side
from skillopt_es.gate.early_stop import Begun, cannot_win, lost_early, next_wave, run_order
from skillopt_es.gate.noise import Draw, Worth
from skillopt_es.gate.rules import NotWorse, NotWorseRetest, Paired, Retest, Rule, Strict

RULES = (
    Strict(),
    Strict(no_regression=1, min_items=2),
    Paired(repeats=2, standard_errors=1.0),
    Paired(repeats=3, standard_errors=0.5, min_items=3),
    Retest(repeats=3),
    Retest(repeats=2, no_regression=1),
    NotWorseRetest(repeats=3),
    NotWorse(),
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


def _within(draw: Draw, first: Draw) -> Draw:
    return {item: draw.get(item, outcome) for item, outcome in first.items()}


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
        if self.rule.retests:  # further draws are of what was measured in the first ones
            self.theirs, self.ours = ([_within(each, draws[0]) for each in draws] for draws in (self.theirs, self.ours))
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
        return self.rule.judge(*self.sides(current, candidate), METRICS[self.metric])

    def in_waves(self, size: int) -> tuple[Ruling, int]:
        """The ruling when draws end early, and how many items were not run."""
        current, candidate, worth = self.known, 0, METRICS[self.metric]
        while isinstance(found := self.judged(current, candidate), MoreDraws):
            current = found.current or current
            if not found.candidate or found.items:  # what turned is drawn again without waves
                candidate = found.candidate or candidate
                continue
            left, right = self.sides(current, candidate)
            order = run_order(self.items, self.rule.opposed(left, right)[0], worth)
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


@pytest.mark.parametrize("tables", [600, pytest.param(4_000, marks=pytest.mark.slow)])
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
    assert cannot_win(Strict(), current, Side(), Begun(measured={}), ("a", "b"), METRICS["hard"])


def test_a_tie_ends_an_evaluation_of_whole_points() -> None:
    current = Side(draws=({"a": Measured(0, 0), "b": Measured(1, 1)},), known=1)
    begun = Begun(measured={"a": Measured(0, 0)})
    assert cannot_win(Strict(), current, Side(), begun, ("a", "b"), METRICS["hard"])
    begun = Begun(measured={"a": Measured(1, 1)})
    assert not cannot_win(Strict(), current, Side(), begun, ("a", "b"), METRICS["hard"])


def test_an_item_that_may_still_fail_does_not_count_against_the_candidate() -> None:
    current = Side(draws=({"a": Measured(0, 0), "b": Measured(1, 1)},), known=1)
    lower = Side(bonus=-0.4)
    begun = Begun(measured={"a": Measured(1, 1)})
    assert not cannot_win(Strict(), current, lower, begun, ("a", "b"), METRICS["hard"])


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


STRICT, PAIRED = Strict(), Paired(repeats=3, standard_errors=0.5)
HARD, SOFT = METRICS["hard"], METRICS["soft"]


def drawn(results: str) -> Draw:
    """A digit is tenths of a score; `-` was not measured."""
    return {f"v{at}": Measured(int(each) / 10, int(each) / 10) for at, each in enumerate(results) if each != "-"}


def whole(results: str) -> Draw:
    """`1` for a solved item, `0` for another."""
    return {f"v{at}": Measured(float(each), float(each)) for at, each in enumerate(results) if each != "-"}


def test_items_on_which_the_current_skill_did_worst_come_first() -> None:
    """By its mean over all draws; those on which it was not measured come last."""
    assert run_order(("v0", "v1", "v2", "v3"), (drawn("9-16"), drawn("2-3-")), SOFT) == ("v2", "v0", "v3", "v1")


def test_a_wave_goes_on_where_it_was_interrupted() -> None:
    """Then nothing is judged before it is whole."""
    order = ("a", "b", "c", "d", "e")
    assert next_wave(order, (), 2) == (("a", "b"), True)
    assert next_wave(order, ("a",), 2) == (("b",), False)
    assert next_wave(order, ("a", "b", "c", "d"), 2) == (("e",), True)
    assert next_wave(order, order, 2) == ((), False)


def test_each_rule_sets_its_next_draw_against_its_own() -> None:
    """`paired` all draws so far with as many of the current skill, the others one draw with one."""
    one, two, three, four = map(drawn, ("1", "2", "3", "4"))
    current = Side(draws=(one, two, three), known=1)
    assert PAIRED.opposed(current, Side(draws=(four,))) == ((one, two), (four,))
    assert STRICT.opposed(current, Side(draws=())) == ((one,), ())


@pytest.mark.parametrize(
    ("current", "begun", "failed", "bonus", "lost"),
    [
        ("110", "0", "", (0.0, 0.0), "strict paired"),
        ("110", "1", "", (0.0, 0.0), ""),
        ("111", "0", "", (0.0, 0.0), "strict paired"),
        ("100", "", "v1 v2", (0.0, 0.0), "strict paired"),
        ("000", "0", "v1 v2", (0.0, 0.0), "strict paired"),
        ("000", "0", "v1", (0.0, 0.0), ""),
        ("11", "0", "", (0.0, 0.5), ""),
        ("11", "0", "", (0.0, 0.25), "strict paired"),
        ("00", "10", "", (0.0, -0.75), "strict paired"),
        ("00", "10", "", (0.5, 0.0), "paired"),  # a tie, but for the last bit: strict runs the whole to see
        ("00", "10", "", (0.75, 0.0), "strict paired"),
    ],
)
def test_a_candidate_that_cannot_get_ahead_has_lost(
    current: str, begun: str, failed: str, bonus: tuple[float, float], lost: str
) -> None:
    """Even if it solved all that was not run; a tie is no win, and a failed item counts for neither."""
    items = tuple(f"v{at}" for at in range(len(current)))
    theirs, ours = Side(draws=(whole(current),), bonus=bonus[0]), Side(bonus=bonus[1])
    so_far = Begun(measured=whole(begun), failed=failed.split())
    for rule in (STRICT, PAIRED):
        assert cannot_win(rule, theirs, ours, so_far, items, HARD) is (rule.name in lost.split())


def test_an_item_that_was_not_run_is_at_most_solved() -> None:
    """By either score, with or without earlier draws of it."""
    items = ("v0", "v1")
    for worth in (HARD, SOFT):
        once = Side(draws=(drawn("99"),))
        assert cannot_win(STRICT, once, Side(), Begun(measured=drawn("7")), items, worth)
        assert not cannot_win(STRICT, once, Side(), Begun(measured=drawn("9")), items, worth)
        twice = Side(draws=(drawn("99"), drawn("99")))
        earlier = Side(draws=(drawn("99"),))
        assert cannot_win(PAIRED, twice, earlier, Begun(measured=drawn("7")), items, worth)
        assert not cannot_win(PAIRED, twice, earlier, Begun(measured=drawn("9")), items, worth)


@pytest.mark.parametrize("rule", [STRICT, PAIRED])
def test_a_candidate_without_an_item_to_compare_it_on_has_not_lost_early_by_strict(rule: Rule) -> None:
    """The whole evaluation says so; by `paired` a tie is certain."""
    current = Side(draws=(drawn("-5"),))
    assert cannot_win(rule, current, Side(), Begun(measured=drawn("3")), ("v0",), SOFT) is (rule is PAIRED)


def test_a_tie_that_is_won_by_a_rounding_is_run_to_its_end() -> None:
    """The verdict is that of the whole evaluation, to the last bit of its sums."""
    items, current, candidate = ("v0", "v1", "v2"), Side(draws=(drawn("321"),)), drawn("123")
    whole_ruling = STRICT.judge(current, Side(draws=(candidate,)), SOFT)
    assert isinstance(whole_ruling, Ruling)
    assert whole_ruling.verdict == "accept"
    assert not cannot_win(STRICT, current, Side(), Begun(measured=candidate), items, SOFT)


def test_what_is_told_of_a_candidate_that_lost_is_the_most_it_could_have_come_to() -> None:
    """What failed counts for nothing, what was not run as solved; only what was measured is counted as such."""
    current = Side(draws=(drawn("9999"),))
    found = lost_early(
        STRICT, current, Side(), Begun(measured=drawn("2"), failed=("v1",)), ("v0", "v1", "v2", "v3"), SOFT
    )
    assert (found.verdict, found.reason, found.exact) == ("reject", "not_better", False)
    assert found.comparison.candidate.soft == pytest.approx((0.2 + 1 + 1) / 3)
    assert found.comparison.candidate.hard == pytest.approx((0.2 + 1 + 1) / 3)
    assert (found.comparison.candidate.measured, found.comparison.items) == (1, ("v0",))
    assert (found.comparison.error, found.comparison.lost) == (None, ("v0",))
