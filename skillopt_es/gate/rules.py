"""
The rules of the gate: what the draws of two texts say about them. Pure: a rule decides, or names the draws it wants.

A draw is one evaluation of a text, item by item; two texts are compared on the items that were measured under both.

A rule is a class with a method `weigh`, and one in `RULES`. A new rule is that and its name in `GateRule` (`values.py`,
where the sets beside it say what the rooms below the gate know of a rule by its name). docs/gate.md has a line for
each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from attrs import frozen

from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import RETESTS, TAKES_TIES, GateRule, Json
from skillopt_es.gate.comparing import (
    NOTHING_KNOWN,
    ROUNDING,
    Comparison,
    Known,
    MoreDraws,
    Reason,
    Ruling,
    Side,
    compare,
)
from skillopt_es.gate.noise import Draw, Worth
from skillopt_es.gate.retest import retested

Opposed = tuple[tuple[Draw, ...], tuple[Draw, ...]]
"""Draws of the current text, and of the candidate."""

_LEAST_SCATTER = 20  # degrees of freedom from which on the noise of drawing is known to about a sixth
_REPEATS: Mapping[str, str] = {"repeats": "gate_repeats"}


@frozen(kw_only=True)
class Bound:
    """
    The most by which a candidate can still lead, added up over so many items; `bonus` is what it has by its text alone.

    It is `exact` where nothing but whole points is compared: then a tie is a tie in whatever order they are summed.
    """

    lead: float
    items: int
    bonus: float
    exact: bool


@frozen(kw_only=True)
class Rule(ABC):
    """
    How a candidate has to win; `repeats` are the most draws that one comparison makes of each text.

    `heeds` are the fields that matter to it besides the clauses, each with its key in the section `evaluation`. `lost`
    is why a candidate is rejected that can no longer win. The clauses on top are the same for all rules.
    """

    name: ClassVar[GateRule]
    heeds: ClassVar[Mapping[str, str]] = {}
    lost: ClassVar[Reason] = "not_better"

    repeats: int = 1
    judge_noise: float = 0.0
    no_regression: int | None = None
    min_items: int = 0

    # --- what a rule says of itself ------------------------------------------------------------------------------

    @abstractmethod
    def weigh(self, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
        """What it says of two texts that have a draw each, its clauses apart; or the draws that it wants first."""

    @classmethod
    def usual(cls) -> tuple[Rule, ...]:
        """The forms of it that others are measured by."""
        return ()

    def opposed(self, current: Side, candidate: Side) -> Opposed:
        """What a candidate's next draw is compared with, and together with which of its own draws."""
        return current.draws[:1], ()

    def needs(self, items: int) -> SettingRefused | None:
        """That so few items cannot carry it, its clauses apart."""
        return None

    def may_stop(self, known: Known) -> bool:
        """Whether a draw of a candidate can end early at all."""
        return True

    def is_lost(self, most: Bound) -> bool:
        """Whether a candidate that can lead by no more than this is rejected."""
        if most.exact:
            return most.lead <= 0
        # Where parts of a point are summed, a tie may look like either: only a clear loss ends it.
        return most.lead <= -ROUNDING * most.items and most.items > 0

    @property
    def title(self) -> str:
        """Its name, with the settings that matter to it."""
        return f"{self.name}, {self.repeats} draws" if "repeats" in self.heeds else self.name

    # --- what follows for all ------------------------------------------------------------------------------------

    @property
    def takes_ties(self) -> bool:
        """Whether a text that is as good as the current one is accepted."""
        return self.name in TAKES_TIES

    @property
    def retests(self) -> bool:
        """Whether it draws nothing again but the items that turned."""
        return self.name in RETESTS

    @property
    def settings(self) -> dict[str, Json]:
        """The config keys that make it, apart from its clauses."""
        own = {f"evaluation.{key}": getattr(self, field) for field, key in self.heeds.items()}
        return {"evaluation.gate_rule": self.name, **own}

    def judge(self, current: Side, candidate: Side, worth: Worth, known: Known = NOTHING_KNOWN) -> Ruling | MoreDraws:
        """The rule's verdict on these draws, or the draws that it wants first."""
        # Both are wanted at once where neither was drawn: they run side by side.
        if not candidate.draws or not current.draws:
            return MoreDraws(candidate=0 if candidate.draws else 1, current=0 if current.draws else 1)
        found = self.weigh(current, candidate, worth, known)
        return found if isinstance(found, MoreDraws) else self._within_clauses(found)

    def too_little(self, items: int) -> SettingRefused | None:
        """That so many items cannot carry it, by the setting that says so, with what would be enough."""
        if self.min_items > items:
            said = f" is {self.min_items}, and there are {items} validation items"
            return SettingRefused("evaluation.min_items", said)
        if self.no_regression is not None and self.no_regression >= items:
            said = f": {self.no_regression} refuses nothing with {items} validation items; give at most {items - 1}"
            return SettingRefused("evaluation.no_regression", said)
        return self.needs(items)

    def _within_clauses(self, ruling: Ruling) -> Ruling:
        """The ruling, unless a clause on top forbids it."""
        seen = ruling.comparison
        if ruling.verdict != "accept":
            return ruling
        if len(seen.items) < self.min_items:
            return Ruling(verdict="indecisive", reason="few_items", comparison=seen)
        if self.no_regression is not None and len(seen.lost) > self.no_regression:
            return Ruling(verdict="reject", reason="items_lost", comparison=seen)
        # A tie that a rule takes is no claim of a gain.
        if not self.takes_ties and 0 < seen.gain <= self._judges_error(seen):
            return Ruling(verdict="indecisive", reason="within_noise", comparison=seen)
        return ruling

    def _judges_error(self, seen: Comparison) -> float:
        """The standard error of the gain if nothing but the judge of the answers wavered."""
        draws = 1 / max(1, seen.candidate_draws) + 1 / max(1, seen.current_draws)
        return self.judge_noise * math.sqrt(draws / max(1, len(seen.items)))


def _compared_once(current: Side, candidate: Side, worth: Worth) -> Comparison:
    """By the first draw of each text alone, whatever was drawn for other rules."""
    return compare(current.draws[:1], candidate.draws[:1], current.bonus, candidate.bonus, worth)


@frozen(kw_only=True)
class Strict(Rule):
    """One draw of each text: the candidate has to be ahead, as in the paper."""

    name = "strict"

    @classmethod
    def usual(cls) -> tuple[Rule, ...]:
        """The only form."""
        return (cls(),)

    def weigh(self, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
        """By the first draws."""
        seen = _compared_once(current, candidate, worth)
        if seen.candidate_value > seen.current_value:
            return Ruling(verdict="accept", reason="better", comparison=seen)
        return Ruling(verdict="reject", reason="not_better", comparison=seen)


@frozen(kw_only=True)
class _TakesTies(Rule):
    """
    A rule that asks for no loss, of a candidate that has won elsewhere already.

    It has no usual form: alone it refuses no text that is as good as another, so beside the others it says nothing.
    """

    lost = "worse"

    def is_lost(self, most: Bound) -> bool:
        """Only what is behind, and by more than rounding makes."""
        return most.lead < -2 * ROUNDING * most.items


@frozen(kw_only=True)
class NotWorse(_TakesTies):
    """One draw of each text: what is gained makes up for what is lost."""

    name = "not_worse"

    def weigh(self, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
        """By the first draws."""
        seen = _compared_once(current, candidate, worth)
        if seen.gain < -ROUNDING:
            return Ruling(verdict="reject", reason="worse", comparison=seen)
        return Ruling(verdict="accept", reason="not_worse", comparison=seen)


@frozen(kw_only=True)
class _RunsOn(Rule):
    """A rule that draws on: a gain as small as a rounding is none, and whatever is summed, a tie is no win."""

    def is_lost(self, most: Bound) -> bool:
        """What is behind, or ties with nothing but its results."""
        return most.lead < 0 or (most.lead == 0 and most.bonus <= 0)


@frozen(kw_only=True)
class Paired(_RunsOn):
    """
    The mean difference over several draws of both texts has to exceed the noise of drawing.

    That is measured as the scatter of each item over its draws, or of each type of items, which may flip together:
    where no item ever flips, it is zero.
    """

    name = "paired"
    heeds: ClassVar[Mapping[str, str]] = {**_REPEATS, "standard_errors": "gate_standard_errors"}

    standard_errors: float = 0.0

    @classmethod
    def usual(cls) -> tuple[Rule, ...]:
        """Two draws, and the three that `safe` once had."""
        return (cls(repeats=2, standard_errors=1.0), cls(repeats=3, standard_errors=1.5))

    @property
    def title(self) -> str:
        """With its margin."""
        errors = f"{self.standard_errors:g} {'error' if self.standard_errors == 1 else 'errors'}"
        return f"{self.name}, {errors}, {self.repeats} draws"

    def weigh(self, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
        """Round by round over all draws so far; a candidate that is not ahead after a round is not drawn on."""
        number = 0
        while True:
            number += 1
            if min(len(candidate.draws), len(current.draws)) < number:
                return MoreDraws(
                    candidate=number if len(candidate.draws) < number else 0,
                    current=number if len(current.draws) < number else 0,
                )
            drawn = (current.until(number), candidate.until(number))
            seen = compare(*drawn, current.bonus, candidate.bonus, worth, known.families)
            # A gain that rounding can make is none.
            if seen.gain <= ROUNDING:
                return Ruling(verdict="reject", reason="not_better", comparison=seen)
            if number == self.repeats or (number > 1 and seen.error == 0 and self._steady(seen, known)):
                return self._beyond_noise(seen)

    def opposed(self, current: Side, candidate: Side) -> Opposed:
        """All draws so far, and as many of the current text."""
        return current.until(len(candidate.draws) + 1), candidate.draws

    def needs(self, items: int) -> SettingRefused | None:
        """Fewer results than these do not tell the noise."""
        if 2 * items * (self.repeats - 1) >= _LEAST_SCATTER:
            return None
        enough = math.ceil(_LEAST_SCATTER / (2 * (self.repeats - 1)))
        repeats = math.ceil(_LEAST_SCATTER / (2 * items)) + 1
        return SettingRefused(
            "evaluation.gate_rule",
            f": paired cannot tell the noise from {items} validation items with {self.repeats} draws; "
            f"{enough} items are enough, or evaluation.gate_repeats: {repeats}",
        )

    def _steady(self, seen: Comparison, known: Known) -> bool:
        """Whether more draws tell nothing: no item ever gave two results."""
        # That these draws agree is no proof: a coin gives the same twice, every other time.
        return known.flipped.isdisjoint(seen.items)

    def _beyond_noise(self, seen: Comparison) -> Ruling:
        """The last round's ruling on a candidate that is ahead."""
        if seen.error is None:  # every item failed in all of its draws but one
            return Ruling(verdict="indecisive", reason="few_items", comparison=seen)
        if seen.gain > self.standard_errors * seen.error + ROUNDING:
            return Ruling(verdict="accept", reason="beyond_noise", comparison=seen)
        return Ruling(verdict="indecisive", reason="within_noise", comparison=seen)


@frozen(kw_only=True)
class Retest(_RunsOn):
    """The candidate has to be ahead in its draw, and still when the items that turned are drawn again under both."""

    name = "retest"
    heeds = _REPEATS

    @classmethod
    def usual(cls) -> tuple[Rule, ...]:
        """The form that `safe` has."""
        return (cls(repeats=4),)

    def weigh(self, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
        """By what stands after each draw."""
        return retested(self.repeats, current, candidate, worth, known, ties=False)

    def opposed(self, current: Side, candidate: Side) -> Opposed:
        """All that was drawn of the current text before."""
        return current.until(1), ()


@frozen(kw_only=True)
class NotWorseRetest(_TakesTies):
    """The candidate must not be behind, or no longer when the items that turned are drawn again under both texts."""

    name = "not_worse_retest"
    heeds = _REPEATS

    def weigh(self, current: Side, candidate: Side, worth: Worth, known: Known) -> Ruling | MoreDraws:
        """By what stands after each draw."""
        return retested(self.repeats, current, candidate, worth, known, ties=True)

    def opposed(self, current: Side, candidate: Side) -> Opposed:
        """All that was drawn of the current text before."""
        return current.until(1), ()

    def may_stop(self, known: Known) -> bool:
        """What is behind is looked at once more on all items that turned, if anything varies."""
        return known.steady or self.repeats < 2


RULES: Mapping[GateRule, type[Rule]] = {rule.name: rule for rule in (Strict, Paired, Retest, NotWorse, NotWorseRetest)}
