"""How often items flip, told from repeats (attempts at one item under one text), and what chances they leave open."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.gate.power import Chances
from skillopt_es.projections.intervals import Interval, wilson


@frozen(kw_only=True)
class Counted:
    """How often an item was tried under one text, and how often it passed."""

    tried: int
    passed: int

    @property
    def scatter(self) -> float:
        """The variance of one attempt, estimated from repeats."""
        # Unbiased: n/(n-1) times the variance of the attempts themselves.
        return self.passed * (self.tried - self.passed) / (self.tried * (self.tried - 1))

    @property
    def flips(self) -> float:
        """How often two attempts differ."""
        # Two attempts with the same chance p differ with 2 p (1 - p), twice the variance of one.
        return min(1.0, 2 * self.scatter)


Tried = Mapping[tuple[str, str], Counted]
"""Attempts by skill and item."""


@frozen(kw_only=True)
class Flips:
    """
    How often two attempts at an item under one text differ, over so many different items that were repeated.

    Under how many texts: an item that was repeated under several counts once, with their mean.
    """

    rate: float
    items: int
    texts: int

    @property
    def interval(self) -> Interval:
        """Where the rate over items like these lies, with 95 % confidence: of no flip at all the end is not 0."""
        found = wilson(self.rate, self.items)
        assert found is not None
        return found

    def drawn(self, rng: random.Random) -> float:
        """A rate that these repeats leave open."""
        turned = self.rate * self.items
        # Jeffreys' prior: half a turn and half a stay more than were seen.
        return rng.betavariate(turned + 0.5, self.items - turned + 0.5)


def flips_in(tried: Tried) -> Flips | None:
    """The flips in these attempts; None where nothing was tried twice."""
    repeated = {key: each for key, each in tried.items() if each.tried > 1}
    if not repeated:
        return None
    by_item: dict[str, list[float]] = {}
    for (_, item), each in repeated.items():
        by_item.setdefault(item, []).append(each.flips)
    means = [sum(each) / len(each) for each in by_item.values()]
    return Flips(rate=sum(means) / len(means), items=len(means), texts=len({skill for skill, _ in repeated}))


def worlds(counts: Mapping[str, Counted], rates: Sequence[float], rng: random.Random) -> tuple[Chances, ...]:
    """
    For each rate of flips, chances of the items that the recorded attempts leave open.

    Each item's is drawn from a beta distribution over its own counts. Its prior is fitted to the mean of all items and
    to the rate: an item that passed twice may still flip where many others do, and never does where none can.
    """
    # Never 0 or 1, of which there is no beta distribution.
    mean = (sum(each.passed / each.tried for each in counts.values()) + 0.5) / (len(counts) + 1)
    return tuple(_world(counts, mean, rate, rng) for rate in rates)


def _world(counts: Mapping[str, Counted], mean: float, rate: float, rng: random.Random) -> Chances:
    if rate <= 0:
        return {item: each.passed / each.tried for item, each in counts.items()}
    # The rate is 2 mean (1 - mean) strength / (strength + 1), solved for the strength; at 1 that would be infinite.
    share = min(rate / (2 * mean * (1 - mean)), 0.99)
    strength = share / (1 - share)
    return {
        item: rng.betavariate(mean * strength + each.passed, (1 - mean) * strength + each.tried - each.passed)
        for item, each in counts.items()
    }
