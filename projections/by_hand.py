"""What people did to a run beside its rules: candidates accepted or rejected, lines kept or struck, tasks left out.

A score of such a run is not what its algorithm alone came to, so whatever shows the score says this, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from attrs import evolve, field, frozen

from skillopt_es.events.catalog import Event, EvidenceRetracted, RunStarted, RunSteered, names_of
from skillopt_es.events.values import Split, SplitIds


@frozen(kw_only=True)
class HandCounts:
    """
    How much people did, without the names of tasks: candidates, lines, hints, and what they left out.

    `left_out` is how many tasks of each split, and `results_left_out` how many single results.
    """

    accepted: int = 0
    rejected: int = 0
    pinned: int = 0
    struck: int = 0
    hints: int = 0
    left_out: Mapping[Split, int] = field(factory=dict)
    results_left_out: int = 0


@frozen(kw_only=True)
class ByHand:
    """
    What people did: which candidates (by hash) they took or refused, how many lines they pinned and struck, and hints.

    `left_out` are tasks, by split. `results` are single results that were left out: where, and of which task.
    """

    decided: Mapping[str, Literal["take", "refuse"]] = field(factory=dict)
    pinned: int = 0
    struck: int = 0
    hints: int = 0
    left_out: Mapping[Split, tuple[str, ...]] = field(factory=dict)
    results: tuple[tuple[str, str], ...] = ()

    @property
    def counts(self) -> HandCounts:
        """How much that is."""
        orders = [*self.decided.values()]
        return HandCounts(
            accepted=orders.count("take"),
            rejected=orders.count("refuse"),
            pinned=self.pinned,
            struck=self.struck,
            hints=self.hints,
            left_out={split: len(items) for split, items in self.left_out.items()},
            results_left_out=len(self.results),
        )

    def __bool__(self) -> bool:
        """Whether anybody did anything that a score may rest on; a pause or another budget is no such thing."""
        return self != ByHand()


def after_hand(found: ByHand, event: Event, splits: SplitIds | None) -> ByHand:
    """The same after one more event; `splits` are those that the run began with."""
    if isinstance(event, EvidenceRetracted):
        return _left_out(found, event, splits)
    match event:
        case RunSteered(order="take" | "refuse" as order):
            return evolve(found, decided={**found.decided, event.text: order})
        case RunSteered(order="pin"):
            return evolve(found, pinned=found.pinned + 1)
        case RunSteered(order="strike"):
            return evolve(found, struck=found.struck + 1)
        case RunSteered(order="hint"):
            return evolve(found, hints=found.hints + 1)
    return found


def _left_out(found: ByHand, event: EvidenceRetracted, splits: SplitIds | None) -> ByHand:
    if event.place:
        return evolve(found, results=(*found.results, *((event.place, item) for item in event.items)))
    if splits is None:  # the log can be read in part only
        return found
    ids: Mapping[Split, tuple[str, ...]] = {"train": splits.train, "val": splits.val, "test": splits.test}
    gone = {split: tuple(item for item in event.items if item in there) for split, there in ids.items()}
    more = {split: (*found.left_out.get(split, ()), *items) for split, items in gone.items() if items}
    return evolve(found, left_out={**found.left_out, **more})


def by_hand(events: Iterable[Event]) -> ByHand:
    """What people did, from all events or those of BY_HAND_TYPES."""
    found, splits = ByHand(), None
    for event in events:
        splits = event.splits if isinstance(event, RunStarted) else splits
        found = after_hand(found, event, splits)
    return found


BY_HAND_TYPES = names_of((RunStarted, RunSteered, EvidenceRetracted))
"""The events that say what people did."""
