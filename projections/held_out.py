"""
That no validation or test item is evidence of a change, and that what a certificate calls fresh is so.

Every item an optimizer was shown is held against the splits; every item that was bet on against all that was tried and
shown before.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from skillopt_es.events.catalog import (
    CertificateWagered,
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    RunStarted,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import HELD_OUT, Minibatch, SplitIds


@define
class HeldOut:
    """
    The items of validation and test, and what has been tried as training and shown, while events are read.

    `problem` looks at one event after the other; it derives nothing, so it also holds where a planner would be wrong.
    """

    split_of: dict[str, str] = field(factory=dict)
    tried: set[tuple[str, str]] = field(factory=set)
    places: dict[str, list[str]] = field(factory=dict)
    shown: dict[str, str] = field(factory=dict)
    evidence: int = 0

    def problem(self, event: Event) -> str:
        """What is wrong with an event's evidence; empty for most."""
        match event:
            case RunStarted():
                return self._splits(event.splits)
            case RolloutCompleted() if event.purpose not in HELD_OUT:
                self._try(event.place, event.item)
                return self._held_out([event.item], f"tries for training at {event.place}")
            case MinibatchesPlanned():
                return next(filter(None, map(self._group, event.groups)), "")
            case CertificateWagered():
                return next(filter(None, (self._fresh(item, event) for item in event.by_item.gains)), "")
            case _:
                items = items_behind(event)
                self.shown.update((item, type(event).__name__) for item in items if item not in self.shown)
                return self._held_out(items, "rests on") if items else ""

    def _try(self, place: str, item: str) -> None:
        self.tried.add((place, item))
        self.places.setdefault(item, []).append(place)

    def _fresh(self, item: str, event: CertificateWagered) -> str:
        """What had met an item before a certificate bet on it; and whether it met both texts there."""
        if item in self.shown:
            return f"claims {item} as fresh, which the optimizer was shown before ({self.shown[item]})"
        root, places = Place(event.place), self.places.get(item, [])
        own = [place for place in places if Place(place).is_batch_at(root)]
        beside = [place for place in places if Place(place).is_batch_at(root.certified)]
        if not own or not beside:
            return f"bets on {item}, which was not tried under both texts at {event.place}"
        earlier = places[: places.index(own[0])]
        other = next((place for place in earlier if place not in beside), "")
        return f"claims {item} as fresh, which was tried at {other} before" if other else ""

    def _splits(self, splits: SplitIds) -> str:
        for split, items in (("train", splits.train), ("validation", splits.val), ("test", splits.test)):
            twice = [item for item in items if self.split_of.setdefault(item, split) != split]
            if twice:
                return f"has items in two splits: {_few(twice)}"
        return ""

    def _group(self, group: Minibatch) -> str:
        self.evidence += len(group.items)
        self.shown.update((item, group.id) for item in group.items if item not in self.shown)
        return self._held_out(group.items, f"shows {group.id}") or self._untried(group.attempts)

    def _held_out(self, items: Iterable[str], what: str) -> str:
        wrong = [f"{item} ({self.split_of[item]})" for item in items if self.split_of.get(item, "train") != "train"]
        return f"{what} held-out items: {_few(wrong)}" if wrong else ""

    def _untried(self, attempts: Iterable[tuple[str, str]]) -> str:
        wrong = [attempt for attempt in attempts if attempt not in self.tried]
        if not wrong:
            return ""
        return f"shows attempts at {wrong[0][0]} that were never made: {_few([item for _, item in wrong])}"


def items_behind(event: Event) -> tuple[str, ...]:
    """The items that an event says a change, or the guidance for one, comes from."""
    match event:
        case PatchProposed() | ComparisonDrawn() | ComparisonExtended():
            return event.items
        case SlowUpdateProposed():
            return tuple(pair.item for pair in event.pairs)
        case _:
            return ()


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
