"""
New logs: an empty one, or a fork that starts with a copy of its parent's events, texts and journal.

A log is laid out under another name and renamed when it is whole and durable: there is never half a log, and never one
without the anchor that says where it ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.events.anchor import ANCHOR_FILE, Anchor, sync_folder, write_anchor
from skillopt_es.events.blobs import blob_row
from skillopt_es.events.catalog import Event
from skillopt_es.events.codec import encode
from skillopt_es.events.erasures import erasures_in
from skillopt_es.events.errors import LogError, RunExists
from skillopt_es.events.faults import sqlite_fault, system_fault
from skillopt_es.events.lock import LOCK_FILE, marked_lock
from skillopt_es.events.log import EventLog, RunInfo
from skillopt_es.events.raw import connect
from skillopt_es.events.schema import LOG_FILE, TABLES, create_tables, prepare_writer
from skillopt_es.events.store import event_row, insert_rows, put_blobs
from skillopt_es.events.tail import TAIL_FILE
from skillopt_es.events.values import Row, hex_digest, raw_digest, text_digest


@frozen
class ForkPoint:
    """
    Where a fork leaves its parent: the parent's folder and the last event they share.

    `opening` gives the fork's own first events, given how many calls came along; they are there from the beginning.
    """

    folder: Path
    seq: int
    opening: Callable[[int], Sequence[Event]] | None = None


@frozen
class Contents:
    """What a log has from its beginning: its first events, and the texts that they refer to."""

    events: Sequence[Event]
    texts: Sequence[str]


def create_log(
    folder: Path, *, run_id: str, name: str, created_at: str, fork: ForkPoint | None, contents: Contents | None = None
) -> None:
    """Puts a new log into a folder that has none; the caller holds the run's lock."""
    _refuse_existing(folder)
    run = _describe(RunInfo(run_id, name, created_at), fork)
    _put(folder, run, lambda draft: _lay_out(draft, run, fork, contents))


def create_from_rows(folder: Path, run: RunInfo, rows: Mapping[str, Sequence[Row]]) -> None:
    """Puts a log that was taken down somewhere else into a folder that has none: the rows of each table, in order."""
    _refuse_existing(folder)
    if marked_lock(folder):  # what another log left there is not about this one
        (folder / LOCK_FILE).unlink()
    _put(folder, run, lambda draft: _fill(draft, run, rows))


def _refuse_existing(folder: Path) -> None:
    if (folder / LOG_FILE).exists():
        raise RunExists(f"there is already a run at {folder}", hint="resume it, or choose another name")


def _put(folder: Path, run: RunInfo, lay_out: Callable[[Path], None]) -> None:
    """A log that is laid out elsewhere and then put into its place."""
    path = folder / LOG_FILE
    draft = folder / f"{LOG_FILE}.new"
    try:
        _remove(draft)
        lay_out(draft)
        (folder / TAIL_FILE).unlink(missing_ok=True)
        # Before the log has its name: a log without an anchor is one whose end was taken away.
        write_anchor(folder, _end_of(draft, run))
        draft.replace(path)
        sync_folder(folder)
    except sqlite3.Error as error:
        raise sqlite_fault(error, path) from error
    except OSError as error:
        raise system_fault(error, path) from error
    finally:
        with suppress(OSError):
            _remove(draft)
            # The anchor of a log that did not come to be would speak of the next one.
            if not path.exists():
                (folder / ANCHOR_FILE).unlink(missing_ok=True)


def _end_of(draft: Path, run: RunInfo) -> Anchor:
    """Where both chains of a draft end."""
    with closing(connect(draft, "mode=ro")) as connection:
        ends = [
            connection.execute(f"select {key}, hash from {table} order by {key} desc limit 1").fetchone()  # noqa: S608
            for table, key in (("events", "seq"), ("calls", "n"))
        ]
    events, calls = [(end[0], hex_digest(end[1])) if end else (0, run.first_prev_hash) for end in ends]
    return Anchor(run.run_id, *events, *calls)


def _describe(run: RunInfo, fork: ForkPoint | None) -> RunInfo:
    """The run's row; a fork's names its parent, which must reach as far as the fork point."""
    if fork is not None:
        with EventLog.open(fork.folder) as parent:
            shared = [parent.run.first_prev_hash, *(event.hash for event in parent.read(until=fork.seq))]
            if not 0 <= fork.seq < len(shared):
                raise LogError(f"{fork.folder} has {parent.head().seq} events, so it cannot be forked at {fork.seq}")
            run = evolve(
                run, parent_run=parent.run.run_id, parent_head=shared[fork.seq], origin=parent.run.first_prev_hash
            )
    return evolve(run, hash=run.computed_hash())


def _lay_out(draft: Path, run: RunInfo, fork: ForkPoint | None, contents: Contents | None) -> None:
    with closing(connect(draft, "mode=rwc")) as connection:
        prepare_writer(connection, draft)
        if fork is not None:
            parent = (fork.folder / LOG_FILE).absolute()
            connection.execute("attach ? as parent", (f"{parent.as_uri()}?mode=ro",))
            connection.holds(parent)
        connection.execute("begin immediate")
        create_tables(connection)
        insert_rows(connection, "run", [run.row()])
        if fork is not None:
            _copy_prefix(connection, fork.seq)
            if fork.opening is not None:
                _open(connection, run, fork, fork.opening)
        if contents is not None:
            texts = {text_digest(text): text for text in contents.texts}
            put_blobs(connection, {digest: blob_row(digest, text.encode()) for digest, text in texts.items()})
            _insert(connection, contents.events, 1, run.first_prev_hash, run.created_at)
        connection.execute("commit")
        # Closing would move the rows into the file as well, but does not say when the disk is too full for it.
        connection.execute("pragma main.wal_checkpoint(truncate)").fetchall()


def _fill(draft: Path, run: RunInfo, rows: Mapping[str, Sequence[Row]]) -> None:
    with closing(connect(draft, "mode=rwc")) as connection:
        prepare_writer(connection, draft)
        connection.execute("begin immediate")
        create_tables(connection)
        insert_rows(connection, "run", [run.row()])
        for table in TABLES[1:]:
            insert_rows(connection, table, rows[table])
        connection.execute("commit")
        connection.execute("pragma main.wal_checkpoint(truncate)").fetchall()


def _copy_prefix(connection: sqlite3.Connection, seq: int) -> None:
    # All in their order: the triggers take nothing but the next row.
    connection.execute("insert into blobs select * from parent.blobs order by rowid")
    connection.execute("insert into forms select * from parent.forms order by id")
    connection.execute("insert into calls select * from parent.calls order by n")
    connection.execute("insert into events select * from parent.events where seq <= ? order by seq", (seq,))


def _open(
    connection: sqlite3.Connection, run: RunInfo, fork: ForkPoint, opening: Callable[[int], Sequence[Event]]
) -> None:
    """
    Adds the fork's own first events, in the transaction that copies what stands before them.

    What the parent erased later is erased in the copy too, so the fork says so itself, after whose fork it is.
    """
    [(calls,)] = connection.execute("select count(*) from calls").fetchall()
    assert run.parent_head is not None
    first, *others = opening(calls)
    _insert(connection, (first, *_erased_later(fork), *others), fork.seq + 1, run.parent_head, run.created_at)


def _insert(connection: sqlite3.Connection, events: Sequence[Event], first: int, after: str, recorded_at: str) -> None:
    """Adds events, numbered from `first`, after the event (or the run) that has the hash `after`."""
    prev_hash = raw_digest(after)
    for number, event in enumerate(events, start=first):
        encoded = encode(event)
        row, prev_hash = event_row(encoded, number, prev_hash, recorded_at, None)
        put_blobs(connection, {digest: blob_row(digest, raw) for digest, raw in encoded.blobs})
        insert_rows(connection, "events", [row])


def _erased_later(fork: ForkPoint) -> list[Event]:
    """The parent's erasures after the fork point, as far as they are about what both share."""
    with EventLog.open(fork.folder) as parent:
        later = [event for seq, _, event in erasures_in(parent.reader) if seq > fork.seq]
    return [evolve(event, events=tuple(each for each in event.events if each.seq <= fork.seq)) for event in later]


def _remove(draft: Path) -> None:
    for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm"), Path(f"{draft}-journal")):
        leftover.unlink(missing_ok=True)
