"""Reading logs in tests."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.events.catalog import Event, RunForked, RunPaused, RunResumed
from skillopt_es.events.log import EventLog


def events_of(folder: Path) -> list[Event]:
    """A log's events."""
    with EventLog.open(folder) as log:
        return [recorded.event for recorded in log.read()]


def decisions_of(folder: Path) -> list[Event]:
    """A log's events without the comings and goings of its writers."""
    return [event for event in events_of(folder) if not isinstance(event, RunResumed | RunForked | RunPaused)]


def rows_of(folder: Path) -> list[tuple[object, ...]]:
    """The whole `events` table, every column."""
    with EventLog.open(folder) as log:
        return list(log.reader.rows("select * from events order by seq"))


def call_slots(folder: Path) -> list[str]:
    """The slots of all recorded calls, in recorded order."""
    with EventLog.open(folder) as log:
        return [str(row[0]) for row in log.reader.rows("select slot from calls order by n")]
