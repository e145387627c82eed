"""Logs that are whole but lie: every hash is right, one event is not what it was."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from attrs import evolve

from skillopt_es.events.catalog import CandidateGated, Event, SlowUpdateApplied
from skillopt_es.events.chain import event_hash
from skillopt_es.events.create import ForkPoint
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
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


def with_unknown_event(folder: Path, copy: Path, name: str) -> Path:
    """A copy of a run with one more event of a type that this software does not have, rightly chained."""
    cut_off(folder, copy, seqs_of(folder, Event)[-1])
    with EventLog.open(copy) as log:
        head = log.head()
    seq, when, data = head.seq + 1, "2030-01-01T00:00:00.000000Z", "{}"
    prev_hash = bytes.fromhex(head.hash)
    row = (seq, name, 1, when, None, prev_hash, event_hash(prev_hash, seq, name, 1, when, None, data), data)
    with closing(sqlite3.connect(copy / LOG_FILE)) as connection, connection:
        connection.execute("insert into events values (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return copy


def other_verdict(event: Event, **said: object) -> Event:
    """The event with a verdict that says something else."""
    assert isinstance(event, CandidateGated | SlowUpdateApplied)
    return evolve(event, verdict=evolve(event.verdict, **said))
