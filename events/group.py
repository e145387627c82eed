"""
The result of a group of waiting operations: who fails, and which rows the others add. Pure, but for the clock.

An append that expects another head than it meets fails alone; so does each that was built on it, because its number no
longer fits either. All others of the group go into one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from attrs import define, field, frozen

from skillopt_es.events.bulk import Row
from skillopt_es.events.chain import event_hash
from skillopt_es.events.codec import EncodedEvent
from skillopt_es.events.errors import WrongExpectedSeq
from skillopt_es.events.journal import CallRow, FinishedCall, seal_call
from skillopt_es.events.requests import Form, split_request


@frozen
class Tail:
    """Where both chains of a log end."""

    seq: int
    hash: bytes
    calls: int
    calls_hash: bytes


@frozen
class Append:
    """Events to add after event `expected`."""

    events: Sequence[EncodedEvent]
    expected: int
    cause: str | None
    blobs: Mapping[str, Row]


@frozen
class Record:
    """A finished call to add to the journal."""

    call: FinishedCall
    blobs: Mapping[str, Row]


Write = Append | Record
Result = int | CallRow | WrongExpectedSeq


@define
class Plan:
    """The rows of one transaction, each operation's result in order, and the tail it leads to."""

    tail: Tail
    known_forms: Mapping[Form, int]
    log_format: int
    forms: dict[Form, int] = field(factory=dict)
    results: list[Result] = field(factory=list)
    blobs: dict[str, Row] = field(factory=dict)
    events: list[Row] = field(factory=list)
    calls: list[Row] = field(factory=list)


def timestamp(moment: datetime) -> str:
    """A moment as logs write it: UTC, microseconds, `Z`."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def plan_group(
    writes: Sequence[Write],
    tail: Tail,
    forms: Mapping[Form, int],
    attempts: Mapping[str, int],
    now: Callable[[], datetime],
    *,
    log_format: int,
) -> Plan:
    """The transaction for these operations; `attempts` is how many calls each of their slots has had."""
    plan, made, recorded_at = Plan(tail, forms, log_format), dict(attempts), timestamp(now())
    for write in writes:
        if isinstance(write, Record):
            _add_call(plan, write, made, recorded_at)
        elif write.expected == plan.tail.seq:
            _add_events(plan, write, recorded_at)
        else:
            plan.results.append(WrongExpectedSeq(expected=write.expected, actual=plan.tail.seq))
    return plan


def event_row(
    event: EncodedEvent, seq: int, prev_hash: bytes, recorded_at: str, cause: str | None
) -> tuple[Row, bytes]:
    """The row of an event that follows another, and its hash."""
    hash_ = event_hash(prev_hash, seq, event.type, event.version, recorded_at, cause, event.data)
    return (seq, event.type, event.version, recorded_at, cause, prev_hash, hash_, event.data), hash_


def _add_events(plan: Plan, append: Append, recorded_at: str) -> None:
    seq, prev_hash = plan.tail.seq, plan.tail.hash
    for event in append.events:
        seq += 1
        row, prev_hash = event_row(event, seq, prev_hash, recorded_at, append.cause)
        plan.events.append(row)
    plan.blobs.update(append.blobs)
    plan.tail = Tail(seq, prev_hash, plan.tail.calls, plan.tail.calls_hash)
    plan.results.append(seq)


def _add_call(plan: Plan, record: Record, made: dict[str, int], recorded_at: str) -> None:
    call, tail = record.call, plan.tail
    attempt = made[call.slot] = made.get(call.slot, 0) + 1
    request, texts = split_request(call.request.text)
    form = (call.role, call.stage, call.model, request)
    entry, rest = seal_call(
        call,
        form,
        texts,
        n=tail.calls + 1,
        attempt=attempt,
        recorded_at=recorded_at,
        prev_hash=tail.calls_hash,
        log_format=plan.log_format,
    )
    plan.calls.append((entry.n, call.slot, attempt, _form_number(plan, form), *rest))
    plan.blobs.update(record.blobs)
    plan.tail = Tail(tail.seq, tail.hash, entry.n, cast("bytes", rest[-1]))
    plan.results.append(entry)


def _form_number(plan: Plan, form: Form) -> int:
    known = plan.known_forms.get(form)
    return plan.forms.setdefault(form, len(plan.known_forms) + len(plan.forms) + 1) if known is None else known
