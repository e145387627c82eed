"""
Exact early rejection: an evaluation runs in waves, and ends where its candidate cannot win any more.

A score is at most 1. So an item that was not run adds at most what is missing to 1 in the current skill's score; once
even that would not put the candidate ahead, the whole evaluation would reject it, too. What is stated then is a bound.
In quality control this is curtailed sampling: inspection stops once no further piece can change the verdict. Unlike
statistical stopping it costs no power, so each rule stays as it was measured.

Items on which the current skill did worst come first: they are what a candidate has to win. In the offline demo waves
of 4, 8 and 16 save 21, 18 and 14 % of a strict gate's rollouts, and one of 40, which is all, saves nothing; more than
half of the candidates win there (docs/benchmarks.md). A test compares the verdicts with those of whole evaluations on
10,000 random tables.

Weighed and dropped:

- Early acceptance of clear wins: each look is one more chance for luck, and an unchanged text was taken more often
  (docs/dev/decisions/0010-which-rule-safe-uses.md).
- The mean of what was run as the score of a candidate that ended early: its items are those that are hard for the
  current skill, so it would be compared with scores over all of them. A bound is told as a bound, and the evaluation is
  completed where the text comes back and could win.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from attrs import evolve, frozen

from skillopt_es.events.values import Measured
from skillopt_es.gate.comparing import NOTHING_KNOWN, ROUNDING, Comparison, Known, Ruling, Side, compare
from skillopt_es.gate.noise import Draw, Worth
from skillopt_es.gate.rules import Bound, Rule

_BEST = Measured(1.0, 1.0)


@frozen(kw_only=True)
class Begun:
    """A candidate's draw that is not complete: what was measured of it, and the items that failed."""

    measured: Draw
    failed: Collection[str] = ()


def run_order(items: tuple[str, ...], current: tuple[Draw, ...], worth: Worth) -> tuple[str, ...]:
    """The items, those first on which the current skill did worst; at the end those on which it was not measured."""

    def place(item: str) -> float:
        values = _values(current, item, worth)
        return math.fsum(values) / len(values) if values else math.inf

    return tuple(sorted(items, key=place))


def next_wave(order: tuple[str, ...], done: Collection[str], size: int) -> tuple[tuple[str, ...], bool]:
    """The items to run next, and whether none of their wave has been run; no items when all are done."""
    for start in range(0, len(order), size):
        wave = order[start : start + size]
        waiting = tuple(item for item in wave if item not in done)
        if waiting:
            return waiting, len(waiting) == len(wave)
    return (), False


def cannot_win(
    rule: Rule,
    current: Side,
    candidate: Side,
    begun: Begun,
    items: tuple[str, ...],
    worth: Worth,
    known: Known = NOTHING_KNOWN,
) -> bool:
    """Whether the candidate loses the round of its next draw whatever the results of the items that were not run."""
    if not rule.may_stop(known):
        return False
    theirs, ours = rule.opposed(current, candidate)
    bonus = candidate.bonus - current.bonus
    most_of = _most_standing if rule.retests else _most
    rows = [most_of(item, theirs, ours, begun, bonus, worth) for item in items]
    bounds = [row for row in rows if row is not None]
    exact = _adds_up_exactly(theirs, begun, bonus, worth)
    return rule.is_lost(Bound(lead=math.fsum(bounds), items=len(bounds), bonus=bonus, exact=exact))


def _most(
    item: str, theirs: tuple[Draw, ...], ours: tuple[Draw, ...], begun: Begun, bonus: float, worth: Worth
) -> float | None:
    """By how much an item can put the candidate ahead; None where the current skill was not measured on it."""
    against = _values(theirs, item, worth)
    if not against:
        return None
    behind = bonus - math.fsum(against) / len(against)
    earlier = _values(ours, item, worth)
    if item in begun.measured:
        earlier = [*earlier, worth(begun.measured[item].hard, begun.measured[item].soft)]
    elif item not in begun.failed:
        if not earlier:
            return max(0.0, worth(1.0, 1.0) + behind)  # it may fail, and then it does not count
        earlier = [*earlier, worth(1.0, 1.0)]
    return math.fsum(earlier) / len(earlier) + behind if earlier else 0.0


def _most_standing(
    item: str, theirs: tuple[Draw, ...], ours: tuple[Draw, ...], begun: Begun, bonus: float, worth: Worth
) -> float | None:
    """The same where an item counts only if it is above, or below, every draw of the current text."""
    against = _values(theirs, item, worth)
    if not against:
        return None
    if item in begun.failed:
        return 0.0
    outcome = begun.measured.get(item, _BEST)
    value = worth(outcome.hard, outcome.soft)
    stands = value > max(against) + ROUNDING or value < min(against) - ROUNDING
    most = bonus + (value - math.fsum(against) / len(against) if stands else 0.0)
    return most if item in begun.measured else max(0.0, most)


def _adds_up_exactly(theirs: tuple[Draw, ...], begun: Begun, bonus: float, worth: Worth) -> bool:
    """Whether only whole points are compared, so that a tie is a tie in whatever order they are summed."""
    whole = (0.0, 1.0)
    drawn = [outcome for draw in (*theirs, begun.measured) for outcome in draw.values()]
    values = (worth(outcome.hard, outcome.soft) for outcome in (*drawn, _BEST))
    return bonus == 0 and all(value in whole for value in values)


def _values(draws: tuple[Draw, ...], item: str, worth: Worth) -> list[float]:
    return [worth(draw[item].hard, draw[item].soft) for draw in draws if item in draw]


def lost_early(
    rule: Rule, current: Side, candidate: Side, begun: Begun, items: tuple[str, ...], worth: Worth
) -> Ruling:
    """The ruling on a candidate that cannot win; its score is the most that the whole evaluation could have given."""
    theirs, ours = rule.opposed(current, candidate)
    best: Mapping[str, Measured] = {item: begun.measured.get(item, _BEST) for item in items if item not in begun.failed}
    bound = compare(theirs, (*ours, best), current.bonus, candidate.bonus, worth)
    seen = compare(theirs, (*ours, begun.measured), current.bonus, candidate.bonus, worth)
    most = evolve(bound.candidate, measured=seen.candidate.measured)
    comparison: Comparison = evolve(bound, items=seen.items, candidate=most, error=None, won=seen.won, lost=seen.lost)
    return Ruling(verdict="reject", reason=rule.lost, comparison=comparison, exact=False)
