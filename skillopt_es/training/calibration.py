"""
An A/A test of the gate from recorded attempts: how often items flip under one text, and what each rule makes of it.

Repeats are attempts at one item under one text, wherever a log has them: draws of the gate, evaluations, training items
that came round again. Results count as solved or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import CallRef, Measured
from skillopt_es.training.gate_power import Counted, Drawn, posterior, power, scatter, smallest_gain
from skillopt_es.training.gate_rules import Rule, too_little_for

SEED = 20
TRIALS = 300
MOST_NULL_ACCEPTS = 0.16
"""What is recommended takes a text that changes nothing at most this often: strict's 40 %, twice in a row."""

Source = Literal["validation", "training"]
Tried = Mapping[tuple[str, str], Counted]
"""Attempts by skill and item."""


@frozen(kw_only=True)
class Worth:
    """What a rule is worth on these items; `smallest` is None where not even the largest gain is seen often enough."""

    rule: Rule
    own: bool
    null_accepts: float
    smallest: float | None
    spent: float
    too_little: str = ""


@frozen(kw_only=True)
class Calibration:
    """
    How the validation items flip under one text, and what the rules make of it.

    `source` says on which items flips were seen; `flip_rate` is how often two attempts at one of them differ.
    """

    skill: str
    items: Mapping[str, Counted]
    repeated: int
    source: Source
    flip_rate: float
    rules: tuple[Worth, ...]
    recommended: Rule


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
    tried: Tried, items: Sequence[str], own: Rule, *, skill: str = "", trials: int = TRIALS
) -> Calibration | None:
    """
    The calibration of a rule and its rivals on these validation items; None where nothing was tried twice.

    It is of a text by hash, or else of the one with the most attempts.
    """
    own = own if own.name == "paired" else _plain(own)
    wanted = frozenset(items)
    validation = {key: each for key, each in tried.items() if key[1] in wanted}
    seen: tuple[Source, Tried] = ("validation", validation)
    flipping = scatter(validation.values())
    if flipping is None:
        seen = ("training", tried)
        flipping = scatter(tried.values())
    skill = skill or _most_tried(validation)
    if flipping is None or not skill:
        return None
    counts = {item: validation[skill, item] for item in items if (skill, item) in validation}
    chances = posterior(counts, flipping)
    rules = tuple(_worth(rule, chances, len(counts), own, trials) for rule in _rivals(own))
    return Calibration(
        skill=skill,
        items=counts,
        repeated=sum(each.tried > 1 for each in seen[1].values()),
        source=seen[0],
        flip_rate=2 * flipping,
        rules=rules,
        recommended=recommended(rules).rule,
    )


def null_accepts(tried: Tried, items: Collection[str], own: Rule, *, trials: int = TRIALS) -> float | None:
    """How often a rule takes a text against itself, from repeats of validation items; None where there are none."""
    validation = {key: each for key, each in tried.items() if key[1] in items}
    flipping, skill = scatter(validation.values()), _most_tried(validation)
    if flipping is None:
        return None
    counts = {item: each for (text, item), each in validation.items() if text == skill}
    return power(own, posterior(counts, flipping), trials=trials, seed=SEED).accepted


def _most_tried(tried: Tried) -> str:
    """The text with the most attempts, the last one of equals."""
    totals: dict[str, int] = {}
    for (skill, _), each in tried.items():
        totals[skill] = totals.get(skill, 0) + each.tried
    return max(reversed(totals), key=lambda skill: totals[skill]) if totals else ""


def _rivals(own: Rule) -> tuple[Rule, ...]:
    """The run's own rule first, then the usual ones under its clauses."""
    plain = _plain(own)
    usual = (
        evolve(plain, name="strict", draws=1),
        evolve(plain, name="confirm", draws=2),
        evolve(plain, name="paired", draws=2, standard_errors=1.0),
        evolve(plain, name="paired", draws=3, standard_errors=1.5),
    )
    return (own, *(rule for rule in usual if rule != own))


def _plain(rule: Rule) -> Rule:
    """A rule without the standard errors that only `paired` looks at."""
    return evolve(rule, standard_errors=0.0)


def _worth(rule: Rule, chances: Drawn, items: int, own: Rule, trials: int) -> Worth:
    null = power(rule, chances, trials=trials, seed=SEED)
    return Worth(
        rule=rule,
        own=rule == own,
        null_accepts=null.accepted,
        smallest=smallest_gain(rule, chances, items, trials=max(1, trials // 3), seed=SEED),
        spent=null.spent,
        too_little=too_little_for(rule, items),
    )


def recommended(rules: Sequence[Worth]) -> Worth:
    """The rule that sees the smallest gain and seldom takes a text that changes nothing; of equals the cheapest."""
    able = [each for each in rules if not each.too_little] or list(rules)
    honest = [each for each in able if each.null_accepts <= MOST_NULL_ACCEPTS]
    if not honest:
        return min(able, key=lambda each: each.null_accepts)
    return min(honest, key=lambda each: (2.0 if each.smallest is None else each.smallest, each.spent, each.rule.draws))
