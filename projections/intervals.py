"""
How far a score or a difference can be trusted: Wilson intervals, and exact tests of results paired by item. Pure.

Everything is told of items, not of draws: several draws of one item say less than as many items would.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import Measured, Outcome

LEVEL = 0.05
"""How often what is called a difference here would show where there is none."""

_Z = 1.959963984540054  # of the normal distribution, two-sided, at LEVEL
_SAME = 1e-9  # scores that differ by less are the same: they are sums of other floats


@frozen
class Interval:
    """From where to where a true score may lie, with 95 % confidence."""

    low: float
    high: float


def wilson(mean: float, items: int) -> Interval | None:
    """
    Wilson's interval of a mean over items, each from 0 to 1; None where nothing was measured.

    It is that of passes and failures; where items have parts of a point, the true one is at most as wide.
    """
    if items < 1:
        return None
    share = min(1.0, max(0.0, mean))
    square = _Z * _Z
    centre = share + square / (2 * items)
    reach = _Z * math.sqrt(share * (1 - share) / items + square / (4 * items * items))
    scale = 1 + square / items
    low = 0.0 if share == 0 else (centre - reach) / scale
    high = 1.0 if share == 1 else (centre + reach) / scale
    return Interval(max(0.0, low), min(1.0, high))


def sign_test(won: int, lost: int) -> float:
    """
    How probable at least so uneven a split is, either way, if each item that turned had been as likely to turn back.

    With passes and failures this is McNemar's exact test.
    """
    turned = won + lost
    tail = sum(math.comb(turned, k) for k in range(min(won, lost) + 1))
    return min(1.0, float(2 * tail / 2**turned))


def fewest_turned() -> int:
    """How many items have to turn at least, all of them the same way, before that is more than noise."""
    count = 1
    while sign_test(count, 0) > LEVEL:
        count += 1
    return count


@frozen(kw_only=True)
class Paired:
    """Two texts on the same items: how many were measured under both, and which of them the second won and lost."""

    items: int
    won: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def probability(self) -> float:
        """How probable at least so uneven a split would be without any difference."""
        return sign_test(len(self.won), len(self.lost))

    @property
    def within_noise(self) -> bool:
        """Whether chance alone explains it."""
        return self.probability > LEVEL

    @property
    def resolvable(self) -> bool:
        """Whether so many items could show any difference at all."""
        return self.items >= fewest_turned()


def paired(before: Mapping[str, float], after: Mapping[str, float]) -> Paired | None:
    """The second text against the first, by the items that were measured under both; None where there are none."""
    both = [item for item in after if item in before]
    if not both:
        return None
    return Paired(
        items=len(both),
        won=tuple(item for item in both if after[item] > before[item] + _SAME),
        lost=tuple(item for item in both if after[item] < before[item] - _SAME),
    )


def hard_means(results: Mapping[str, Collection[Outcome]]) -> dict[str, float]:
    """Each item's hard score, the mean of its draws; items that were never measured are left out."""
    means = {}
    for item, outcomes in results.items():
        seen = [outcome.hard for outcome in outcomes if isinstance(outcome, Measured)]
        if seen:
            means[item] = sum(seen) / len(seen)
    return means


def draws(results: Mapping[str, Sequence[Outcome]]) -> tuple[int, int]:
    """The fewest and the most times that an item of these was measured; (0, 0) for none."""
    counts = [sum(isinstance(outcome, Measured) for outcome in outcomes) for outcomes in results.values()]
    known = [count for count in counts if count]
    return (min(known), max(known)) if known else (0, 0)
