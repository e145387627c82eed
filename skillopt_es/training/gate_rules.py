"""
The rules of the gate: what the draws of two texts say about them. Pure: a rule decides, or names the draws it wants.

A draw is one evaluation of a text, item by item. `strict` compares one draw of each text, as the paper does. `confirm`
wants an apparent win to happen again in fresh draws of both. `paired` wants the mean difference over several draws to
exceed the noise of drawing, which is measured as the scatter of each item over its draws, or of each family of items
that flip together: where no item ever flips, it is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Literal

from attrs import field, frozen

from skillopt_es.events.values import GateNoise, GateRule, Measured, Score

Draw = Mapping[str, Measured]
Row = tuple[Measured, ...]
"""What one item came to in the draws of a text in which it was measured."""

Worth = Callable[[float, float], float]
"""What a hard and a soft score count together; a weighted mean of both."""

Verdict = Literal["accept", "reject", "indecisive"]
Reason = Literal[
    "better", "confirmed", "beyond_noise", "not_better", "not_confirmed", "within_noise", "items_lost", "few_items"
]

_ROUNDING = 1e-9
_WHOLE = (0.0, 1.0)  # what most items give each time, and of which a mean has no rounding
_LEAST_SCATTER = 20  # degrees of freedom from which on the noise of drawing is known to about a sixth


@frozen(kw_only=True)
class Rule:
    """How a candidate has to win; `draws` are the most that one comparison makes of each text."""

    name: GateRule = "strict"
    draws: int = 1
    standard_errors: float = 0.0
    noise: GateNoise = "families"
    no_regression: int | None = None
    min_items: int = 0


@frozen(kw_only=True)
class Known:
    """
    What a run knows of its items whatever the text: the family of each, and those that ever gave two results.

    Items of one family may flip together; one that is in no family stands for itself.
    """

    families: Mapping[str, str] = field(factory=dict)
    flipped: frozenset[str] = frozenset()


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
        """The draws made to confirm a first round."""
        return self.draws[max(self.known, 1) :]


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


@frozen(kw_only=True)
class Ruling:
    """A verdict, why, and the comparison over all draws behind it; unless `exact`, the candidate's score is a bound."""

    verdict: Verdict
    reason: Reason
    comparison: Comparison
    exact: bool = True


@frozen(kw_only=True)
class MoreDraws:
    """The rule cannot say yet: the numbers of the draws it wants of each text, on all items; 0 for none."""

    candidate: int
    current: int


def judge(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known = NOTHING_KNOWN) -> Ruling | MoreDraws:
    """The rule's verdict on these draws, or the draws that it wants first."""
    if not candidate.draws or not current.draws:
        return MoreDraws(candidate=0 if candidate.draws else 1, current=0 if current.draws else 1)
    if rule.name == "paired":
        found = _paired(rule, current, candidate, worth, known)
    else:
        once = rule.name == "strict"
        found = _won_again(1 if once else rule.draws, _oldest(current, once), _oldest(candidate, once), worth)
    return found if isinstance(found, MoreDraws) else _within_clauses(rule, found)


def _won_again(rounds: int, current: Side, candidate: Side, worth: Worth) -> Ruling | MoreDraws:
    """One draw against one, `rounds` times in a row; a round after the first uses nothing but fresh draws."""
    pairs = [(candidate.first, current.first), *zip(candidate.fresh, current.fresh, strict=False)][:rounds]
    for number, (left, right) in enumerate(pairs, start=1):
        seen = compare((right,), (left,), current.bonus, candidate.bonus, worth)
        if seen.candidate_value > seen.current_value:
            continue
        if number == 1:
            return Ruling(verdict="reject", reason="not_better", comparison=seen)
        return _ruled("indecisive", "not_confirmed", current, candidate, worth, number)
    done = len(pairs)
    if done < rounds:
        return MoreDraws(
            candidate=len(candidate.draws) + 1 if len(candidate.fresh) < done else 0,
            current=len(current.draws) + 1 if len(current.fresh) < done else 0,
        )
    return _ruled("accept", "better" if rounds == 1 else "confirmed", current, candidate, worth, done)


def _oldest(side: Side, once: bool) -> Side:
    """What a rule knows that never draws twice: the first draw alone, whatever was drawn for other rules."""
    return Side(draws=side.draws[:1], bonus=side.bonus) if once else side


def _ruled(verdict: Verdict, reason: Reason, current: Side, candidate: Side, worth: Worth, rounds: int) -> Ruling:
    """A ruling with the comparison over the draws of its rounds."""
    left = (candidate.first, *candidate.fresh[: rounds - 1])
    right = (current.first, *current.fresh[: rounds - 1])
    comparison = compare(right, left, current.bonus, candidate.bonus, worth)
    return Ruling(verdict=verdict, reason=reason, comparison=comparison)


def _paired(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
    """Round by round over all draws so far; a candidate that is not ahead after a round is not drawn on."""
    number, families = 0, known.families if rule.noise == "families" else {}
    while True:
        number += 1
        if min(len(candidate.draws), len(current.draws)) < number:
            return MoreDraws(
                candidate=number if len(candidate.draws) < number else 0,
                current=number if len(current.draws) < number else 0,
            )
        drawn = (current.until(number), candidate.until(number))
        seen = compare(*drawn, current.bonus, candidate.bonus, worth, families)
        if seen.gain <= _ROUNDING:
            return Ruling(verdict="reject", reason="not_better", comparison=seen)
        if number == rule.draws or (number > 1 and seen.error == 0 and _steady(rule, seen, known)):
            return _beyond_noise(rule, seen)


def _steady(rule: Rule, seen: Comparison, known: Known) -> bool:
    """Whether more draws tell nothing: no item ever gave two results. A coin gives the same twice, every other time."""
    return rule.noise == "items" or known.flipped.isdisjoint(seen.items)


def _beyond_noise(rule: Rule, seen: Comparison) -> Ruling:
    """The last round's ruling on a candidate that is ahead."""
    if seen.error is None:  # every item failed in all of its draws but one
        return Ruling(verdict="indecisive", reason="few_items", comparison=seen)
    if seen.gain > rule.standard_errors * seen.error + _ROUNDING:
        return Ruling(verdict="accept", reason="beyond_noise", comparison=seen)
    return Ruling(verdict="indecisive", reason="within_noise", comparison=seen)


def _within_clauses(rule: Rule, ruling: Ruling) -> Ruling:
    """The ruling, unless a clause on top forbids it."""
    seen = ruling.comparison
    if ruling.verdict == "accept" and len(seen.items) < rule.min_items:
        return Ruling(verdict="indecisive", reason="few_items", comparison=seen)
    if ruling.verdict == "accept" and rule.no_regression is not None and len(seen.lost) > rule.no_regression:
        return Ruling(verdict="reject", reason="items_lost", comparison=seen)
    return ruling


def compare(
    current: tuple[Draw, ...],
    candidate: tuple[Draw, ...],
    current_bonus: float,
    candidate_bonus: float,
    worth: Worth,
    families: Mapping[str, str] = NOTHING_KNOWN.families,
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
    """What each item came to in these draws; in some it may not have been measured."""
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
            continue
        middle, family = _mean([worth(one.hard, one.soft) for one in row]), families.get(item, item)
        for number, draw in enumerate(drawn[0]):
            if item in draw:
                by = worth(draw[item].hard, draw[item].soft) - middle
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
    if values[0] in _WHOLE and values.count(values[0]) == len(values):
        return 0.0
    middle = _mean(values)
    return math.fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1)


def _mean(values: list[float]) -> float:
    return values[0] if len(values) == 1 else math.fsum(values) / len(values)


def too_little_for(rule: Rule, items: int) -> str:
    """Why so many items cannot carry the rule, and what would be enough; empty when they can."""
    if rule.min_items > items:
        return f"evaluation.min_items is {rule.min_items}, and there are {items} validation items"
    if rule.no_regression is not None and rule.no_regression >= items:
        return (
            f"evaluation.no_regression: {rule.no_regression} refuses nothing with {items} validation items; "
            f"give at most {items - 1}"
        )
    if rule.name != "paired":
        return ""
    if 2 * items * (rule.draws - 1) >= _LEAST_SCATTER:
        return ""
    enough = math.ceil(_LEAST_SCATTER / (2 * (rule.draws - 1)))
    draws = math.ceil(_LEAST_SCATTER / (2 * items)) + 1
    return (
        f"evaluation.gate_rule: paired cannot tell the noise from {items} validation items with {rule.draws} draws; "
        f"enough are {enough} items, or evaluation.gate_draws: {draws}"
    )
