"""
The noise of drawing: how far the mean difference of two texts would move if the same items were drawn again. Pure.

Items that flip each by itself make one, families of items that flip together another; the larger one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from skillopt_es.events.values import Measured

Draw = Mapping[str, Measured]
Row = tuple[Measured, ...]
"""The results of one item in the draws of a text in which it was measured."""

Worth = Callable[[float, float], float]
"""What a hard and a soft score count together; a weighted mean of both."""

NO_FAMILIES: Mapping[str, str] = {}

_WHOLE = (0.0, 1.0)  # what most items give each time, and of which a mean has no rounding
_Drawn = tuple[tuple[Draw, ...], Sequence[Row]]


def drawing_error(
    items: tuple[str, ...], candidate: _Drawn, current: _Drawn, families: Mapping[str, str], worth: Worth
) -> float | None:
    """The noise of items that flip each by itself, or that of families that flip together, whichever is larger."""
    if len(candidate[0]) == len(current[0]) == 1:
        return None
    alone = _noise(candidate[1], current[1], worth)
    if not alone or not families:
        return alone
    together = math.fsum(_family_scatter(items, drawn, families, worth) for drawn in (candidate, current))
    return max(alone, math.sqrt(together) / len(items))


def _family_scatter(items: tuple[str, ...], drawn: _Drawn, families: Mapping[str, str], worth: Worth) -> float:
    """The variance of one text's mean total over its draws, where the items of a family may move together."""
    moved: dict[tuple[int, str], float] = {}
    for item, row in zip(items, drawn[1], strict=True):
        if len(row) == 1:
            # One draw shows no scatter.
            continue
        middle, family = mean_of([worth(one.hard, one.soft) for one in row]), families.get(item, item)
        for number, draw in enumerate(drawn[0]):
            if item in draw:
                by = worth(draw[item].hard, draw[item].soft) - middle
                # The squares of these add up to the variance of the item's mean over its draws.
                moved[number, family] = moved.get((number, family), 0.0) + by / math.sqrt(len(row) * (len(row) - 1))
    return math.fsum(by * by for by in moved.values())


def _noise(ours: Sequence[Row], theirs: Sequence[Row], worth: Worth) -> float | None:
    """The standard error of the mean difference if the same items were drawn again; None where nothing was repeated."""
    sides = [[worth(outcome.hard, outcome.soft) for outcome in each] for each in (*ours, *theirs)]
    scatters = [_scatter(each) if len(each) > 1 else None for each in sides]
    known = [each for each in scatters if each is not None]
    if not known:
        return None
    usual = math.fsum(known) / len(known)  # what is assumed of an item that was measured once
    found = [usual if each is None else each for each in scatters]
    total = math.fsum([scatter / len(each) for scatter, each in zip(found, sides, strict=True)])
    return math.sqrt(total) / len(ours)


def _scatter(values: list[float]) -> float:
    # Where an item always does the same, no rounding may show a scatter.
    if values[0] in _WHOLE and values.count(values[0]) == len(values):
        return 0.0
    middle = mean_of(values)
    return math.fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1)


def mean_of(values: list[float]) -> float:
    """The mean, whatever the order of the values."""
    # fsum, because the order of the draws must not decide a verdict by its rounding.
    return math.fsum(values) / len(values)
