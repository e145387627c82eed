"""Two texts on the same items, over the draws of both: means, the noise of drawing, and the items that turned. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from attrs import frozen

from skillopt_es.events.values import Measured, Score

Draw = Mapping[str, Measured]
Row = tuple[Measured, ...]
"""The results of one item in the draws of a text in which it was measured."""

Worth = Callable[[float, float], float]
"""What a hard and a soft score count together; a weighted mean of both."""

NO_FAMILIES: Mapping[str, str] = {}

_WHOLE = (0.0, 1.0)  # what most items give each time, and of which a mean has no rounding


@frozen(kw_only=True)
class Comparison:
    """Two texts on the items that were measured under both; `error` is the noise of drawing, where it can be told."""

    items: tuple[str, ...]
    candidate: Score
    current: Score
    candidate_value: float
    current_value: float
    error: float | None
    candidate_draws: int
    current_draws: int
    won: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def gain(self) -> float:
        """By how much the candidate is ahead."""
        return self.candidate_value - self.current_value


def compare(
    current: tuple[Draw, ...],
    candidate: tuple[Draw, ...],
    current_bonus: float,
    candidate_bonus: float,
    worth: Worth,
    families: Mapping[str, str] = NO_FAMILIES,
) -> Comparison:
    """Both texts over all these draws, each item counting once however often it was measured."""
    opposed = frozenset(chain.from_iterable(current))
    items = tuple([item for item in dict.fromkeys(chain.from_iterable(candidate)) if item in opposed])
    ours, theirs = _rows(candidate, items), _rows(current, items)
    left, right = mean_over(ours), mean_over(theirs)
    return Comparison(
        items=items,
        candidate=left,
        current=right,
        candidate_value=worth(left.hard, left.soft) + candidate_bonus,
        current_value=worth(right.hard, right.soft) + current_bonus,
        error=_error(items, (candidate, ours), (current, theirs), families, worth),
        candidate_draws=len(candidate),
        current_draws=len(current),
        won=_above(items, theirs, ours),
        lost=_above(items, ours, theirs),
    )


def mean_over(items: Sequence[Row]) -> Score:
    """The means over items, of which each may have been measured several times."""
    count = len(items)
    return Score(
        hard=sum([_mean([one.hard for one in each]) if each[1:] else each[0].hard for each in items]) / max(1, count),
        soft=sum([_mean([one.soft for one in each]) if each[1:] else each[0].soft for each in items]) / max(1, count),
        measured=count,
    )


def _rows(draws: tuple[Draw, ...], items: tuple[str, ...]) -> list[Row]:
    """The results of each item in these draws; in some it may not have been measured."""
    wanted = frozenset(items)
    if all(wanted <= draw.keys() for draw in draws):
        return [*zip(*([draw[item] for item in items] for draw in draws), strict=True)]
    return [tuple(draw[item] for draw in draws if item in draw) for item in items]


def _above(items: tuple[str, ...], lower: Sequence[Row], higher: Sequence[Row]) -> tuple[str, ...]:
    """The items whose every draw is above every draw of the other text: one that only flips is neither won nor lost."""
    most = [max([one.hard for one in each]) if each[1:] else each[0].hard for each in lower]
    least = [min([one.hard for one in each]) if each[1:] else each[0].hard for each in higher]
    return tuple([item for item, low, high in zip(items, most, least, strict=True) if low < high])


_Drawn = tuple[tuple[Draw, ...], Sequence[Row]]


def _error(
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
        middle, family = _mean([worth(one.hard, one.soft) for one in row]), families.get(item, item)
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
    middle = _mean(values)
    return math.fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1)


def _mean(values: list[float]) -> float:
    # fsum, because the order of the draws must not decide a verdict by its rounding.
    return math.fsum(values) / len(values)
