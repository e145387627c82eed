"""Calls that were not made when they were wanted: ahead of a verdict, or not at all because their answer was known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from attrs import define, field, frozen

from skillopt_es.events.journal import CallRow, ChargeRow
from skillopt_es.events.places import Place
from skillopt_es.projections.prices import Prices
from skillopt_es.projections.usage import NO_PRICES, UsageSums, usage_of


@frozen(kw_only=True)
class Ahead:
    """What was asked ahead, the part of it that nobody wanted in the end, and how many repeats saved a call."""

    made: UsageSums
    wasted: UsageSums
    repeats: int


@define
class AheadTally:
    """Gathers what was asked ahead while somebody else reads the journal."""

    _made: dict[str, CallRow | ChargeRow] = field(factory=dict)
    _asked_otherwise: set[str] = field(factory=set)
    _repeats: int = 0

    def passing(self, rows: Iterable[CallRow | ChargeRow]) -> Iterator[CallRow | ChargeRow]:
        """The same rows, after a look at each."""
        for row in rows:
            call = row.call
            self._repeats += bool(call.repeats)
            if call.ahead:
                self._made[call.slot] = row
            elif call.slot in self._made and call.request_digest != self._made[call.slot].call.request_digest:
                self._asked_otherwise.add(call.slot)
            yield row

    def result(self, accepted: Collection[int], prices: Prices = NO_PRICES, *, last_step: int | None = None) -> Ahead:
        """
        The calls made ahead; `accepted` are the steps whose candidate was taken, `last_step` is the last step.

        A call is waste when the candidate of the step before its own was taken, when its place asked something else, or
        when the training ended before its step.
        """
        wasted = [
            row
            for slot, row in self._made.items()
            if slot in self._asked_otherwise
            or _step(slot) - 1 in accepted
            or (last_step is not None and _step(slot) > last_step)
        ]
        made, lost = usage_of(self._made.values(), prices).total, usage_of(wasted, prices).total
        return Ahead(made=made, wasted=lost, repeats=self._repeats)


def _step(slot: str) -> int:
    step = Place(slot).step
    assert step is not None  # nothing but a step's own tasks is tried ahead
    return step
