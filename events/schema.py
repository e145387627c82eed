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
FORMAT_VERSION = 1
_NO_ROOM = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

# Hashes and digests are kept as bytes, half of their hex. What thousands of calls have in common is one row of `forms`.
_TABLES = """
create table run (
  run_id text primary key not null, name text not null, created_at text not null, parent_run text, parent_head blob,
  format_version integer not null, origin blob, hash blob not null
) strict;

create table blobs (
  digest blob primary key not null, codec text not null check (codec in ('raw', 'zlib')),
  size integer not null check (size >= 0), checksum integer not null, data blob not null
) strict;

create table events (
  seq integer primary key not null, type text not null, version integer not null check (version >= 1),
  recorded_at text not null, cause text, prev_hash blob not null, hash blob not null, data text not null
) strict;

create table forms (
  id integer primary key not null, role text not null, stage text not null, model text not null, request text not null
) strict;

create table calls (
  n integer primary key not null, slot text not null, attempt integer not null check (attempt >= 1),
  form integer not null references forms, texts blob not null,
  outcome text not null check (outcome in ('answered', 'failed')), response blob, trace blob, finish text not null,
  reply_model text not null, request_id text not null, input_tokens integer, output_tokens integer,
  cached_tokens integer, reasoning_tokens integer, latency_ms integer not null, tries text not null,
  ahead integer not null check (ahead in (0, 1)), repeats text not null,
  error_kind text not null, error_message text not null, recorded_at text not null,
  prev_hash blob not null, hash blob not null, unique (slot, attempt)
) strict;
"""

# In a BEFORE INSERT trigger an unset key reads as -1, and REPLACE has not yet deleted what it would replace.
_ORDER_TRIGGERS = """
create trigger run_one before insert on run when exists (select 1 from run)
begin select raise(abort, 'a log holds one run'); end;

create trigger blobs_once before insert on blobs when exists (select 1 from blobs where digest = new.digest)
begin select raise(abort, 'blobs is append-only'); end;

create trigger events_next before insert on events
  when new.seq is not 1 + coalesce((select max(seq) from events), 0)
    or new.prev_hash is not coalesce(
      (select hash from events where seq = new.seq - 1), (select coalesce(origin, hash) from run))
begin select raise(abort, 'events is append-only: wrong number or predecessor'); end;

create trigger forms_next before insert on forms
  when new.id is not 1 + coalesce((select max(id) from forms), 0)
begin select raise(abort, 'forms is append-only: wrong number'); end;

create trigger calls_next before insert on calls
  when new.n is not 1 + coalesce((select max(n) from calls), 0)
    or new.attempt is not 1 + coalesce((select max(attempt) from calls where slot = new.slot), 0)
    or new.prev_hash is not coalesce(
      (select hash from calls where n = new.n - 1), (select coalesce(origin, hash) from run))
    or not exists (select 1 from forms where id = new.form)
begin select raise(abort, 'calls is append-only: wrong number, attempt, form or predecessor'); end;
"""

# For people: the same rows with hashes and digests in hex, and each call with what its form says.
_VIEWS = """
create view log_events as
select seq, type, version, recorded_at, cause, lower(hex(prev_hash)) as prev_hash, lower(hex(hash)) as hash, data
from events order by seq;

create view log_calls as
select n, slot, attempt, role, stage, model, request, lower(hex(texts)) as texts, outcome,
  iif(response is null, null, lower(hex(response))) as response,
  iif(trace is null, null, lower(hex(trace))) as trace, finish, reply_model, request_id, input_tokens,
  output_tokens, cached_tokens, reasoning_tokens, latency_ms, tries, error_kind, error_message, recorded_at,
  ahead, repeats,
  lower(hex(prev_hash)) as prev_hash, lower(hex(hash)) as hash
from calls join forms on forms.id = calls.form order by n;

create view log_blobs as
select lower(hex(digest)) as digest, codec, size, checksum, data from blobs order by blobs.rowid;
"""


def frozen_triggers(table: str) -> dict[str, str]:
    """The triggers that keep a table's rows as they were written, by name."""
    return {
        f"{table}_no_{verb}": f"create trigger {table}_no_{verb} before {verb} on {table}\n"
        f"begin select raise(abort, '{table} is append-only'); end"
        for verb in ("update", "delete")
    }


TABLES = ("run", "blobs", "events", "forms", "calls")
_FROZEN = "".join(f"{sql};\n" for table in TABLES for sql in frozen_triggers(table).values())
_DDL = _TABLES + _ORDER_TRIGGERS + _FROZEN + _VIEWS


def create_tables(connection: sqlite3.Connection) -> None:
    """Lays the tables, triggers and views into an empty database, inside the caller's transaction."""
    statement = ""
    for line in _DDL.splitlines(keepends=True):
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
