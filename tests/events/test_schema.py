"""What any SQLite client can and cannot do to a log, and which files are logs at all."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support import log_child
from support.event_runs import client, copy_live, create, fill, reopen, resumed, with_writer

from skillopt_es.events.errors import LogDamaged, LogError, LogTooNew
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import open_reader_connection
from skillopt_es.events.verify import verify

EVENT = "type, version, recorded_at, cause"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fill(folder, 4)
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return copy_live(filled, tmp_path / "run")


def insert_event(seq: str, prev_hash: str, verb: str = "insert") -> str:
    return f"{verb} into events select {seq}, {EVENT}, {prev_hash}, x'68', data from events where seq = 5"


def insert_call(n: str, attempt: str, prev_hash: str, verb: str = "insert", form: str = "form") -> str:
    return (
        f"{verb} into calls select {n}, slot, {attempt}, {form}, texts, outcome, response, trace, finish, reply_model,"
        " request_id, input_tokens, output_tokens, cached_tokens, reasoning_tokens, latency_ms, tries, ahead, repeats,"
        f" error_kind, error_message, recorded_at, {prev_hash}, x'68' from calls where n = 5"
    )


BLOB = "into blobs select digest, codec, size, checksum, x'00' from blobs"


@pytest.mark.parametrize(
    "statement",
    [
        "update events set data = '{}' where seq = 2",
        "update or replace events set seq = 2 where seq = 3",
        "update events set seq = seq",
        "delete from events where seq = 5",
        "delete from events",
        insert_event("2", "prev_hash", "insert or replace"),
        insert_event("5", "prev_hash", "replace"),
        insert_event("5", "prev_hash"),
        insert_event("7", "hash"),
        insert_event("0", "hash"),
        insert_event("-1", "hash"),
        insert_event("null", "hash"),
        insert_event("6", "prev_hash"),
        insert_event("6", "x''"),
        "update calls set outcome = 'failed' where n = 2",
        "update calls set tries = '[]'",
        "delete from calls where n = 5",
        insert_call("5", "attempt", "prev_hash", "replace"),
        insert_call("7", "2", "hash"),
        insert_call("6", "3", "hash"),
        insert_call("6", "1", "hash", "insert or replace"),
        insert_call("6", "2", "prev_hash"),
        insert_call("6", "2", "hash", form="3"),
        insert_call("6", "2", "hash", form="null"),
        "update forms set model = 'x'",
        "update forms set id = 3 where id = 2",
        "delete from forms where id = 2",
        "insert into forms values (4, 'target', 'x', 'm', '{}')",
        "insert into forms values (null, 'target', 'x', 'm', '{}')",
        "insert or replace into forms values (2, 'target', 'x', 'm', '{}')",
        "update blobs set data = x'00'",
        "delete from blobs",
        f"insert or replace {BLOB}",
        f"replace {BLOB}",
        f"insert {BLOB}",
        "update run set name = 'x'",
        "delete from run",
        "insert into run select 'other', name, created_at, null, null, 1, null, hash from run",
        "insert or replace into run select run_id, 'x', created_at, null, null, 1, null, hash from run",
    ],
)
def test_no_client_can_change_what_is_recorded(folder: Path, statement: str) -> None:
    """UPDATE, DELETE, REPLACE, gaps and wrong predecessors are refused, and the log is as before."""
    for recursive in ("on", "off"):
        with closing(client(folder)) as connection:
            connection.execute(f"pragma recursive_triggers = {recursive}")
            with pytest.raises(sqlite3.IntegrityError, match=r"append-only|one run"):
                connection.execute(statement)
    assert verify(folder).ok


@pytest.mark.parametrize(
    "statement",
    [
        insert_event("6", "hash"),
        insert_call("6", "2", "hash"),
        "insert into forms values (3, 'target', 'x', 'm', '{}')",
        "insert into blobs values (x'64', 'raw', 1, 0, x'00')",
    ],
)
def test_what_follows_properly_may_be_added(folder: Path, statement: str) -> None:
    """The statements above are refused for what they do, not for how they are written; verify still sees these."""
    with closing(client(folder)) as connection:
        connection.execute(statement)
    assert not verify(folder).ok


def header(data: bytes, offset: int, value: int) -> bytes:
    return data[:offset] + value.to_bytes(4) + data[offset + 4 :]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda _: b"", LogError, "empty"),
        (lambda _: b"SQLite", LogDamaged, "not an SQLite database"),
        (lambda _: b"junk" * 5000, LogDamaged, "not an SQLite database"),
        (lambda data: header(data, 68, 0x12345678), LogError, "another program"),
        (lambda data: header(data, 68, 0), LogError, "another program"),
        (lambda data: header(data, 60, 3), LogTooNew, "format 3"),
        (lambda data: header(data, 60, 0), LogDamaged, "format version 0"),
        (lambda data: data[:100] + b"\xff" * 4000, LogDamaged, "damaged"),
    ],
    ids=["empty", "short", "junk", "foreign", "unmarked", "newer", "unversioned", "garbled"],
)
def test_a_file_that_is_no_log_of_ours_is_left_alone(
    folder: Path, change: Callable[[bytes], bytes], error: type[LogError], words: str
) -> None:
    """Readers, writers and verify say in one sentence what it is, and no byte of it changes."""
    path = folder / "log.db"
    path.write_bytes(change(path.read_bytes()))
    before = path.read_bytes()
    for opening in (EventLog.open, reopen):
        with pytest.raises(error, match=words) as caught:
            opening(folder)
        assert "\n" not in str(caught.value)
    report = verify(folder)
    assert not report.ok
    assert words in report.problems[0].message
    assert path.read_bytes() == before


def test_a_missing_database_beside_an_anchor_is_a_problem(folder: Path) -> None:
    """The anchor says there was a run."""
    (folder / "log.db").unlink()
    assert "no run" in verify(folder).problems[0].message


def test_every_query_of_the_log_names_its_order() -> None:
    """SQLite gives rows in the order of whatever index it used, so no query may leave it open."""
    root = Path(__file__).parents[2] / "events"
    for path in root.glob("*.py"):
        for line in path.read_text().splitlines():
            if "from events" in line and "select" in line and "insert into" not in line:
                assert "order by" in line or "max(seq)" in line or "where seq = new.seq" in line, f"{path}: {line}"


@pytest.fixture
def read_only(filled: Path) -> Iterator[Path]:
    # Not under tmp_path: its parents are closed to the user that the child becomes when the tests run as root.
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        folder = Path(base) / "run"
        shutil.copytree(filled, folder)
        yield folder
        folder.chmod(0o755)


def seal(folder: Path) -> None:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


def read_sealed(folder: Path) -> dict[str, object]:
    run = subprocess.run(
        [sys.executable, log_child.__file__, "read_only", str(folder)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    told: dict[str, object] = json.loads(run.stdout)
    return told


def test_a_run_on_a_read_only_disk_can_be_read(read_only: Path) -> None:
    """A cleanly closed run needs no file beside it; writing says why it cannot be."""
    seal(read_only)
    told = read_sealed(read_only)
    assert (told["seqs"], told["calls"], told["anchor"]) == ([1, 2, 3, 4, 5], 5, True)
    assert "cannot be written: access is denied" in str(told["refused"])


def test_a_left_over_write_ahead_log_is_not_hidden_on_a_read_only_disk(filled: Path, read_only: Path) -> None:
    """A run copied while it was being written shows its last events, too."""
    shutil.rmtree(read_only)
    work = read_only.with_name("work")
    shutil.copytree(filled, work)
    with reopen(work) as writer:
        asyncio.run(writer.append([resumed(1)], expected=5))
        shutil.copytree(work, read_only)
    seal(read_only)
    assert read_sealed(read_only)["seqs"] == [1, 2, 3, 4, 5, 6]


def test_readers_leave_a_finished_run_as_it_was(folder: Path) -> None:
    """Reading changes no byte of the log."""
    before = (folder / "log.db").read_bytes()
    with closing(open_reader_connection(folder / "log.db")) as connection:
        assert connection.execute("select count(*) from events order by 1").fetchone() == (5,)
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("insert into blobs values (x'64', 'raw', 1, 0, x'00')")
    assert (folder / "log.db").read_bytes() == before


def test_the_order_of_columns_keeps_the_payload_last(tmp_path: Path) -> None:
    """Heads are read without touching the payload's overflow pages."""
    with create(tmp_path / "run") as writer:
        columns = writer.log.reader.rows("select name from pragma_table_info('events') order by cid")
    assert columns[-1] == ("data",)
    assert with_writer(tmp_path / "run", lambda writer: writer.append([resumed(1)], expected=0)) == 1
