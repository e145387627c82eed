"""
The writer's side of `log.db`: one connection, one transaction a group, and where both chains end.

The result of a group of waiting operations: who fails, and which rows the others add. Pure, but for the clock.

An append that expects another head than it meets fails alone; so does each that was built on it, because its number no
longer fits either. All others of the group go into one transaction.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import cast

from attrs import define, field, frozen

from skillopt_es.events.anchor import Anchor, write_anchor
from skillopt_es.events.blobs import KnownDigests
from skillopt_es.events.chain import event_hash, first_break
from skillopt_es.events.codec import EncodedEvent
from skillopt_es.events.ends import EndProblem, said_ends
from skillopt_es.events.errors import LogDamaged, WrongExpectedSeq
from skillopt_es.events.faults import QUERY_ERRORS, sqlite_fault
from skillopt_es.events.journal import CallRow, FinishedCall, seal_call
from skillopt_es.events.lock import RunLock
from skillopt_es.events.log import RunInfo
from skillopt_es.events.requests import FORMS_QUERY, Form, split_request
from skillopt_es.events.schema import LOG_FILE, open_writer_connection
from skillopt_es.events.tail import TAIL_FILE, TailFile
from skillopt_es.events.values import Cell, Row, hex_digest, raw_digest


class Store:
    """
    Commits groups of operations to one log; used by one thread at a time.

    Raises LogDamaged for a log that is not what was written. With `accept_loss` one that only lacks its end will do:
    `lost` then says what is missing.
    """

    def __init__(
        self, folder: Path, run: RunInfo, lock: RunLock, *, now: Callable[[], datetime], accept_loss: bool = False
    ) -> None:
        self.known = KnownDigests()
        self.lost = ""
        self._folder = folder
        self._path = folder / LOG_FILE
        self._run = run
        self._lock = lock
        self._now = now
        # Read before the log, which only ever gets longer.
        ends = said_ends(folder)
        self._connection = open_writer_connection(self._path)
        self._tail_file = TailFile(folder)
        self._anchored: Tail | None = None
        self._data_version = -1
        self._forms: dict[Form, int] = {}
        try:
            self._tail = self._opened_at = self._read_tail()
            problems = ends.missing(run.run_id, self._hash_at, (self._tail.seq, self._tail.calls))
            self._check_end(problems, accept_loss=accept_loss)
            self._check_calls()
            if not self.lost:
                self._begin()
                if any(name == TAIL_FILE for name, _ in ends.said):
                    self.anchor()  # what the last writer's `tail` says is made to last, for this one begins anew
        except BaseException:
            self._connection.close()
            self._tail_file.close()
            raise

    def commit(self, writes: Sequence[Write]) -> list[Result]:
        """Writes all operations in one durable transaction and returns the result of each; all or nothing."""
        # What could not be said of the last commit is said first, so that `tail` is never further behind.
        self._tail_file.settle()
        try:
            self._connection.execute("begin immediate")
            try:
                tail = self._current_tail()
                plan = plan_group(writes, tail, self._forms, self._attempts(writes), self._now)
                put_blobs(self._connection, plan.blobs)
                insert_rows(self._connection, "forms", [(number, *form) for form, number in plan.forms.items()])
                insert_rows(self._connection, "calls", plan.calls)
                insert_rows(self._connection, "events", plan.events)
                self._connection.execute("commit")
            except BaseException:
                self._roll_back()
                raise
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, self._path) from error
        began, self._tail = self._tail == self._opened_at, plan.tail
        self._tail_file.note(self._end)
        if self.lost and began:
            write_anchor(self._folder, self._end)  # from here on the log ends where it was gone on with
            self._begin()
        self._forms.update(plan.forms)
        self.known.add(plan.blobs.keys())
        return plan.results

    def anchor(self) -> None:
        """Empties the write-ahead log into the database and says in `head.json` where the log ends."""
        if self.lost and self._tail == self._opened_at:
            return  # nothing was gone on with: what is missing must be told again
        try:
            # In this order: the anchor names only what is durable, and `tail` says it until the anchor does.
            self._checkpoint()
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, self._path) from error
        write_anchor(self._folder, self._end)
        self._anchored = self._tail
        self._tail_file.clear()

    def close(self) -> None:
        """Gives the file back; SQLite removes the write-ahead log's files when nobody else has it open."""
        try:
            self._connection.close()
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, self._path) from error
        finally:
            # The mark goes first: a mark without a `tail` means that somebody took it away.
            if self._tail == self._anchored and self._lock.unmark():
                self._tail_file.remove()
            else:
                self._tail_file.close()

    def _begin(self) -> None:
        """Has `tail` in its place, and says so: whoever finds it missing knows that it was taken away."""
        self._tail_file.begin()
        self._lock.mark()

    @property
    def _end(self) -> Anchor:
        """Where both chains end now."""
        tail = self._tail
        return Anchor(self._run.run_id, tail.seq, tail.hash.hex(), tail.calls, tail.calls_hash.hex())

    def _roll_back(self) -> None:
        # SQLite has often rolled back by itself; and a disk that refuses to commit may refuse this too.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("rollback")

    def _checkpoint(self) -> None:
        # A reader in the middle of a query keeps the file from being emptied; the next barrier will do it, so that
        # a step waits for no page that is open.
        self._connection.execute("pragma busy_timeout = 50")
        try:
            self._connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        finally:
            # As it was opened.
            self._connection.execute("pragma busy_timeout = 30000")

    def _current_tail(self) -> Tail:
        """The tail, read again when another connection has written in spite of the lock."""
        [(version,)] = self._connection.execute("pragma data_version").fetchall()
        if version != self._data_version:
            self._tail = self._read_tail()
            self._data_version = version
        return self._tail

    def _read_tail(self) -> Tail:
        first = raw_digest(self._run.first_prev_hash)
        try:
            self._forms = {row[1:]: row[0] for row in self._connection.execute(FORMS_QUERY).fetchall()}
            events = self._connection.execute("select seq, hash from events order by seq desc limit 1").fetchall()
            calls = self._connection.execute("select n, hash from calls order by n desc limit 1").fetchall()
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, self._path) from error
        return Tail(*(events or [(0, first)])[0], *(calls or [(0, first)])[0])

    def _attempts(self, writes: Sequence[Write]) -> dict[str, int]:
        slots = [write.call.slot for write in writes if isinstance(write, Record)]
        if not slots:
            return {}
        rows = self._connection.execute(
            "select slot, max(attempt) from calls where slot in (select value from json_each(?)) group by slot",
            # As one JSON text, because a statement takes only so many parameters.
            (json.dumps(slots),),
        )
        return dict(rows.fetchall())

    def _hash_at(self, table: str, number: int) -> str:
        if number == 0:
            return self._run.first_prev_hash
        key = "seq" if table == "events" else "n"
        rows = self._connection.execute(f"select hash from {table} where {key} = ?", (number,))  # noqa: S608
        return "".join(hex_digest(hash_) for (hash_,) in rows.fetchall())

    def _check_end(self, problems: Sequence[EndProblem], *, accept_loss: bool) -> None:
        """Refuses to go on after a tail that was lost: the next anchor would hide it."""
        if not problems:
            return
        lost = all(problem.lost for problem in problems)
        if lost and accept_loss:
            self.lost = "; ".join(problem.message for problem in problems)
            return
        folder = shlex.quote(str(self._folder))  # a copy is not called what its run was
        raise LogDamaged(
            f"{self._path} is not whole: {problems[0].message}",
            hint="bring the folder back from a copy; or go on from what is left, by `--accept-loss` of "
            f"`skillopt-es resume {folder}` or of the same `eval`: what is missing is asked and paid again"
            if lost
            else "",
        )

    def _check_calls(self) -> None:
        """Refuses calls that do not follow each other; each one's own hash is checked when it is used."""
        number = first_break(self._ask, "calls", self._run.first_prev_hash)
        if number is not None:
            raise LogDamaged(f"call {number} in {self._path} does not follow call {number - 1}")

    def _ask(self, sql: str, values: Sequence[Cell]) -> list[tuple[Cell, ...]]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, self._path) from error


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
) -> Plan:
    """The transaction for these operations; `attempts` is how many calls each of their slots has had."""
    plan, made, recorded_at = Plan(tail, forms), dict(attempts), timestamp(now())
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
    )
    plan.calls.append((entry.n, call.slot, attempt, _form_number(plan, form), *rest))
    plan.blobs.update(record.blobs)
    plan.tail = Tail(tail.seq, tail.hash, entry.n, cast("bytes", rest[-1]))
    plan.results.append(entry)


def _form_number(plan: Plan, form: Form) -> int:
    known = plan.known_forms.get(form)
    return plan.forms.setdefault(form, len(plan.known_forms) + len(plan.forms) + 1) if known is None else known


# --- many rows by few statements -------------------------------------------------------------------------------------

# sqlite3 gives up the interpreter's lock at every step of a statement, and with a busy event loop in another thread
# each step then waits to get it back. A statement of many rows has one step, so a group is written in a handful.
_LARGEST = 64
_BLOBS_A_STATEMENT = 16  # fewer at once than of other rows: each may have megabytes, and a statement holds all


def insert_rows(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Inserts the rows in their order, in statements of 64, 32, 16 … rows so that few have to be prepared."""
    start = 0
    while start < len(rows):
        size = min(_LARGEST, 1 << ((len(rows) - start).bit_length() - 1))
        part = rows[start : start + size]
        connection.execute(_statement(table, len(part[0]), size), tuple(chain.from_iterable(part)))
        start += size


def which_of(connection: sqlite3.Connection, table: str, column: str, keys: Iterable[Cell]) -> set[Cell]:
    """Those of the keys that a column of the table has; some are asked for twice, so that few statements suffice."""
    wanted, found = list(keys), set[Cell]()
    for start in range(0, len(wanted), _LARGEST):
        part = wanted[start : start + _LARGEST]
        size = 1 << (len(part) - 1).bit_length()
        rows = connection.execute(_question(table, column, size), part + part[:1] * (size - len(part)))
        found.update(key for (key,) in rows.fetchall())
    return found


def put_blobs(connection: sqlite3.Connection, rows: dict[str, Row]) -> None:
    """Stores those of the rows, given by digest, that are not there yet, inside the caller's transaction."""
    if not rows:
        return
    there = which_of(connection, "blobs", "digest", (row[0] for row in rows.values()))
    fresh = iter([row for row in rows.values() if row[0] not in there])
    while part := list(islice(fresh, _BLOBS_A_STATEMENT)):
        insert_rows(connection, "blobs", part)


@cache
def _question(table: str, column: str, count: int) -> str:
    marks = ",".join("?" * count)
    return f"select {column} from {table} where {column} in ({marks})"  # noqa: S608 -- our own names, no data


@cache
def _statement(table: str, width: int, count: int) -> str:
    one = f"({','.join('?' * width)})"
    return f"insert into {table} values {','.join([one] * count)}"  # noqa: S608 -- our own table names, no data
