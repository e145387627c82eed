"""Logs that are whole but lie: every hash is right, one event is not what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from skillopt_es.events.catalog import Event
from skillopt_es.events.create import ForkPoint
from skillopt_es.events.log import EventLog
from skillopt_es.events.writer import RunWriter
from support.scripted import NOON

E = TypeVar("E", bound=Event)


def seqs_of(folder: Path, kind: type[E], which: Callable[[E], bool] = lambda event: True) -> list[int]:
    """The numbers of the events of a type that are so."""
    with EventLog.open(folder) as log:
        return [row.seq for row in log.read() if isinstance(row.event, kind) and which(row.event)]


def rewritten(folder: Path, copy: Path, seq: int, change: Callable[[Event], Event | None]) -> Path:
    """A copy of a run, with one event changed (or left out) and all that follow chained on anew."""
    with EventLog.open(folder) as log:
        events = [change(row.event) if row.seq == seq else row.event for row in log.read()]
    fork = ForkPoint(folder=folder, seq=0)
    with RunWriter.create(copy, run_id=copy.name, name=copy.name, now=lambda: NOON, fork=fork) as writer:
        asyncio.run(writer.append([event for event in events if event is not None], expected=0))
    return copy


def cut_off(folder: Path, copy: Path, seq: int) -> Path:
    """A copy of a run that ends after event `seq`, as if it had been killed there."""
    fork = ForkPoint(folder=folder, seq=seq)
    RunWriter.create(copy, run_id=copy.name, name=copy.name, now=lambda: NOON, fork=fork).close()
    return copy
