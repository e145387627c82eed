"""
What a gate rule is worth: how often it takes a text that changes nothing, or that changes items for no gain, and what
gain it sees.

The rules themselves are asked (`Rule.judge`), on drawn results: an item is solved under a text with a chance of
its own, or is not. Drawn with a seed, so that the same question has the same answer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import Measured
from skillopt_es.gate.comparing import NOTHING_KNOWN, Known, MoreDraws, Ruling, Side
from skillopt_es.gate.noise import Draw
from skillopt_es.gate.rules import Rule

Chances = Mapping[str, float]
"""How often each item passes under a text."""

Change = Callable[[Chances, random.Random], Chances]
"""What an edit makes of the items' chances."""

# The ends of a score: a made item passes or fails whole, where the rules differ most.
PASS, FAIL = Measured(1.0, 1.0), Measured(0.0, 0.0)


@frozen(kw_only=True)
class Power:
    """Of how many trials which share was taken, and the mean number of item attempts that one of them cost."""

    trials: int
    accepted: float
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


def duel(
    rule: Rule,
    drawn_before: tuple[Draw, ...],
    current: Callable[[], Draw],
    candidate: Callable[[], Draw],
    known: Known = NOTHING_KNOWN,
) -> Duel:
    """A candidate against a text of which some draws are there: others are made as the rule asks for them."""
    left, right = drawn_before, tuple[Draw, ...]()
    spent = 0
    while True:
        found = rule.judge(Side(draws=left, known=len(drawn_before)), Side(draws=right), _hard, known)
        if not isinstance(found, MoreDraws):
            return Duel(found, left, right, spent)
        left = (*left, _drawn_again(current(), left, found.items)) if found.current else left
        right = (*right, _drawn_again(candidate(), right, found.items)) if found.candidate else right
        each = len(found.items) or len(left[0])
        spent += each * (bool(found.current) + bool(found.candidate))


def _drawn_again(draw: Draw, before: tuple[Draw, ...], items: tuple[str, ...]) -> Draw:
    """A draw of all items, or of these, beside which the others count as they did first."""
    return {**before[0], **{item: draw[item] for item in items}} if items else draw


def unchanged(chances: Chances, rng: random.Random) -> Chances:
    """A text compared with itself."""
    return chances


def better(gain: float) -> Change:
    """A text whose mean is `gain` (a share of 1) higher."""
    return lambda chances, rng: improved(chances, gain, rng)


def churning(share: float) -> Change:
    """A text that turns such a share of the items, for no gain: each turned item gets the chance of another one."""
    return lambda chances, rng: churned(chances, share, rng)


def power(rule: Rule, worlds: Sequence[Chances], change: Change = unchanged, *, seed: int, before: int = 1) -> Power:
    """How often a changed text is taken, one trial a world; `before` draws of the current text are there."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw is the point
    duels = [_trial(rule, world, change, before, rng) for world in worlds]
    taken = sum(found.ruling.verdict == "accept" for found in duels)
    return Power(trials=len(duels), accepted=taken / len(duels), spent=sum(found.spent for found in duels) / len(duels))


def _trial(rule: Rule, current: Chances, change: Change, before: int, rng: random.Random) -> Duel:
    candidate = change(current, rng)
    there = tuple(drawn(current, rng) for _ in range(before))
    return duel(rule, there, lambda: drawn(current, rng), lambda: drawn(candidate, rng))


def improved(chances: Chances, gain: float, rng: random.Random) -> Chances:
    """
    The same items with a mean that is `gain` higher: as many of them as that takes pass in every draw.

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


def most_churn(chances: Chances) -> float:
    """The largest share of results that an edit can turn for no gain: none where every item does the same."""
    ordered, count = sorted(chances.values()), len(chances)
    apart = sum((2 * rank - count + 1) * chance for rank, chance in enumerate(ordered))
    return max(0.0, 2 * apart / count**2)  # the mean distance of two of them


def churned(chances: Chances, share: float, rng: random.Random) -> Chances:
    """The same items after an edit of no effect on the mean of all items like these; `share` of the results turn."""
    most = most_churn(chances)
    often = min(1.0, share / most) if most > 0 else 0.0
    others = list(chances.values())
    return {item: rng.choice(others) if rng.random() < often else own for item, own in chances.items()}


def smallest_gain(rule: Rule, worlds: Sequence[Chances], items: int, *, wanted: float = 0.8, seed: int) -> float | None:
    """The smallest whole number of items, as a share, that is taken as often as wanted; None where no number is."""

    def seen(gained: int) -> bool:
        return _taken_often(rule, worlds, better(gained / items), wanted, seed)

    low, high = 0, 1
    while not seen(high):  # power grows with the gain
        if high == items:
            return None
        low, high = high, min(2 * high, items)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high / items


def _taken_often(rule: Rule, worlds: Sequence[Chances], change: Change, wanted: float, seed: int) -> bool:
    """Whether a change is taken in such a share of the worlds, looking no further than to where that is certain."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw is the point
    # A product of floats may be a hair above its whole number.
    enough = math.ceil(wanted * len(worlds) - 1e-9)
    taken = 0
    for left, world in zip(range(len(worlds), 0, -1), worlds, strict=True):
        if taken >= enough or taken + left < enough:
            break
        taken += _trial(rule, world, change, 1, rng).ruling.verdict == "accept"
    return taken >= enough
