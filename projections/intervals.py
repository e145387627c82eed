"""
How far a score or a difference can be trusted: Wilson intervals, and exact tests of results paired by item. Pure.

Everything is told of items, not of draws: several draws of one item say less than as many items would. Where items
have types it is told of those, too: tasks of one type, which one rule may turn together, say less.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeVar

from attrs import field, frozen

from skillopt_es.events.values import Measured, Outcome
from skillopt_es.projections.item_results import Results, families_of

NO_TYPES: Mapping[str, str] = {}

LEVEL = 0.05
"""How often what is called a difference here would show where there is none."""

K = TypeVar("K", bound=Hashable)

_Z = 1.959963984540054  # of the normal distribution, two-sided, at LEVEL
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""The same of Student's t, by degrees of freedom from 1 on."""
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
    return _wilson(mean, items, _Z)


def _wilson(mean: float, items: float, z: float) -> Interval:
    share = min(1.0, max(0.0, mean))
    square = z * z
    centre = share + square / (2 * items)
    reach = z * math.sqrt(share * (1 - share) / items + square / (4 * items * items))
    scale = 1 + square / items
    # Here the formula gives 0 and 1 exactly, and floats a hair more or less.
    low = 0.0 if share == 0 else (centre - reach) / scale
    high = 1.0 if share == 1 else (centre + reach) / scale
    return Interval(max(0.0, low), min(1.0, high))


def wilson_by_family(means: Mapping[str, float], families: Mapping[str, str]) -> Interval | None:
    """
    The same over families of items that go together, as if the families had been drawn; None without two of them.

    Wilson's, of as many items as say as much as these families do, with Student's t for how few they are. Where all
    items do the same nothing shows how they go together: then each family counts once.
    """
    groups = _by_family(means, families)
    if not families or len(groups) < 2:
        return None
    items, middle = len(means), sum(means.values()) / len(means)
    apart = sum(sum(mean - middle for mean in group) ** 2 for group in groups.values())
    variance = apart * len(groups) / (len(groups) - 1) / items**2
    alone = middle * (1 - middle)
    if alone < _SAME:
        return _wilson(middle, len(groups), student(len(groups) - 1))
    # Families that seem to spread less than chance would spread them are worth no more than their items.
    worth = items if variance * items <= alone else alone / variance
    return _wilson(middle, worth, student(len(groups) - 1))


def _by_family(values: Mapping[str, float], families: Mapping[str, str]) -> dict[tuple[bool, str], list[float]]:
    """The values of each family; an item without one is its own."""
    groups: dict[tuple[bool, str], list[float]] = {}
    for item, value in values.items():
        groups.setdefault((item in families, families.get(item, item)), []).append(value)
    return groups


def student(degrees: int) -> float:
    """How many standard errors reach as far as `LEVEL` allows, for so many degrees of freedom."""
    if degrees <= len(_T):
        return _T[degrees - 1]
    # The first terms of Student's t as a series around the normal distribution.
    return _Z + (_Z**3 + _Z) / (4 * degrees) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * degrees**2)


def sign_test(won: int, lost: int) -> float:
    """
    How probable at least so uneven a split is, either way, if each item that turned had been as likely to turn back.

    With passes and failures this is McNemar's exact test.
    """
    turned = won + lost
    tail = sum(math.comb(turned, k) for k in range(min(won, lost) + 1))
    # A quotient of whole numbers: as floats, the powers would overflow where many items turned.
    return min(1.0, float(2 * tail / 2**turned))


def turned_together(nets: Sequence[int]) -> float:
    """
    The same of families: how probable at least so uneven a sum is, either way, if each had been as likely to turn back.

    Of families of one item each this is the sign test.
    """
    sums = {0: 1}
    for net in nets:
        spread: dict[int, int] = {}
        for total, ways in sums.items():
            for other in (total + net, total - net):
                spread[other] = spread.get(other, 0) + ways
        sums = spread
    seen = abs(sum(nets))
    return float(sum(ways for total, ways in sums.items() if abs(total) >= seen) / 2 ** len(nets))


def fewest_turned(comparisons: int = 1) -> int:
    """How many items (or families) have to turn at least, all the same way, before that is more than noise."""
    count = 1
    while sign_test(count, 0) * comparisons > LEVEL:
        count += 1
    return count


def holm(chances: Mapping[K, float]) -> dict[K, float]:
    """Holm's correction: the smallest of m is multiplied by m, the next by m - 1, and none is below one before it."""
    found: dict[K, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        highest = max(highest, min(1.0, chances[name] * (len(chances) - rank)))
        found[name] = highest
    return found


@frozen(kw_only=True)
class Paired:
    """
    Two texts on the same items: how many were measured under both, and which of them the second won and lost.

    `could_win` are those that the first did not pass in full, `could_lose` those that it did not fail in full.
    `families` are those of the items, where they have any.
    """

    items: int
    won: tuple[str, ...]
    lost: tuple[str, ...]
    could_win: tuple[str, ...] = ()
    could_lose: tuple[str, ...] = ()
    families: Mapping[str, str] = field(factory=dict)

    @property
    def is_ahead(self) -> bool:
        """Whether the second text won more items than it lost."""
        return len(self.won) > len(self.lost)

    @property
    def probability(self) -> float:
        """How probable at least so uneven a split would be without any difference, if items turn each by itself."""
        return sign_test(len(self.won), len(self.lost))

    @property
    def by_family(self) -> float | None:
        """The same if items of one family turn together; None where items have no families."""
        if not self.families:
            return None
        return turned_together([round(net) for net in self._nets()])

    @property
    def kinds_turned(self) -> int:
        """How many families turned the way that the whole did."""
        return sum(net > 0 if self.is_ahead else net < 0 for net in self._nets())

    @property
    def kinds_that_could(self) -> int:
        """How many families had an item that could turn that way: one that turned the other way says so, too."""
        could = self.could_win if self.is_ahead else self.could_lose
        return len(_by_family(dict.fromkeys((*could, *self.won, *self.lost), 0.0), self.families))

    def _nets(self) -> list[float]:
        turned = {**dict.fromkeys(self.won, 1.0), **dict.fromkeys(self.lost, -1.0)}
        return [sum(each) for each in _by_family(turned, self.families).values()]


Claim = Literal["few_items", "noise", "few_types", "one_or_two_types", "more"]
"""
What a comparison shows: nothing, with so few items; nothing that chance does not do; a difference on tasks of these
types, which are too few to tell about others; a difference on these tasks, which one or two types may have made; a
difference, by item and by type.
"""


@frozen(kw_only=True)
class Judged:
    """A pair, with its chances by item and by family corrected for how many `comparisons` were made."""

    pair: Paired
    probability: float
    by_family: float | None
    comparisons: int = 1

    @property
    def claim(self) -> Claim:
        """What it shows."""
        fewest = fewest_turned(self.comparisons)
        if self.pair.items < fewest:
            return "few_items"
        if self.probability > LEVEL:
            return "noise"
        if self.by_family is None or self.by_family <= LEVEL:
            return "more"
        return "few_types" if self.pair.kinds_that_could < fewest else "one_or_two_types"

    @property
    def within_noise(self) -> bool:
        """Whether chance alone explains it, if items turn each by itself."""
        return self.claim in ("few_items", "noise")


def judged(pair: Paired) -> Judged:
    """A pair that is looked at alone."""
    return Judged(pair=pair, probability=pair.probability, by_family=pair.by_family)


def judged_among(pairs: Mapping[K, Paired]) -> dict[K, Judged]:
    """Pairs that are looked at together: the more there are, the more often one of them differs by chance (Holm)."""
    alone = holm({name: pair.probability for name, pair in pairs.items()})
    together = holm({name: chance for name, pair in pairs.items() if (chance := pair.by_family) is not None})
    return {
        name: Judged(pair=pair, probability=alone[name], by_family=together.get(name), comparisons=len(pairs))
        for name, pair in pairs.items()
    }


def paired(before: Results, after: Results, types: Mapping[str, str] = NO_TYPES) -> Paired | None:
    """
    The second text against the first, by the items that were measured under both; None where there are none.

    Of each item as many draws count of one text as of the other: a mean of six against one draw is no fair comparison.
    """
    means = {}
    for item in after:
        left, right = _measured(before.get(item, ())), _measured(after[item])
        count = min(len(left), len(right))
        if count:
            means[item] = (sum(left[:count]) / count, sum(right[:count]) / count)
    if not means:
        return None
    return Paired(
        items=len(means),
        won=tuple(item for item, (old, new) in means.items() if new > old + _SAME),
        lost=tuple(item for item, (old, new) in means.items() if new < old - _SAME),
        could_win=tuple(item for item, (old, _) in means.items() if old < 1 - _SAME),
        could_lose=tuple(item for item, (old, _) in means.items() if old > _SAME),
        families=families_of({item: types[item] for item in means if item in types}),
    )


def _measured(outcomes: Sequence[Outcome]) -> list[float]:
    return [outcome.hard for outcome in outcomes if isinstance(outcome, Measured)]


def hard_means(results: Results) -> dict[str, float]:
    """Each item's hard score, the mean of its draws; items that were never measured are left out."""
    measured = {item: _measured(outcomes) for item, outcomes in results.items()}
    return {item: sum(seen) / len(seen) for item, seen in measured.items() if seen}


def draws(results: Results) -> tuple[int, int]:
    """The fewest and the most times that an item of these was measured; (0, 0) for none."""
    known = [len(seen) for seen in map(_measured, results.values()) if seen]
    return (min(known), max(known)) if known else (0, 0)
