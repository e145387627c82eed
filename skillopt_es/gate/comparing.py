"""
Two texts on the items that were measured under both: their draws, what a comparison of them is, and what a rule says.

A draw is one evaluation of a text, item by item. Pure values, and how they are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal

from attrs import field, frozen

from skillopt_es.events.values import Score
from skillopt_es.gate.noise import NO_FAMILIES, Draw, Row, Worth, drawing_error, mean_of

Verdict = Literal["accept", "reject", "indecisive"]
Reason = Literal[
    "better",
    "beyond_noise",
    "not_worse",
    "gain_held",
    "loss_not_held",
    "not_better",
    "gain_not_held",
    "within_noise",
    "worse",
    "items_lost",
    "few_items",
]

REASONS: Mapping[str, str] = {
    "better": "better than current",
    "beyond_noise": "better than current by more than noise",
    "not_worse": "not worse than current",
    "gain_held": "better than current, and so in every draw of what turned",
    "loss_not_held": "worse than current at first, but not when what turned was drawn again",
    "worse": "worse than current",
    "not_better": "not better than current",
    "gain_not_held": "better than current at first, but not when what turned was drawn again",
    "within_noise": "not better than current by more than noise",
    "items_lost": "loses more items than a win may",
    "lost_recall": "draws items away from skills that it leaves alone",
    "misrouted": "sends training items to other skills than they should open, and they fail",
    "by_hand": "somebody decided otherwise by hand",
    "few_items": "too few items were measured under both",
}
"""The reasons in words."""

ROUNDING = 1e-9
"""What the rounding of a sum alone can make is no gain."""


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
        error=drawing_error(items, (candidate, ours), (current, theirs), families, worth),
        candidate_draws=len(candidate),
        current_draws=len(current),
        won=_above(items, theirs, ours),
        lost=_above(items, ours, theirs),
    )


def mean_over(items: Sequence[Row]) -> Score:
    """The means over items, of which each may have been measured several times."""
    count = len(items)
    return Score(
        hard=sum([mean_of([one.hard for one in each]) if each[1:] else each[0].hard for each in items]) / max(1, count),
        soft=sum([mean_of([one.soft for one in each]) if each[1:] else each[0].soft for each in items]) / max(1, count),
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


@frozen(kw_only=True)
class Known:
    """
    What a run knows of its items whatever the text: the family of each, and those that ever gave two results.

    Items of one family may flip together; one that is in no family stands for itself. In a `steady` run so many results
    came out the same twice that drawing again would tell nothing. `spare` is how many results a verdict may still take.
    """

    families: Mapping[str, str] = field(factory=dict)
    flipped: frozenset[str] = frozenset()
    steady: bool = False
    spare: int | None = None


NOTHING_KNOWN = Known()


@frozen(kw_only=True)
class Side:
    """
    One text's draws, oldest first, and what the text itself adds to its value.

    `known` of the draws were there before this comparison began; the others were made for it.
    """

    draws: tuple[Draw, ...] = ()
    known: int = 0
    bonus: float = 0.0

    @property
    def first(self) -> Draw:
        """The draw that the first round compares: the newest of those there were, or else the first that was made."""
        return self.draws[max(self.known, 1) - 1]

    def until(self, number: int) -> tuple[Draw, ...]:
        """The draws that there were after so many rounds: all that were known, and those made in the rounds."""
        return self.draws[: max(number, self.known)]

    @property
    def fresh(self) -> tuple[Draw, ...]:
        """The draws that were made after the first round."""
        return self.draws[max(self.known, 1) :]


@frozen(kw_only=True)
class Ruling:
    """
    A verdict, why, and the comparison over all draws behind it; unless `exact`, the candidate's score is a bound.

    The items that turned at first may have been drawn `again`.
    """

    verdict: Verdict
    reason: Reason
    comparison: Comparison
    exact: bool = True
    again: tuple[str, ...] = ()


@frozen(kw_only=True)
class MoreDraws:
    """The rule cannot say yet: the number of the draw it wants of each text, 0 for none; of all items, or of these."""

    candidate: int
    current: int
    items: tuple[str, ...] = ()
