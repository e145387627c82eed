"""
A log as plain values, to be carried elsewhere: what was recorded without the chains, which follow from it.

Put down again as it was taken up, it has the same hashes. What is changed on the way (a name that nobody else should
read) changes the hashes from there on, and both chains are whole again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import cast

from attrs import evolve, field, frozen

from skillopt_es.events.blobs import blob_row, stored_bytes
from skillopt_es.events.codec import EncodedEvent
from skillopt_es.events.create import create_from_rows
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.journal import FinishedCall, Journal
from skillopt_es.events.log import EventLog, RunInfo
from skillopt_es.events.requests import Form
from skillopt_es.events.store import Append, Record, Tail, plan_group
from skillopt_es.events.values import Row, raw_digest


@frozen
class PortableEvent:
    """An event as it was written, without its number and its place in the chain."""

    type: str
    version: int
    recorded_at: str
    cause: str | None
    data: str


@frozen
class PortableCall:
    """A finished call, without its number and its place in the chain."""

    call: FinishedCall
    recorded_at: str


@frozen(kw_only=True)
class PortableLog:
    """A run's description, events and calls; `run` names the parent's head where it is a fork."""

    run: RunInfo
    events: tuple[PortableEvent, ...]
    calls: tuple[PortableCall, ...]


@frozen(kw_only=True)
class Chained:
    """A portable log with its chains: where both end, the hash of each event, and the rows of the tables."""

    tail: Tail
    hashes: tuple[str, ...]
    rows: Mapping[str, Sequence[Row]] = field(repr=False)


def take_up(log: EventLog) -> PortableLog:
    """All that a log recorded but its texts; the log must be whole (`verify`)."""
    sql = "select type, version, recorded_at, cause, data from events order by seq"
    rows = cast("list[tuple[str, int, str, str | None, str]]", log.reader.rows(sql))
    calls = Journal(log.reader).read()
    return PortableLog(
        run=log.run,
        events=tuple(PortableEvent(*row) for row in rows),
        calls=tuple(PortableCall(row.call, row.recorded_at) for row in calls),
    )


def raw_texts(log: EventLog, digests: Sequence[str]) -> dict[str, bytes]:
    """The bytes of texts and files by digest; raises LogDamaged for one that is not there, or not what was written."""
    found = {}
    for digest in digests:
        raw = stored_bytes(log.reader, digest)
        if raw is None:
            raise LogDamaged(f"the text {digest:.12}… is missing from the log")
        found[digest] = raw
    return found


def chained(portable: PortableLog) -> Chained:
    """The log with the chains that follow from it."""
    start = raw_digest(portable.run.first_prev_hash)
    tail, forms, attempts = Tail(0, start, 0, start), dict[Form, int](), Counter[str]()
    calls, events = list[Row](), list[Row]()
    # The calls of one transaction have one time, and a plan is for one transaction.
    for recorded_at, same in groupby(portable.calls, key=lambda each: each.recorded_at):
        writes = [Record(each.call, {}) for each in same]
        plan = plan_group(writes, tail, forms, attempts, _clock(recorded_at))
        calls += plan.calls
        forms.update(plan.forms)
        attempts.update(write.call.slot for write in writes)
        tail = plan.tail
    for (recorded_at, cause), together in groupby(portable.events, key=lambda each: (each.recorded_at, each.cause)):
        encoded = [EncodedEvent(each.type, each.version, each.data) for each in together]
        write = Append(encoded, tail.seq, cause, {})
        plan = plan_group([write], tail, forms, attempts, _clock(recorded_at))
        events += plan.events
        tail = plan.tail
    rows: dict[str, Sequence[Row]] = {"calls": calls, "events": events}
    rows["forms"] = [(number, *form) for form, number in forms.items()]
    return Chained(tail=tail, hashes=tuple(cast("bytes", row[6]).hex() for row in events), rows=rows)


def _clock(recorded_at: str) -> Callable[[], datetime]:
    """A clock that stands at a recorded moment."""
    return lambda: datetime.fromisoformat(recorded_at)


def with_parent_head(portable: PortableLog, head: str) -> PortableLog:
    """A fork's log whose parent's last event has another hash now."""
    run = evolve(portable.run, parent_head=head)
    return evolve(portable, run=evolve(run, hash=run.computed_hash()))


def put_down(folder: Path, portable: PortableLog, texts: Mapping[str, bytes]) -> Chained:
    """Writes the log and its anchor into a folder that has none; returns it with its chains."""
    made = chained(portable)
    folder.mkdir(parents=True, exist_ok=True)
    blobs = [blob_row(digest, raw) for digest, raw in texts.items()]
    create_from_rows(folder, portable.run, {**made.rows, "blobs": blobs})
    return made
