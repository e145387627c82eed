"""One item of a run: its split, its results and its history, found without reading those of other items."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import Recorded, RolloutCompleted, only
from skillopt_es.events.values import Purpose
from skillopt_es.projections.item_results import HISTORY_TYPES, ItemHistory, item_history, split_in
from skillopt_es.runs.reading import Reading

_SPLITS: Mapping[Purpose, str] = {
    "train": "train",
    "selection": "validation",
    "parts": "validation",
    "slow_previous": "train",
    "slow_current": "train",
    "test": "test",
}


def split_of(item: str, reading: Reading) -> str:
    """The split that an item is in; raises NotInRun for an item that the run does not have."""
    splits = reading.started.splits
    if split := split_in(splits, item):
        return split
    for _, event in only(RolloutCompleted, results_of(item, reading)):  # an imported run may not know its splits
        return _SPLITS[event.purpose]
    known = (*splits.train, *splits.val, *splits.test)
    close = difflib.get_close_matches(item, known) or [each for each in known if item in each][:3]
    if not known:
        raise NotInRun(f"{reading.run.name} has no result of an item {item}", hint="and it does not know its items")
    hint = f"did you mean {', '.join(close)}?" if close else f"its items have ids such as {', '.join(known[:3])}"
    raise NotInRun(f"{reading.run.name} has no item {item}", hint=hint)


def results_of(item: str, reading: Reading) -> Iterator[Recorded]:
    """Its rollouts, found without reading those of other items."""
    for recorded in reading.read(types=("RolloutCompleted",), mentioning=item):
        if isinstance(recorded.event, RolloutCompleted) and recorded.event.item == item:
            yield recorded


def history_of(item: str, reading: Reading) -> ItemHistory:
    """Everything that the run recorded of an item."""
    others = reading.read(types=[name for name in HISTORY_TYPES if name != "RolloutCompleted"])
    records = sorted([*results_of(item, reading), *others], key=lambda recorded: recorded.seq)
    return item_history(item, (recorded for recorded in records if recorded.seq <= reading.until))
