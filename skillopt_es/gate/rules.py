"""
The rules of the gate: what the draws of two texts say about them. Pure: a rule decides, or names the draws it wants.

A draw is one evaluation of a text, item by item; two texts are compared on the items that were measured under both.

`strict` compares one draw of each text, as the paper does. `confirm` wants an apparent win to happen again in fresh
draws of both. `paired` wants the mean difference over several draws to exceed the noise of drawing, which is measured
as the scatter of each item over its draws, or of each family of items that flip together: where no item ever flips, it
is zero. `lasting` wants more wins than losses to last when the items that turned are drawn again. `no_loss` takes what
is not worse in one draw of each: a candidate has then won elsewhere already, on training items; `no_lasting_loss`
draws the items that turned again before it refuses one.

`KINDS` has all that is asked of a rule by its name. A new rule is a name in `GateRule`, a value in `KINDS`, and a word
about it in `configs/base.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from attrs import frozen

from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import GateNoise, GateRule, Json
from skillopt_es.gate.comparing import (
    NOTHING_KNOWN,
    ROUNDING,
    Comparison,
    Known,
    MoreDraws,
    Reason,
    Ruling,
    Side,
    Verdict,
    compare,
)
from skillopt_es.gate.lasting import lasting
from skillopt_es.gate.noise import NO_FAMILIES, Draw, Worth

Heeded = Literal["draws", "standard_errors", "noise"]
SETTINGS: Mapping[Heeded, str] = {
    "draws": "evaluation.gate_draws",
    "standard_errors": "evaluation.gate_standard_errors",
    "noise": "evaluation.gate_noise",
}
"""The settings that some rules heed and others do not."""

_LEAST_SCATTER = 20  # degrees of freedom from which on the noise of drawing is known to about a sixth


@frozen(kw_only=True)
class Rule:
    """How a candidate has to win; `draws` are the most that one comparison makes of each text."""

    name: GateRule = "strict"
    draws: int = 1
    standard_errors: float = 0.0
    noise: GateNoise = "families"
    judge_noise: float = 0.0
    no_regression: int | None = None
    min_items: int = 0

    @property
    def kind(self) -> RuleKind:
        """All that follows from its name."""
        return KINDS[self.name]

    @property
    def settings(self) -> dict[str, Json]:
        """The config keys that make it, apart from its clauses."""
        return {"evaluation.gate_rule": self.name, **{SETTINGS[name]: getattr(self, name) for name in self.kind.heeds}}


def judge(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known = NOTHING_KNOWN) -> Ruling | MoreDraws:
    """The rule's verdict on these draws, or the draws that it wants first."""
    # Both are wanted at once where neither was drawn: they run side by side.
    if not candidate.draws or not current.draws:
        return MoreDraws(candidate=0 if candidate.draws else 1, current=0 if current.draws else 1)
    found = rule.kind.judged(rule, current, candidate, worth, known)
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


def _won_once(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
    """By the first draw of each text alone, whatever was drawn for other rules."""
    return _won_again(1, _oldest(current), _oldest(candidate), worth)


def _not_worse(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
    """By the first draw of each text: what is gained makes up for what is lost."""
    ours, theirs = _oldest(candidate), _oldest(current)
    seen = compare(theirs.draws, ours.draws, theirs.bonus, ours.bonus, worth)
    if seen.gain < -ROUNDING:
        return Ruling(verdict="reject", reason="worse", comparison=seen)
    return Ruling(verdict="accept", reason="not_worse", comparison=seen)


def _lasts(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known, *, ties: bool) -> Ruling | MoreDraws:
    return lasting(rule.draws, current, candidate, worth, known, ties=ties)


def _oldest(side: Side) -> Side:
    return Side(draws=side.draws[:1], bonus=side.bonus)


def _confirmed(rule: Rule, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
    return _won_again(rule.draws, current, candidate, worth)


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
        # A gain that rounding can make is none.
        if seen.gain <= ROUNDING:
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
    if seen.gain > rule.standard_errors * seen.error + ROUNDING:
        return Ruling(verdict="accept", reason="beyond_noise", comparison=seen)
    return Ruling(verdict="indecisive", reason="within_noise", comparison=seen)


def _within_clauses(rule: Rule, ruling: Ruling) -> Ruling:
    """The ruling, unless a clause on top forbids it."""
    seen = ruling.comparison
    if ruling.verdict == "accept" and len(seen.items) < rule.min_items:
        return Ruling(verdict="indecisive", reason="few_items", comparison=seen)
    if ruling.verdict == "accept" and rule.no_regression is not None and len(seen.lost) > rule.no_regression:
        return Ruling(verdict="reject", reason="items_lost", comparison=seen)
    # A tie that a rule takes is no claim of a gain.
    if ruling.verdict == "accept" and not rule.kind.takes_ties and 0 < seen.gain <= _judges_error(rule, seen):
        return Ruling(verdict="indecisive", reason="within_noise", comparison=seen)
    return ruling


def _judges_error(rule: Rule, seen: Comparison) -> float:
    """The standard error of the gain if nothing but the judge of the answers wavered."""
    draws = 1 / max(1, seen.candidate_draws) + 1 / max(1, seen.current_draws)
    return rule.judge_noise * math.sqrt(draws / max(1, len(seen.items)))


def too_little_for(rule: Rule, items: int) -> SettingRefused | None:
    """That so many items cannot carry the rule, by the setting that says so, with what would be enough."""
    if rule.min_items > items:
        said = f" is {rule.min_items}, and there are {items} validation items"
        return SettingRefused("evaluation.min_items", said)
    if rule.no_regression is not None and rule.no_regression >= items:
        said = f": {rule.no_regression} refuses nothing with {items} validation items; give at most {items - 1}"
        return SettingRefused("evaluation.no_regression", said)
    return rule.kind.needs(rule, items)


def _carries_any(rule: Rule, items: int) -> SettingRefused | None:
    return None


def _scatter_needed(rule: Rule, items: int) -> SettingRefused | None:
    """Fewer results than these do not tell the noise."""
    if 2 * items * (rule.draws - 1) >= _LEAST_SCATTER:
        return None
    enough = math.ceil(_LEAST_SCATTER / (2 * (rule.draws - 1)))
    draws = math.ceil(_LEAST_SCATTER / (2 * items)) + 1
    return SettingRefused(
        "evaluation.gate_rule",
        f": paired cannot tell the noise from {items} validation items with {rule.draws} draws; "
        f"{enough} items are enough, or evaluation.gate_draws: {draws}",
    )


Opposed = tuple[tuple[Draw, ...], tuple[Draw, ...]]
"""Draws of the current text, and of the candidate."""


def _first_draws(current: Side, candidate: Side) -> Opposed:
    return current.draws[:1], ()


def _one_by_one(current: Side, candidate: Side) -> Opposed:
    if not candidate.draws:
        return (current.first,), ()
    return (current.fresh[len(candidate.fresh)],), ()


def _all_rounds(current: Side, candidate: Side) -> Opposed:
    if not candidate.draws:
        return _one_by_one(current, candidate)
    rounds = len(candidate.fresh) + 1
    return (current.first, *current.fresh[:rounds]), (candidate.first, *candidate.fresh)


def _known_draws(current: Side, candidate: Side) -> Opposed:
    return current.until(1), ()


def _all_draws(current: Side, candidate: Side) -> Opposed:
    return current.until(len(candidate.draws) + 1), candidate.draws


@frozen(kw_only=True)
class RuleKind:
    """
    What is asked of a rule by its name: how it judges, and what it is told by.

    `heeds` are the settings that matter to it. Where a candidate's next draw ends early, `opposed` is what that
    is compared with, and together with which of its own draws; `stated` the draws whose means are stated beside the
    verdict. A candidate that loses its first round is `lost_first`, a later one `lost_later`. A rule that `pools` its
    draws compares their means, where a gain as small as a rounding is none; by one that `takes_ties` a tie wins. By one
    that `lasts` an item counts that is above, or below, every draw of the current text; where it takes ties, too, being
    behind is not the end of it.
    `needs` says what so few items cannot carry; `usual` are the forms of the rule that others are measured by.
    """

    heeds: tuple[Heeded, ...] = ()
    judged: Callable[[Rule, Side, Side, Worth, Known], Ruling | MoreDraws]
    opposed: Callable[[Side, Side], Opposed]
    stated: Callable[[Side, Side], Opposed]
    lost_first: tuple[Verdict, Reason] = ("reject", "not_better")
    lost_later: tuple[Verdict, Reason] = ("reject", "not_better")
    pools: bool = False
    takes_ties: bool = False
    lasts: bool = False
    needs: Callable[[Rule, int], SettingRefused | None] = _carries_any
    usual: tuple[Rule, ...]


KINDS: Mapping[GateRule, RuleKind] = {
    "strict": RuleKind(judged=_won_once, opposed=_first_draws, stated=_first_draws, usual=(Rule(),)),
    "confirm": RuleKind(
        heeds=("draws",),
        judged=_confirmed,
        opposed=_one_by_one,
        stated=_all_rounds,
        lost_later=("indecisive", "not_confirmed"),
        usual=(Rule(name="confirm", draws=2),),
    ),
    "paired": RuleKind(
        heeds=("draws", "standard_errors", "noise"),
        judged=_paired,
        opposed=_all_draws,
        stated=_all_draws,
        pools=True,
        needs=_scatter_needed,
        usual=(
            Rule(name="paired", draws=2, standard_errors=1.0),
            Rule(name="paired", draws=3, standard_errors=1.5),
        ),
    ),
    "lasting": RuleKind(
        heeds=("draws",),
        judged=partial(_lasts, ties=False),
        opposed=_known_draws,
        stated=_known_draws,
        lasts=True,
        usual=(Rule(name="lasting", draws=4),),
    ),
    "no_loss": RuleKind(
        judged=_not_worse,
        opposed=_first_draws,
        stated=_first_draws,
        lost_first=("reject", "worse"),
        takes_ties=True,
        usual=(),  # alone it refuses no text that is as good as another: measured beside the others it says nothing
    ),
    "no_lasting_loss": RuleKind(
        heeds=("draws",),
        judged=partial(_lasts, ties=True),
        opposed=_known_draws,
        stated=_known_draws,
        lost_first=("reject", "worse"),
        takes_ties=True,
        lasts=True,
        usual=(),
    ),
}


def heeded(rule: Rule) -> Rule:
    """The rule without the settings that its kind ignores."""
    said = {name: getattr(rule, name) for name in rule.kind.heeds}
    return Rule(
        name=rule.name,
        judge_noise=rule.judge_noise,
        no_regression=rule.no_regression,
        min_items=rule.min_items,
        **said,
    )
