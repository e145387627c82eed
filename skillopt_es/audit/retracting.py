"""
`retract`: which evidence is meant, and with `--apply` a fork that never met it and goes on without it.

The fork leaves its run at the last moment between two steps before anything met the evidence, so nothing in it was
written by anybody who had seen it, and every skill that it comes to is judged anew by its own gate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from attrs import frozen

from skillopt_es.audit.descent import Evidence
from skillopt_es.engine.algorithms import algorithm_at, evolve
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.catalog import (
    STEP_ENDS,
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    EvidenceRetracted,
    RolloutCompleted,
    ended_step,
    names_of,
    only,
)
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place, result_named
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.reading import Reading, whole_log
from skillopt_es.sessions.forking import Fork, make_fork
from skillopt_es.sessions.session import read_state


@frozen
class Retracted:
    """A fork without the evidence; `again` of its parent's steps are to be done again, and why they are not shared."""

    fork: Fork
    event: EvidenceRetracted
    again: int


def retracted(
    parent: Path, evidence: Evidence, folder: Path, *, reason: str, by: str, now: Callable[[], datetime]
) -> Retracted:
    """A fork of the run in `parent` without the evidence; raises ConfigError where none can be or is needed."""
    event = EvidenceRetracted(items=(evidence.item,), reason=reason, by=by, place=evidence.place)
    _check_beginning(evidence, parent, read_state(parent, 1))
    with whole_log(parent) as log:
        _check_trajectory(evidence, log)
        seq, met = before(evidence, log)
        done = sum(ended_step(each.event) is not None for each in log.read(after=seq, types=names_of(STEP_ENDS)))
        if met is None and any(log.read(types=("RunCompleted",))):
            raise ConfigError(f"nothing in {parent.name} descends from {evidence.item}: there is nothing to rebuild")
    _check_splits(evidence, parent, read_state(parent, seq))
    return Retracted(make_fork(parent, seq, folder, then=(event,), now=now), event, done)


def _check_splits(evidence: Evidence, parent: Path, state: AnyState | None) -> None:
    """That the run goes on with the item, and can go on without it; what cannot be forked, `make_fork` refuses."""
    if state is None or state.imported is not None or evidence.place:
        return
    splits = state.started.splits
    if evidence.item not in (*splits.train, *splits.val, *splits.test):
        raise ConfigError(f"{evidence.item} is already retracted in {parent.name}")
    for name, ids in (("train", splits.train), ("validation", splits.val)):
        if ids == (evidence.item,):
            raise ConfigError(
                f"{evidence.item} is the only item of the {name} split, and a run needs one",
                hint="start a new run with other data",
            )


def _check_beginning(evidence: Evidence, parent: Path, state: AnyState | None) -> None:
    """That nothing the run began with can descend from the evidence: no moment of it would be early enough."""
    learned = None if state is None else state.started.learned
    if learned is not None:
        raise ConfigError(
            f"{parent.name} began with what {learned.run} had learned, and that may descend from {evidence.item}",
            hint=f"retract it from {learned.run}, and `skillopt-es continue` that fork",
        )


def _check_trajectory(evidence: Evidence, log: EventLog) -> None:
    """That one trajectory alone can be left out."""
    records = log.read(types=("RolloutCompleted",), mentioning=evidence.item) if evidence.place else ()
    for _, event in only(RolloutCompleted, records):
        if evidence.is_of(event.item, event.place) and event.purpose != "train":
            raise ConfigError(
                f"the trajectory {Place(event.place).of_item(event.item)} belongs to a {_PURPOSES[event.purpose]}, "
                "where every item must count the same for all skills",
                hint=f"retract the item: `--item {event.item}`",
            )


_PURPOSES = {
    "selection": "validation",
    "parts": "validation",
    "test": "test",
    "slow_previous": "comparison",
    "slow_current": "comparison",
}

_DIGEST = re.compile(r"[0-9a-f]{6,64}")


def trajectory_named(named: str, reading: Reading) -> Evidence:
    """The one trajectory with this event number, slot (`PLACE/item/ID`) or digest; raises NotInRun for none or many."""
    found = list(_named(named, reading))
    name = reading.run.name
    if not found:
        raise NotInRun(
            f"{name} has no trajectory {named}",
            hint="name it by its event's number, its slot (PLACE/item/ID) or how its digest begins; "
            "`skillopt-es explain --item ID` lists an item's results",
        )
    evidence = {Evidence(event.item, event.place) for _, event in found}
    if len(evidence) > 1:
        numbers = ", ".join(str(seq) for seq, _ in found[:5])
        raise NotInRun(
            f"{named} belongs to {len(evidence)} results of {name}: events {numbers}",
            hint="give the event's number instead, or retract the item",
        )
    return evidence.pop()


def _named(named: str, reading: Reading) -> Iterator[tuple[int, RolloutCompleted]]:
    place, item = result_named(named)
    if named.isdecimal():
        number = int(named)
        yield from only(RolloutCompleted, reading.read(after=number - 1, until=number) if number else ())
    elif item or _DIGEST.fullmatch(named):
        for seq, event in only(RolloutCompleted, reading.read(types=("RolloutCompleted",), mentioning=item)):
            if (event.place, event.item) == (place, item) if item else event.trajectory.startswith(named):
                yield seq, event


def before(evidence: Evidence, log: EventLog) -> tuple[int, int | None]:
    """
    The last event between two steps before anything met the evidence, and the event that met it first, if one did.

    From such a moment a run can go on without it.
    """
    state: AnyState | None = None
    clean = 0
    for recorded in log.read():
        if meets(evidence, recorded.event):
            return clean, recorded.seq
        state = evolve(state, recorded.event)
        if state.completed is None and not algorithm_at(state).commands.under_way(state):
            clean = recorded.seq
    return clean, None


def meets(evidence: Evidence, event: Event) -> bool:
    """Whether an event is the first in which a piece of evidence can have been looked at."""
    match event:
        case RolloutCompleted():
            return evidence.is_of(event.item, event.place)
        case ComparisonDrawn() | ComparisonExtended():
            return not evidence.place and evidence.item in event.items
        case _:
            return False
