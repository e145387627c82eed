"""
What a gate rule is worth on items that flip: how often it takes a text that changes nothing, and what gain it sees.

The rules themselves are asked (`gate_rules.judge`), on drawn results: an item is solved under a text with a chance of
its own, or is not. Drawn with a seed, so that the same question has the same answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from skillopt_es.events.values import Measured
from skillopt_es.training.gate_rules import Draw, MoreDraws, Rule, Ruling, Side, judge

Chances = Mapping[str, float]
"""How often each item passes under a text."""

Drawn = Callable[[random.Random], Chances]
"""The items' chances, which are not known exactly: drawn anew for each trial."""

PASS, FAIL = Measured(1.0, 1.0), Measured(0.0, 0.0)


@frozen(kw_only=True)
class Power:
    """Of how many trials which share was taken, and the mean number of item attempts that one of them cost."""

    trials: int
    accepted: float
    spent: float


@frozen(kw_only=True)
class Drift:
    """After some steps of texts that change nothing: how far the recorded score stands above the truth."""

    steps: int
    accepted: float
    points: float
    spent: float


def _hard(hard: float, soft: float) -> float:
    return hard  # of results that are solved or not, every metric is the same line


def drawn(chances: Chances, rng: random.Random) -> Draw:
    """One evaluation of a text."""
    chance = rng.random
    return {item: PASS if chance() < often else FAIL for item, often in chances.items()}


@frozen
class Duel:
    """How one comparison ended: the ruling, and all draws of both texts."""

    ruling: Ruling
    current: tuple[Draw, ...]
    candidate: tuple[Draw, ...]
    spent: int


def duel(rule: Rule, known: tuple[Draw, ...], current: Chances, candidate: Chances, rng: random.Random) -> Duel:
    """A candidate against a text of which some draws are known: draws are made as the rule asks for them."""
    left, right = known, tuple[Draw, ...]()
    while True:
        found = judge(rule, Side(draws=left, known=len(known)), Side(draws=right), _hard)
        if not isinstance(found, MoreDraws):
            made = len(left) - len(known) + len(right)
            return Duel(found, left, right, made * len(current))
        left = (*left, drawn(current, rng)) if found.current else left
        right = (*right, drawn(candidate, rng)) if found.candidate else right


def power(
    rule: Rule,
    chances: Drawn,
    *,
    gain: float = 0.0,
    trials: int,
    seed: int,
) -> Power:
    """How often a text that is `gain` better (a share of 1) is taken; without a gain, a text against itself."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw is the point
    taken = spent = 0
    for _ in range(trials):
        current = chances(rng)
        candidate = improved(current, gain, rng) if gain else current
        found = duel(rule, (drawn(current, rng),), current, candidate, rng)
        taken += found.ruling.verdict == "accept"
        spent += found.spent
    return Power(trials=trials, accepted=taken / trials, spent=spent / trials)


def improved(chances: Chances, gain: float, rng: random.Random) -> Chances:
    """
    The same items with a mean that is `gain` higher: as many as it takes come to pass always.

    The worst come first, ties in a drawn order; the last one by the part of it that is left.
    """
    better = dict(chances)
    left = gain * len(better)
    for item in sorted(better, key=lambda item: (better[item], rng.random())):
        step = min(left, 1.0 - better[item])
        better[item] += step
        left -= step
        if left <= 0:
            break
    return better


def drift(rule: Rule, chances: Drawn, *, steps: int = 20, trials: int, seed: int, fresh: bool) -> Drift:
    """
    Steps in a row whose candidates change nothing.

    The recorded score is the mean over all draws that decided; with `fresh`, of one that decided nothing.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw is the point
    above = taken = 0.0
    spent = 0
    for _ in range(trials):
        truth = chances(rng)
        known: tuple[Draw, ...] = (drawn(truth, rng),)
        told = drawn(truth, rng)
        for _ in range(steps):
            found = duel(rule, known, truth, truth, rng)
            spent += found.spent
            known = found.current
            if found.ruling.verdict == "accept":
                taken += 1
                known = found.candidate
                if fresh:
                    told = drawn(truth, rng)
                    spent += len(truth)
        recorded = _value(told) if fresh else sum(map(_value, known)) / len(known)
        above += recorded - sum(truth.values()) / len(truth)
    return Drift(
        steps=steps, accepted=taken / trials / steps, points=100 * above / trials, spent=spent / trials / steps
    )


def _value(draw: Draw) -> float:
    return sum(outcome.hard for outcome in draw.values()) / len(draw)


def always(chances: Chances) -> Drawn:
    """Chances that are known."""
    return lambda rng: chances


def smallest_gain(
    rule: Rule,
    chances: Drawn,
    items: int,
    *,
    wanted: float = 0.8,
    trials: int,
    seed: int,
) -> float | None:
    """The smallest whole number of items, as a share, that is taken as often as wanted; None where no number is."""
    low, high = 0, items
    if power(rule, chances, gain=1.0, trials=trials, seed=seed).accepted < wanted:
        return None
    while high - low > 1:  # power grows with the gain
        middle = (low + high) // 2
        seen = power(rule, chances, gain=middle / items, trials=trials, seed=seed)
        low, high = (low, middle) if seen.accepted >= wanted else (middle, high)
    return high / items


@frozen(kw_only=True)
class Counted:
    """How often an item was tried under one text, and how often it passed."""

    tried: int
    passed: int

    @property
    def scatter(self) -> float:
        """The variance of one attempt, estimated from repeats."""
        return self.passed * (self.tried - self.passed) / (self.tried * (self.tried - 1))


def scatter(counts: Iterable[Counted]) -> float | None:
    """The mean variance of one attempt, over what was tried more than once; None where nothing was."""
    repeated = [each.scatter for each in counts if each.tried > 1]
    return sum(repeated) / len(repeated) if repeated else None


def posterior(counts: Mapping[str, Counted], flipping: float) -> Drawn:
    """
    The chances that recorded attempts leave open, drawn anew for each trial.

    Each item's is a beta distribution over its own counts. Its prior is fitted to the mean of all items and to how much
    they scatter: an item that passed twice may still flip where many others do, and never does where none did.
    """
    mean = sum(each.passed / each.tried for each in counts.values()) / len(counts)
    most = mean * (1 - mean)
    if flipping <= 0 or most <= 0:
        return always({item: each.passed / each.tried for item, each in counts.items()})
    share = min(flipping / most, 0.99)
    strength = share / (1 - share)
    shapes = {
        item: (mean * strength + each.passed, (1 - mean) * strength + each.tried - each.passed)
        for item, each in counts.items()
    }
    return lambda rng: {item: rng.betavariate(*shape) for item, shape in shapes.items()}
