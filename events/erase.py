"""
Taking texts out of a log: the only thing that ever changes what was written.

It happens in one transaction, together with the event that says what was taken, by whom and why: a crash leaves the
log as it was or as it is then. Hashes stay, so the chain still vouches for everything else. SQLite is told to overwrite
what it frees, and the file is written anew afterwards; a crash before that is mended by asking for the same again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path

from attrs import evolve

from skillopt_es.events.catalog import TextsErased
from skillopt_es.events.codec import encode
from skillopt_es.events.errors import LogUnwritable
from skillopt_es.events.faults import QUERY_ERRORS, sqlite_fault
from skillopt_es.events.lock import RunLock
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE, check_file, frozen_triggers, open_writer_connection
from skillopt_es.events.store import Store, event_row, insert_rows, timestamp
from skillopt_es.events.values import Redaction, digest_of, raw_digest

# A reader may still hold the old pages: it is waited for so long, and then the caller is told.
_PATIENCE_MS = 1000


class Eraser:
    """The right to erase from one run, until `close`: nobody else writes to it meanwhile."""

    def __init__(self, folder: Path, *, now: Callable[[], datetime]) -> None:
        """Raises RunBusy while another process writes the run."""
        self._folder, self._now = folder, now
        check_file(folder / LOG_FILE)
        self._lock = RunLock(folder, start=timestamp(now()))
        try:
            self.log = EventLog.open(folder)
        except BaseException:
            self._lock.release()
            raise

    def erase(self, event: TextsErased, payloads: Mapping[int, str]) -> None:
        """
        Takes the event's texts out of the log and puts these payloads (by event) in the place of the recorded ones.

        The event is appended with them, its `events` filled in; all of it, or nothing.
        """
        left = tuple(Redaction(seq, digest_of(data.encode())) for seq, data in sorted(payloads.items()))
        path = self.log.path
        connection = open_writer_connection(path)
        try:
            connection.execute("pragma secure_delete = on")
            connection.execute("begin immediate")
            try:
                _replace(connection, event.texts, payloads)
                self._append(connection, evolve(event, events=left))
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, path) from error
        finally:
            connection.close()

    def wipe(self) -> None:
        """Writes the file anew without what was erased, and anchors its end; raises LogUnwritable where it cannot."""
        path = self.log.path
        try:
            store = Store(self._folder, self.log.run, self._lock, now=self._now)
            self.log.close()
            try:
                store.anchor()
            finally:
                store.close()
            connection = open_writer_connection(path)
            try:
                connection.execute("pragma secure_delete = on")
                connection.execute(f"pragma busy_timeout = {_PATIENCE_MS}")
                # In this order: vacuum writes through the write-ahead log, which must keep no old page.
                connection.execute("vacuum")
                [(busy, *_)] = connection.execute("pragma wal_checkpoint(truncate)").fetchall()
            finally:
                connection.close()
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, path) from error
        if busy:
            raise LogUnwritable(
                f"{path}: the texts are erased, but another program still reads the file as it was",
                hint="close it and repeat the command: that finishes the work",
            )

    def close(self) -> None:
        """Lets the next writer in."""
        try:
            self.log.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Eraser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, connection: sqlite3.Connection, event: TextsErased) -> None:
        tail = connection.execute("select seq, hash from events order by seq desc limit 1").fetchall()
        seq, prev_hash = tail[0] if tail else (0, raw_digest(self.log.run.first_prev_hash))
        row, _ = event_row(encode(event), seq + 1, prev_hash, timestamp(self._now()), None)
        insert_rows(connection, "events", [row])


def _replace(connection: sqlite3.Connection, texts: Collection[str], payloads: Mapping[int, str]) -> None:
    """The one place where something is deleted and changed: the triggers step aside, and are back before the commit."""
    guards = {**frozen_triggers("blobs"), **frozen_triggers("events")}
    for name in guards:
        connection.execute(f"drop trigger {name}")
    connection.executemany("delete from blobs where digest = ?", [(raw_digest(digest),) for digest in texts])
    connection.executemany("update events set data = ? where seq = ?", [(data, seq) for seq, data in payloads.items()])
    for sql in guards.values():
        connection.execute(sql)
