"""
What scores over seeds say: a setting's mean with its interval, and differences paired by seed. Pure.

A seed is one repetition of a whole training, so seeds are what is counted here, not items: many items of one run say
how good its skill is, and nothing about how good the next run's would be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from attrs import evolve, frozen

from skillopt_es.projections.intervals import LEVEL, Interval, holm, student

_SAME = 1e-9  # scores that differ by less are the same: they are sums of other floats


@frozen(kw_only=True)
class Mean:
    """The mean of so many seeds; `interval` is None where one seed alone says nothing about another."""

    seeds: int
    value: float
    interval: Interval | None


def mean_score(scores: Sequence[float]) -> Mean | None:
    """The mean of scores, with 95 % confidence by Student's t within 0 and 1; None where there is none."""
    mean = mean_of(scores)
    if mean is None or mean.interval is None:
        return mean
    return evolve(mean, interval=Interval(max(0.0, mean.interval.low), min(1.0, mean.interval.high)))


def mean_of(differences: Sequence[float]) -> Mean | None:
    """The same of differences."""
    if not differences:
        return None
    value = sum(differences) / len(differences)
    return Mean(seeds=len(differences), value=value, interval=_interval(differences, value))


def _interval(scores: Sequence[float], value: float) -> Interval | None:
    if len(scores) < 2:
        return None
    reach = student(len(scores) - 1) * _error(scores, value)
    return Interval(value - reach, value + reach)


def _error(scores: Sequence[float], value: float) -> float:
    """The standard error of the mean."""
    apart = sum((score - value) ** 2 for score in scores)
    return math.sqrt(apart / (len(scores) - 1) / len(scores))


@frozen(kw_only=True)
class Against:
    """
    A setting against the leading one, over the seeds that both have finished; a negative difference is behind.

    `chance` is how probable so large a difference would be between equal settings. `within_noise` is None where fewer
    than two common seeds cannot tell.
    """

    difference: Mean | None
    chance: float | None
    within_noise: bool | None


def against(scores: Mapping[str, Mapping[int, float]], leader: str) -> dict[str, Against]:
    """
    Every other setting against the leader, by score of each seed.

    The leader was picked from all of them, so chances are corrected (Holm) for all pairs, not for its own alone.
    """
    pairs = {pair: _differences(scores, *pair) for pair in combinations(scores, 2)}
    chances = holm({pair: chance for pair, each in pairs.items() if (chance := chance_of(each)) is not None})
    found = {}
    for name in scores:
        if name != leader:
            chance = chances.get((name, leader), chances.get((leader, name)))
            found[name] = Against(
                difference=mean_of(_differences(scores, leader, name)),
                chance=chance,
                within_noise=None if chance is None else chance > LEVEL,
            )
    return found


def _differences(scores: Mapping[str, Mapping[int, float]], one: str, other: str) -> list[float]:
    """By how much the other setting is ahead of the one, by each seed that both have finished."""
    return [scores[other][seed] - scores[one][seed] for seed in sorted(scores[other]) if seed in scores[one]]


def chance_of(differences: Sequence[float]) -> float | None:
    """How probable a mean so far from 0 would be, either way, without any difference; None for fewer than two."""
    count = len(differences)
    if count < 2:
        return None
    value = sum(differences) / count
    error = _error(differences, value)
    if error > _SAME:
        return two_sided(abs(value) / error, count - 1)
    # Each seed says the same, and Student's t has no spread to measure it by: then only their signs count.
    return 1.0 if abs(value) < _SAME else 2 / 2**count


def two_sided(distance: float, degrees: int) -> float:
    """How much of Student's t lies further from 0 than this, on both sides; exact, for whole degrees of freedom."""
    angle = math.atan(distance / math.sqrt(degrees))
    square = math.cos(angle) ** 2
    odd = degrees % 2
    term = total = (math.cos(angle) if degrees > 1 else 0.0) if odd else 1.0
    for step in range(3 if odd else 2, degrees - 1, 2):
        term *= square * (step - 1) / step
        total += term
    within = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return min(1.0, max(0.0, 1.0 - within))
