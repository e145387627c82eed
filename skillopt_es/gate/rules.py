"""
The rules of the gate: what the draws of two texts say about them. Pure: a rule decides, or names the draws it wants.

A draw is one evaluation of a text, item by item. `strict` compares one draw of each text, as the paper does. `confirm`
wants an apparent win to happen again in fresh draws of both. `paired` wants the mean difference over several draws to
exceed the noise of drawing, which is measured as the scatter of each item over its draws, or of each family of items
that flip together: where no item ever flips, it is zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import GateNoise, GateRule
from skillopt_es.gate.compare import NO_FAMILIES, Comparison, Draw, Worth, compare

Verdict = Literal["accept", "reject", "indecisive"]
Reason = Literal[
    "better", "confirmed", "beyond_noise", "not_better", "not_confirmed", "within_noise", "items_lost", "few_items"
]

_ROUNDING = 1e-9
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
    number, families = 0, known.families if rule.noise == "families" else NO_FAMILIES
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


def too_little_for(rule: Rule, items: int) -> SettingRefused | None:
    """That so many items cannot carry the rule, by the setting that says so, with what would be enough."""
    if rule.min_items > items:
        said = f" is {rule.min_items}, and there are {items} validation items"
        return SettingRefused("evaluation.min_items", said)
    if rule.no_regression is not None and rule.no_regression >= items:
        said = f": {rule.no_regression} refuses nothing with {items} validation items; give at most {items - 1}"
        return SettingRefused("evaluation.no_regression", said)
    if rule.name != "paired" or 2 * items * (rule.draws - 1) >= _LEAST_SCATTER:
        return None
    enough = math.ceil(_LEAST_SCATTER / (2 * (rule.draws - 1)))
    draws = math.ceil(_LEAST_SCATTER / (2 * items)) + 1
    return SettingRefused(
        "evaluation.gate_rule",
        f": paired cannot tell the noise from {items} validation items with {rule.draws} draws; "
        f"enough are {enough} items, or evaluation.gate_draws: {draws}",
    )
