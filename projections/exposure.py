"""
Which training items a run has met, and which of them its optimizer was shown.

An item is *met* where it was first tried in training, whatever for: from then on its result may have moved training.
It is *shown* from the first question or comparison that it was drawn into. What the optimizer is told besides (edits
that were merged or refused, notes, guidance, its memory) descends from such questions, so no further item comes in by
it; of validation it is only ever told counts. What no step before has met is fresh for the texts that were there by
then: they cannot have been made for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    MinibatchesPlanned,
    RolloutCompleted,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import HELD_OUT
from skillopt_es.projections.persistent import Ledger


@frozen(kw_only=True)
class Exposure:
    """By item, the place where it was first met, and the question or comparison in which it was first shown."""

    met: Ledger[str, str] = field(factory=Ledger)
    shown: Ledger[str, str] = field(factory=Ledger)

    def fresh(self, items: Iterable[str], root: str) -> tuple[str, ...]:
        """Those of the items that nothing has met but the batches that lie directly at a place."""
        return tuple(item for item in items if item not in self.met or Place(self.met[item]).is_batch_at(root))


def after_rollouts(exposure: Exposure, events: Sequence[RolloutCompleted]) -> Exposure:
    """What is known once these were tried."""
    met = exposure.met
    for event in events:
        if event.purpose not in HELD_OUT and event.item not in met:
            met = met.put(event.item, event.place)
    return exposure if met is exposure.met else replace(exposure, met=met)


def after_showing(exposure: Exposure, event: Event) -> Exposure:
    """What is known once an event has drawn items for the optimizer to see; most events draw none."""
    shown = exposure.shown
    for item, where in _shown_by(event):
        if item not in shown:
            shown = shown.put(item, where)
    return exposure if shown is exposure.shown else replace(exposure, shown=shown)


def _shown_by(event: Event) -> Iterable[tuple[str, str]]:
    """The items that an event puts before the optimizer, each with the question or comparison."""
    match event:
        case MinibatchesPlanned():
            return [(item, group.id) for group in event.groups for item in group.items]
        case ComparisonDrawn() | ComparisonExtended():
            return [(item, Place.of_epoch(event.epoch).slow) for item in event.items]
        case SlowUpdateProposed():
            return [(pair.item, Place.of_epoch(event.epoch).slow) for pair in event.pairs]
        case _:
            return ()


SHOWING: tuple[type[Event], ...] = (MinibatchesPlanned, ComparisonDrawn, ComparisonExtended, SlowUpdateProposed)
"""The events that put items before the optimizer."""
