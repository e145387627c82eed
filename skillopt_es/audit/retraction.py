"""Which evidence is meant, and the last moment of a run that knows nothing of it."""

from __future__ import annotations

import re

from skillopt_es.audit.descent import Evidence
from skillopt_es.engine.fold import evolve
from skillopt_es.engine.programs import program_at
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    Recorded,
    RolloutCompleted,
)
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import result_named
from skillopt_es.projections.state import RunState
from skillopt_es.runs.reading import Reading

_DIGEST = re.compile(r"[0-9a-f]{6,64}")


def trajectory_named(named: str, reading: Reading) -> Evidence:
    """The one trajectory with this event number, slot (`PLACE/item/ID`) or digest; raises NotInRun for none or many."""
    found = [row for row in _named(named, reading) if isinstance(row.event, RolloutCompleted)]
    name = reading.run.name
    if not found:
        raise NotInRun(
            f"{name} has no trajectory {named}",
            hint="name it by its event's number, its slot (PLACE/item/ID) or how its digest begins; "
            "`skillopt-es explain --item ID` lists an item's results",
        )
    evidence = {Evidence(row.event.item, row.event.place) for row in found if isinstance(row.event, RolloutCompleted)}
    if len(evidence) > 1:
        numbers = ", ".join(str(row.seq) for row in found[:5])
        raise NotInRun(
            f"{named} is what {len(evidence)} results of {name} left: events {numbers}",
            hint="say the event's number instead, or retract the item",
        )
    return evidence.pop()


def _named(named: str, reading: Reading) -> list[Recorded]:
    if named.isdecimal():
        number = int(named)
        return list(reading.read(after=number - 1, until=number)) if 1 <= number <= reading.until else []
    place, item = result_named(named)
    if item:
        rows = reading.read(types=("RolloutCompleted",), mentioning=item)
        return [row for row in rows if (_event(row).place, _event(row).item) == (place, item)]
    if _DIGEST.fullmatch(named):
        return [row for row in reading.read(types=("RolloutCompleted",)) if _event(row).trajectory.startswith(named)]
    return []


def _event(row: Recorded) -> RolloutCompleted:
    assert isinstance(row.event, RolloutCompleted)
    return row.event


def before(evidence: Evidence, log: EventLog) -> tuple[int, int | None]:
    """
    The last event between two steps before anything met the evidence, and the event that met it first, if one did.

    From such a moment a run can go on without it.
    """
    state, clean = RunState[object](), 0
    for recorded in log.read():
        if meets(evidence, recorded.event):
            return clean, recorded.seq
        state = evolve(state, recorded.event)
        if state.completed is None and not program_at(state).under_way(state):
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
