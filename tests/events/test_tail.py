"""What was committed and is gone is told, also when no anchor had named it; and nothing is told that is not so."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.event_runs import copy_live, create, fill, reopen, resumed, ticking
from support.params import parametrized
from sweep.disks import built_library

from skillopt_es.events.anchor import Anchor
from skillopt_es.events.ends import said_ends
from skillopt_es.events.errors import LogDamaged, LogUnreadable, LogUnwritable
from skillopt_es.events.faults import sqlite_fault
from skillopt_es.events.log import EventLog
from skillopt_es.events.tail import TailFile, read_tail
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter

END = Anchor("id-of-run", 3, "a" * 64, 2, "b" * 64)
LINE = 1024


def at(seq: int) -> Anchor:
    return Anchor("id-of-run", seq, "a" * 64, 2, "b" * 64)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run whose writer was killed: one anchor at its beginning, five events in the write-ahead log alone."""
    with create(tmp_path / "run") as writer:
        for number in range(5):
            asyncio.run(writer.append([resumed(number)], expected=number))
        return copy_live(tmp_path / "run", tmp_path / "killed")


def test_a_killed_run_is_whole(killed: Path) -> None:
    """What the tail says is there, so nothing is lost and nothing is noted; the next writer leaves one clean folder."""
    told = read_tail(killed)
    assert told.end is not None
    assert (told.end.seq, told.damaged) == (5, 0)
    report = verify(killed)
    assert (report.ok, report.warnings) == (True, ())
    with reopen(killed) as writer:
        assert writer.log.head().seq == 5
    assert not (killed / "tail").exists()
    assert verify(killed).ok


def test_a_deleted_write_ahead_log_is_told(killed: Path) -> None:
    """By `verify`, and by whoever would go on."""
    (killed / "log.db-wal").unlink()
    assert [problem.message for problem in verify(killed).problems] == ["5 events are missing after number 0"]
    with pytest.raises(LogDamaged, match="5 events are missing") as refused:
        reopen(killed)
    assert f"`--accept-loss` of `skillopt-es resume {killed}`" in refused.value.hint
    with RunWriter.open(killed, now=ticking(), accept_loss=True) as writer:
        asyncio.run(writer.append([resumed(9)], expected=0))
    assert verify(killed).ok


def test_a_flipped_bit_in_the_write_ahead_log_is_told(killed: Path) -> None:
    """Wherever it takes events away."""
    database, ahead = (killed / "log.db").read_bytes(), (killed / "log.db-wal").read_bytes()
    lost = 0
    for place in range(0, len(ahead), 997):
        (killed / "log.db").write_bytes(database)
        (killed / "log.db-wal").write_bytes(ahead[:place] + bytes([ahead[place] ^ 16]) + ahead[place + 1 :])
        for leftover in killed.glob("log.db-shm"):
            leftover.unlink()
        with EventLog.open(killed) as log:
            gone = log.head().seq < 5
        lost += gone
        assert verify(killed).ok is not gone, place
    assert lost > 10


def test_two_lines_take_turns(tmp_path: Path) -> None:
    """One that was torn leaves the other; a run that lost both has lost what it was told."""
    tail = TailFile(tmp_path)
    for seq in (3, 4, 5):
        tail.note(at(seq))
    tail.close()
    whole = (tmp_path / "tail").read_bytes()
    assert len(whole) == 2 * LINE
    assert read_tail(tmp_path).end == at(5)
    for torn, end in ((whole[LINE:], at(4)), (whole[: LINE + 100], at(5)), (b"\0" * LINE + whole[LINE:], at(4))):
        (tmp_path / "tail").write_bytes(torn)
        assert read_tail(tmp_path).end == end
    (tmp_path / "tail").write_bytes(whole[:50])
    with pytest.raises(LogDamaged, match="tail is damaged"):
        read_tail(tmp_path)
    assert [problem.lost for problem in said_ends(tmp_path).problems] == [True, True]


def test_a_damaged_line_is_noted(killed: Path) -> None:
    """The other one says nearly the same, so the log is no worse for it."""
    content = bytearray((killed / "tail").read_bytes())
    content[10] ^= 1
    (killed / "tail").write_bytes(content)
    report = verify(killed)
    assert report.ok
    assert "one of the two lines of tail" in report.warnings[0]


def test_what_the_disk_refuses_is_owed(tmp_path: Path) -> None:
    """The commit stands; before the next one it is written, or an error."""
    (tmp_path / "tail").symlink_to(tmp_path / "elsewhere")
    tail = TailFile(tmp_path)
    tail.note(at(3))
    with pytest.raises(LogUnwritable, match="tail"):
        tail.settle()
    (tmp_path / "tail").unlink()
    tail.settle()
    tail.close()
    assert read_tail(tmp_path).end == at(3)


def test_a_tail_of_another_run_is_not_taken_over(tmp_path: Path) -> None:
    """What lies in the folder of a new run is not about it."""
    tail = TailFile(tmp_path / "run")
    (tmp_path / "run").mkdir()
    tail.note(END)
    tail.close()
    fill(tmp_path / "run", 1)
    assert verify(tmp_path / "run").ok


def test_what_cannot_be_read_is_not_called_damaged(killed: Path) -> None:
    """A system that does not let a file be read says nothing about what is in it."""
    (killed / "head.json").unlink()
    (killed / "head.json").mkdir()
    for reading in (lambda: verify(killed), lambda: reopen(killed), lambda: said_ends(killed)):
        with pytest.raises(LogUnreadable, match=r"head\.json cannot be read"):
            reading()


def test_a_disk_that_fails_is_not_a_damaged_log(tmp_path: Path) -> None:
    """SQLite says that pages are malformed when the disk does not give them: the file is read once more to tell."""
    said = sqlite3.DatabaseError("database disk image is malformed")
    said.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    (tmp_path / "log.db").write_bytes(b"anything")
    assert isinstance(sqlite_fault(said, tmp_path / "log.db"), LogDamaged)
    (tmp_path / "log.db").unlink()
    (tmp_path / "log.db").mkdir()
    assert isinstance(sqlite_fault(said, tmp_path / "log.db"), LogUnreadable)


@parametrized("times", [1, 3, 10**6], by_default=1)
def test_a_disk_that_fails_while_a_run_is_read_is_not_a_damaged_log(times: int, killed: Path, tmp_path: Path) -> None:
    """Whichever of the reads fails, once or for good: the disk is named, and no command that looks for changes."""
    library = built_library(tmp_path)
    if library is None:
        pytest.skip("no compiler, or no way to load a library first")
    read = "import sys; from pathlib import Path; from skillopt_es.runs.reading import whole_log\n"
    read += "with whole_log(Path(sys.argv[1])) as log: print(len(list(log.read())))"
    for at in (0, 1, 2, 3, 4, 6):
        failing = {
            "LD_PRELOAD": str(library), "FAIL_UNDER": str(killed), "FAIL_CALL": "read", "FAIL_AT": str(at),
            "FAIL_TIMES": str(times), "FAIL_ERRNO": str(errno.EIO),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", read, killed],
            env=environment(**failing),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "LogDamaged" not in done.stderr, (at, done.stderr)
        assert done.returncode == 0 or "disk" in done.stderr or "Input/output error" in done.stderr, (at, done.stderr)
