"""
The log as its readers see it: the events in order, each checked against the chain as it is read.

Every query says `order by seq`; nothing here can write. `RunWriter` (writer.py) appends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import cast

from attrs import field, frozen

from skillopt_es.events.catalog import Recorded
from skillopt_es.events.chain import event_hash, row_hash
from skillopt_es.events.codec import canonical_json, decode
from skillopt_es.events.erasures import Erasures, read_text
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.reader import ROWS, Columns, Reader
from skillopt_es.events.schema import FORMAT_VERSION
from skillopt_es.events.values import Cell, Row, hex_digest, raw_digest

_EVENT = "seq, type, version, recorded_at, cause, prev_hash, hash, data"
_EventColumns = tuple[int, str, int, str, str | None, bytes, bytes, str]


@frozen
class Head:
    """Where a log ends: the number and hash of its last event."""

    seq: int
    hash: str


@frozen
class RunInfo:
    """The run a log belongs to; `origin` is what a fork's copied first event follows."""

    run_id: str
    name: str
    created_at: str
    parent_run: str | None = None
    parent_head: str | None = None
    format_version: int = FORMAT_VERSION
    origin: str | None = None
    hash: str = field(default="", repr=False)

    def computed_hash(self) -> str:
        """The hash that a row with these columns must have."""
        return row_hash(
            [
                self.run_id,
                self.name,
                self.created_at,
                self.parent_run,
                self.parent_head,
                self.format_version,
                self.origin,
            ]
        )

    def row(self) -> Row:
        """The row of `run` that says so."""
        heads = [None if digest is None else raw_digest(digest) for digest in (self.parent_head, self.origin)]
        columns = (self.run_id, self.name, self.created_at, self.parent_run, heads[0], self.format_version)
        return (*columns, heads[1], raw_digest(self.hash))

    @property
    def first_prev_hash(self) -> str:
        """What stands in the place of the hash before the first event and the first call."""
        return self.hash if self.origin is None else self.origin


class EventLog:
    """The events and texts of one run, read-only; opening it never disturbs a writer."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.path = reader.path
        self.run = read_run(reader)
        self.erasures = Erasures(reader)

    @classmethod
    def open(cls, folder: Path) -> EventLog:
        """The log in a run's folder."""
        reader = Reader(folder)
        try:
            return cls(reader)
        except BaseException:
            reader.close()
            raise

    def close(self) -> None:
        """Gives the file back."""
        self._reader.close()

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def reader(self) -> Reader:
        """The connection, for journals and projections over the same file."""
        return self._reader

    def head(self) -> Head:
        """Where the log ends; number 0 when nothing has happened yet."""
        row = self._reader.row("select seq, hash from events order by seq desc limit 1")
        return Head(0, self.run.first_prev_hash) if row is None else Head(cast("int", row[0]), hex_digest(row[1]))

    def text(self, digest: str) -> str:
        """The text that a digest names; an ErasedText where it was erased."""
        return read_text(self._reader, digest, self.erasures)

    def read(
        self, after: int = 0, until: int | None = None, types: Collection[str] | None = None, mentioning: str = ""
    ) -> Iterator[Recorded]:
        """
        The events after `after` up to and with `until`, in order; raises LogDamaged at the first that was changed.

        With `types`, only those; with `mentioning`, only those whose payload holds this short text somewhere. Their own
        hashes are still checked, but not that nothing is missing between them.
        """
        some = types is not None or bool(mentioning)
        prev_hash = bytes.fromhex(self.hash_at("events", after))
        while rows := self._chunk(after, until, types, mentioning):
            for row in rows:
                columns = cast("_EventColumns", row)
                follows = columns[0] > after if some else columns[0] == after + 1 and columns[5] == prev_hash
                if not follows:
                    raise LogDamaged(f"event {after + 1} is missing or does not follow its predecessor", seq=after + 1)
                recorded = self._recorded(columns)
                after, prev_hash = columns[0], columns[6]
                yield recorded

    def follow(
        self, after: int = 0, *, every: float = 0.2, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[Recorded]:
        """The events after `after`, and then each new one as it is appended, without end."""
        while True:
            for recorded in self.read(after):
                after = recorded.seq
                yield recorded
            sleep(every)

    def _chunk(self, after: int, until: int | None, types: Collection[str] | None, mentioning: str) -> list[Columns]:
        where, values = "seq > ?", cast("list[Cell]", [after])
        if until is not None:
            where += " and seq <= ?"
            values.append(until)
        if types is not None:
            where += f" and type in ({','.join('?' * len(types))})"
            values.extend(types)
        if mentioning:
            where += " and instr(data, ?)"
            # As it stands in a payload: escaped, without the quotes around it.
            values.append(canonical_json(mentioning)[1:-1])
        # Only placeholders and our own names are put together here.
        sql = f"select {_EVENT} from events where {where} order by seq limit {ROWS}"  # noqa: S608
        return self._reader.rows(sql, values)

    def hash_at(self, table: str, number: int) -> str:
        """The hash of one of the `events` or `calls`; what precedes the first for 0, nothing for what is not there."""
        if number == 0:
            return self.run.first_prev_hash
        key = "seq" if table == "events" else "n"
        row = self._reader.row(f"select hash from {table} where {key} = ?", (number,))  # noqa: S608 -- our own names
        return "" if row is None else hex_digest(row[0])

    def _recorded(self, columns: _EventColumns) -> Recorded:
        seq, name, version, recorded_at, cause, prev_hash, hash_, data = columns
        try:
            intact = event_hash(prev_hash, seq, name, version, recorded_at, cause, data) == hash_
        except TypeError:  # a damaged file can give anything in any column
            intact = False
        if not (intact or (type(data) is str and self.erasures.left(seq, data))):
            raise LogDamaged(f"event {seq} ({name}) was changed after it was recorded", seq=seq)
        event = decode(name, version, data, lambda digest: str(self.text(digest)), seq=seq)
        return Recorded(
            seq=seq,
            recorded_at=recorded_at,
            event=event,
            hash=hash_.hex(),
            prev_hash=prev_hash.hex(),
        )


def read_run(reader: Reader) -> RunInfo:
    """The one row of `run`; raises LogDamaged when it is not as it was written."""
    rows = reader.rows(
        "select run_id, name, created_at, parent_run, parent_head, format_version, origin, hash from run order by rowid"
    )
    if len(rows) != 1:
        raise LogDamaged(f"{reader.path} describes {len(rows)} runs instead of one")
    cells = [cell.hex() if type(cell) is bytes else cell for cell in rows[0]]
    run = RunInfo(*cast("tuple[str, str, str]", cells))
    try:
        intact = run.hash == run.computed_hash()
    except TypeError:  # a damaged file can give anything in any column
        intact = False
    if not intact:
        raise LogDamaged(f"the description of the run in {reader.path} was changed after it was recorded")
    return run
