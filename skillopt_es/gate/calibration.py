"""
What each rule of the gate is worth on a run's items, from recorded attempts.

Repeats are attempts at one item under one text, wherever a log has them: draws of the gate, evaluations, training items
that came round again. Results count as solved or not.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import CallRef, Measured
from skillopt_es.gate.flips import Counted, Flips, Tried, flips_in, worlds
from skillopt_es.gate.power import Chances, Power, churning, most_churn, power, smallest_gain
from skillopt_es.gate.rules import RULES, Rule

SEED = 20  # any number would do: the same question gets the same answer
TRIALS = 300  # a share of .16 is then known within .02 (one standard error); ten times as many take ten times as long
CHURN = 0.1
"""The share of results that an edit turns for no gain, where that is asked."""
MOST_NULL_ACCEPTS = 0.16
"""What is recommended accepts an unchanged text at most this often: as seldom as strict's 40 % twice in a row."""

Source = Literal["validation", "training"]


@frozen(kw_only=True)
class Null:
    """
    How often a rule takes what is no better, a share of cases each.

    `itself` is a text compared with itself, `itself_most` the same where items flip as often as the repeats leave open.
    `churn` is an edit that turns so many of the results (`turned`) for no gain; None where no edit can, for all items
    do the same.
    """

    itself: float
    itself_most: float
    churn: float | None
    turned: float


@frozen(kw_only=True)
class Worth:
    """
    What a rule is worth on these items; `smallest` is None where not even the largest gain is seen often enough.

    `first` is what the first comparison with a text costs in attempts at items, `later` one whose current skill has all
    its draws; both of a candidate that changes nothing.
    """

    rule: Rule
    own: bool
    null: Null
    smallest: float | None
    first: float
    later: float
    too_little: str = ""


@frozen(kw_only=True)
class Calibration:
    """
    How the validation items flip under one text, and what the rules make of it.

    `source` says on which items flips were seen; `room` is the largest gain that there can be above this text's score.
    """

    skill: str
    items: Mapping[str, Counted]
    source: Source
    flips: Flips
    room: float
    rules: tuple[Worth, ...]
    recommended: Rule


@frozen
class NotKnown:
    """Nothing can be said, and why."""

    why: str


def attempts(events: Iterable[RolloutCompleted], copied: Collection[CallRef] = ()) -> Tried:
    """
    How often each item was tried and solved under each text; what was not measured is no attempt.

    Neither is what rests on `copied` calls: an answer that was taken from another place says nothing of luck.
    """
    found: dict[tuple[str, str], Counted] = {}
    for event in events:
        if isinstance(event.outcome, Measured) and not any(call in copied for call in event.calls):
            key = (event.skill, event.item)
            before = found.get(key, Counted(tried=0, passed=0))
            found[key] = Counted(tried=before.tried + 1, passed=before.passed + event.outcome.passed)
    return found


def together(*sources: Tried) -> Tried:
    """The attempts of several logs."""
    found: dict[tuple[str, str], Counted] = {}
    for key, each in (pair for source in sources for pair in source.items()):
        before = found.get(key, Counted(tried=0, passed=0))
        found[key] = Counted(tried=before.tried + each.tried, passed=before.passed + each.passed)
    return found


def calibrate(
    tried: Tried, items: Sequence[str], own: Rule, *, skill: str, trials: int = TRIALS
) -> Calibration | NotKnown:
    """The calibration of a rule and its rivals on these validation items, under the text with this hash."""
    counts = _counts(tried, items, skill)
    if not counts:
        return NotKnown("it was never tried on the validation items")
    source, flips = _flips(tried, items)
    if flips is None:
        return NotKnown("no item was tried twice under one text, so how often items flip is not known")
    asked = _Asked.of(counts, flips, trials)
    rules = tuple(_worth(rule, asked, own) for rule in _rivals(own))
    return Calibration(
        skill=skill,
        items=counts,
        source=source,
        flips=flips,
        room=1 - sum(each.passed / each.tried for each in counts.values()) / len(counts),
        rules=rules,
        recommended=recommended(rules, flips).rule,
    )


def own_null(
    tried: Tried, items: Sequence[str], own: Rule, *, skill: str, trials: int = TRIALS
) -> tuple[Null, Flips] | None:
    """What a rule takes that is no better, and the repeats that tell; None without repeats of validation items."""
    counts = _counts(tried, items, skill)
    source, flips = _flips(tried, items)
    if not counts or flips is None or source != "validation":
        return None
    asked = _Asked.of(counts, flips, trials)
    return _null(own, asked, power(own, asked.worlds, seed=SEED)), flips


def _counts(tried: Tried, items: Sequence[str], skill: str) -> dict[str, Counted]:
    return {item: tried[skill, item] for item in items if (skill, item) in tried}


def _flips(tried: Tried, items: Collection[str]) -> tuple[Source, Flips | None]:
    """On validation items, or where none of these was repeated, on training items."""
    wanted = frozenset(items)
    found = flips_in({key: each for key, each in tried.items() if key[1] in wanted})
    return ("validation", found) if found is not None else ("training", flips_in(tried))


@frozen(kw_only=True)
class _Asked:
    """What every rule is asked about alike: chances of the items, drawn once, and the worst that may be."""

    worlds: tuple[Chances, ...]
    worst: tuple[Chances, ...]
    turned: float

    @staticmethod
    def of(counts: Mapping[str, Counted], flips: Flips, trials: int) -> _Asked:
        rng = random.Random(SEED)  # noqa: S311 - a reproducible draw is the point
        likely = worlds(counts, [flips.drawn(rng) for _ in range(trials)], rng)
        return _Asked(
            worlds=likely,
            worst=worlds(counts, [flips.interval.high] * trials, rng),
            turned=min(CHURN, sum(map(most_churn, likely)) / trials),
        )


def _null(rule: Rule, asked: _Asked, itself: Power) -> Null:
    return Null(
        itself=itself.accepted,
        itself_most=max(itself.accepted, power(rule, asked.worst, seed=SEED).accepted),
        churn=power(rule, asked.worlds, churning(CHURN), seed=SEED).accepted if asked.turned > 0 else None,
        turned=asked.turned,
    )


def _rivals(own: Rule) -> tuple[Rule, ...]:
    """The run's own rule first, then the usual ones under its clauses."""
    forms = (form for rule in RULES.values() for form in rule.usual())
    usual = (
        evolve(rule, judge_noise=own.judge_noise, no_regression=own.no_regression, min_items=own.min_items)
        for rule in forms
    )
    return (own, *(rule for rule in usual if rule != own))


def _worth(rule: Rule, asked: _Asked, own: Rule) -> Worth:
    # A third of them: the search for the smallest gain plays each world many times.
    some = asked.worlds[: max(1, len(asked.worlds) // 3)]
    items, itself = len(asked.worlds[0]), power(rule, asked.worlds, seed=SEED)
    short = rule.too_little(items)
    return Worth(
        rule=rule,
        own=rule == own,
        null=_null(rule, asked, itself),
        smallest=smallest_gain(rule, some, items, seed=SEED),
        first=itself.spent,
        later=power(rule, some, seed=SEED, before=rule.repeats).spent,
        too_little="" if short is None else short.message,
    )


def recommended(rules: Sequence[Worth], flips: Flips) -> Worth:
    """
    The rule that sees the smallest gain and seldom accepts an unchanged text; of equals the run's own, the cheapest.

    How seldom is told by the worst that the repeats leave open. That no item was seen to flip speaks for no weaker
    rule: then it is the run's own, if that is good enough, or else the one that accepts an unchanged text least.
    """
    able = [each for each in rules if not each.too_little] or list(rules)
    honest = [each for each in able if each.null.itself_most <= MOST_NULL_ACCEPTS]
    own = next((each for each in honest if each.own), None)
    if own is not None and flips.rate == 0:
        return own
    if not honest or flips.rate == 0:
        return min(able, key=lambda each: each.null.itself_most)
    return min(honest, key=lambda each: (_seen(each), not each.own, each.first, each.rule.repeats))


def _seen(each: Worth) -> float:
    # Above any gain, so that it comes last.
    return 2.0 if each.smallest is None else each.smallest
