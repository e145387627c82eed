"""
The tables of `log.db`, the triggers that keep them append-only, and the only ways to open it.

The triggers refuse UPDATE, DELETE, REPLACE, gaps and wrong predecessors from any SQLite client. They cannot stop
somebody who drops them; the chain, the anchor and `verify` notice that. There is one writer connection at most (the
lock of `lock.py` sees to it), and readers are `mode=ro`, which also keeps SQLite's WAL-reset bug away.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from skillopt_es.events.errors import LogDamaged, LogError, LogTooNew, LogUnwritable, RunNotFound
from skillopt_es.events.faults import QUERY_ERRORS, read_fault, sqlite_fault
from skillopt_es.events.raw import connect, raw_file

LOG_FILE = "log.db"
# The letters SKOE.
APPLICATION_ID = 0x534B4F45
FORMAT_VERSION = 1  # of the tables: a reader refuses a newer one by its number instead of misreading it
_NO_ROOM = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def frozen_triggers(table: str) -> dict[str, str]:
    """The triggers that keep a table's rows as they were written, by name."""
    return {
        f"{table}_no_{verb}": f"create trigger {table}_no_{verb} before {verb} on {table}\n"
        f"begin select raise(abort, '{table} is append-only'); end"
        for verb in ("update", "delete")
    }


TABLES = ("run", "blobs", "events", "forms", "calls")
_FROZEN = "".join(f"{sql};\n" for table in TABLES for sql in frozen_triggers(table).values())


def create_tables(connection: sqlite3.Connection) -> None:
    """Lays the tables, triggers and views into an empty database, inside the caller's transaction."""
    statement = ""
    written = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    for line in (written + _FROZEN).splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute(f"pragma user_version = {FORMAT_VERSION}")


SCHEMA_QUERY = (
    "select name, sql from sqlite_master where sql is not null and tbl_name in"
    " ('run', 'blobs', 'events', 'forms', 'calls', 'log_events', 'log_calls', 'log_blobs') order by name"
)
"""Asks for the SQL of our tables, triggers and views, by name."""


STRANGERS_QUERY = (
    "select type, name from sqlite_master where sql is not null and tbl_name not in"
    " ('run', 'blobs', 'events', 'forms', 'calls', 'log_events', 'log_calls', 'log_blobs') order by type, name"
)
"""Asks for the kinds and names of what others have put into the file."""


def expected_schema() -> dict[str, str]:
    """The SQL of our tables, triggers and views as it must be, by name."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create_tables(connection)
        return dict(connection.execute(SCHEMA_QUERY).fetchall())
    finally:
        connection.close()


def check_file(path: Path) -> None:
    """Raises one clear error unless the file is a log this software can read; it is only looked at."""
    try:
        with raw_file(path) as read:
            header = read(0, 100)
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFound(f"there is no run at {path.parent}") from None
    except OSError as error:
        raise read_fault(error, path) from error
    if not header:
        raise LogError(f"{path} is empty, not a log", hint="delete its folder and start again")
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise LogDamaged(f"{path} is not an SQLite database, so it is not a log")
    # Offsets of SQLite's file format: user_version and application_id.
    version, application = int.from_bytes(header[60:64]), int.from_bytes(header[68:72])
    if application != APPLICATION_ID:
        raise LogError(f"{path} is a database of another program (application id {application:#x})")
    if version > FORMAT_VERSION:
        raise LogTooNew(f"{path} has format {version}, and this software knows {FORMAT_VERSION}")
    if version < 1:
        raise LogDamaged(f"{path} has the impossible format version {version}")


def open_writer_connection(path: Path) -> sqlite3.Connection:
    """A durable read-write connection to an existing log; the caller must hold the run's lock."""
    check_file(path)
    try:
        connection = connect(path, "mode=rw")
    except QUERY_ERRORS as error:
        raise sqlite_fault(error, path) from error
    try:
        prepare_writer(connection, path)
        # Tries the right to write at once: a read-only disk should not show at the first commit.
        connection.execute("begin immediate")
        connection.execute("rollback")
    except QUERY_ERRORS as error:
        connection.close()
        raise sqlite_fault(error, path) from error
    except LogError:
        connection.close()
        raise
    return connection


def prepare_writer(connection: sqlite3.Connection, path: Path) -> None:
    """Sets what SQLite forgets at each closing; raises LogUnwritable where WAL does not work."""
    (mode,) = connection.execute("pragma journal_mode = wal").fetchone()
    if mode != "wal":
        raise LogUnwritable(
            f"{path} cannot use a write-ahead log here (the answer was {mode!r})",
            hint="network disks refuse it: keep runs on a local disk",
        )
    for pragma in (
        # Full, or a power cut could take commits back.
        "synchronous = full",
        # For macOS, where a plain fsync leaves data in the disk's cache.
        "fullfsync = on",
        "checkpoint_fullfsync = on",
        "foreign_keys = on",
        # Without this REPLACE deletes rows and asks no trigger.
        "recursive_triggers = on",
        "wal_autocheckpoint = 1000",
        "journal_size_limit = 67108864",
        "cell_size_check = on",
    ):
        connection.execute(f"pragma {pragma}")


def open_reader_connection(path: Path) -> sqlite3.Connection:
    """A connection to a log that cannot write; works beside a writer and on a read-only disk."""
    check_file(path)
    try:
        connection = connect(path, "mode=ro")
    except QUERY_ERRORS as error:
        raise sqlite_fault(error, path) from error
    try:
        connection.execute("pragma query_only = on")
        if missing_bytes(path):
            # SQLite reads nothing of a file that is shorter than it should be, unless somebody repairs it.
            connection.execute("pragma writable_schema = on")
        _first_read(connection)
    except QUERY_ERRORS as error:
        connection.close()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM and not has_wal(path):
            return _open_immutable(path)
        raise sqlite_fault(error, path) from error
    return connection


def _open_immutable(path: Path) -> sqlite3.Connection:
    # A folder that cannot be written has no room for the files of a WAL reader. `immutable` needs none, but would
    # hide the events of a left-over WAL: hence only without one.
    connection = connect(path, "mode=ro&immutable=1")
    try:
        _first_read(connection)
    except QUERY_ERRORS as error:
        connection.close()
        raise sqlite_fault(error, path) from error
    return connection


def _first_read(connection: sqlite3.Connection) -> None:
    connection.execute("select count(*) from sqlite_master").fetchone()


def missing_bytes(path: Path) -> int:
    """How many bytes a database file should have and does not: it was cut; 0 while a write-ahead log may have them."""
    if has_wal(path):
        return 0
    try:
        with raw_file(path) as read:
            header = read(0, 32)
        size = path.stat().st_size
    except OSError as error:
        raise read_fault(error, path) from error
    # 65,536 does not fit into the field, and 1 stands for it.
    page = int.from_bytes(header[16:18])
    return max(0, int.from_bytes(header[28:32]) * (65536 if page == 1 else page) - size)


def has_wal(path: Path) -> bool:
    """Whether a write-ahead log with content stands beside the database."""
    with suppress(OSError):
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    return False
