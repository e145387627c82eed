"""A log's file is looked at beside its connections without harm to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.event_runs import create

from skillopt_es.events import raw
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE, check_file, missing_bytes

READ = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("select count(*) from events").fetchall()
connection.close()
"""


def kept(file: Path) -> int:
    """How many descriptors of a file are kept open; other tests of this process may keep others."""
    found = file.stat()
    return len(raw._kept.get((found.st_dev, found.st_ino), ()))


def read_elsewhere(folder: Path) -> None:
    """Another process reads the log as any client of SQLite does, and closes it."""
    subprocess.run([sys.executable, "-c", READ, str(folder / LOG_FILE)], check=True)


def test_a_client_that_leaves_takes_no_write_ahead_log_away(tmp_path: Path) -> None:
    """Whatever this process has looked at before, and when its own readers have closed."""
    with create(tmp_path / "run"):
        log = tmp_path / "run" / LOG_FILE
        wal = log.with_name(f"{LOG_FILE}-wal")
        number = wal.stat().st_ino
        check_file(log)
        missing_bytes(log)
        with EventLog.open(tmp_path / "run") as reader:
            reader.head()
        read_elsewhere(tmp_path / "run")
        assert wal.exists()
        assert wal.stat().st_ino == number


def test_nothing_stays_open_once_the_last_connection_is_closed(tmp_path: Path) -> None:
    """As few descriptors as files, whoever looks how often."""
    log = tmp_path / "run" / LOG_FILE
    with create(tmp_path / "run"):
        for _ in range(5):
            check_file(log)
        assert kept(log) == 1
    assert kept(log) == 0
    check_file(log)
    assert kept(log) == 0


def test_a_kept_descriptor_reads_what_is_there_now(tmp_path: Path) -> None:
    """Bytes are read at their place, not where an earlier reader stopped."""
    file = tmp_path / "file"
    file.write_bytes(b"first")
    with raw.raw_file(file) as one, raw.raw_file(file) as another:
        assert (one(0, 3), another(0, 9), one(3, 9)) == (b"fir", b"first", b"st")
        file.write_bytes(b"other")
        assert one(0, 9) == b"other"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """And nothing is kept of it."""
    with pytest.raises(OSError, match="is not a plain file"), raw.raw_file(tmp_path):
        pass
    assert kept(tmp_path) == 0
