"""One writer a run, in the system's eyes."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import log_child
from support.event_runs import create, reopen

from skillopt_es.events.errors import LogDamaged, RunBusy
from skillopt_es.events.log import EventLog

CHILD = log_child.__file__


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create(tmp_path / "run").close()
    return tmp_path / "run"


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, CHILD, "hold", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def test_a_second_process_is_refused_and_told_by_whom(folder: Path) -> None:
    """The message names process, host and since when."""
    with reopen(folder):
        run = subprocess.run([sys.executable, CHILD, "busy", str(folder)], capture_output=True, text=True, check=True)
    told = json.loads(run.stdout)
    assert told["host"] == socket.gethostname()
    assert str(told["pid"]) in told["message"]
    assert told["start"] == "2026-01-02T00:00:00.000000Z"


def test_the_lock_dies_with_its_holder(folder: Path, holder: subprocess.Popen[str]) -> None:
    """After `kill -9` the next writer gets in at once, and readers never needed it."""
    with pytest.raises(RunBusy) as caught:
        reopen(folder)
    assert caught.value.pid == holder.pid
    with EventLog.open(folder) as log:
        assert log.head().seq == 0
    holder.kill()
    holder.wait()
    reopen(folder).close()


def left_by_the_dead(folder: Path) -> int:
    """The lock as a process that was killed left it to a program that it was just starting: the file that holds it."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (folder / "lock").write_text(json.dumps({"host": socket.gethostname(), "pid": gone.pid, "start": "then"}))
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def test_what_a_dead_holder_was_just_starting_is_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lets go of the lock as soon as it is loaded."""
    held = left_by_the_dead(folder)
    waits: list[float] = []

    def loaded(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            os.close(held)

    monkeypatch.setattr("skillopt_es.events.lock.time.sleep", loaded)
    reopen(folder).close()
    assert len(waits) == 3


def test_who_holds_on_after_its_parents_death_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever."""
    held = left_by_the_dead(folder)
    monkeypatch.setattr("skillopt_es.events.lock.time.sleep", lambda seconds: None)
    with pytest.raises(RunBusy, match="since then"):
        reopen(folder)
    os.close(held)


def test_a_second_writer_in_the_same_process_is_refused(folder: Path) -> None:
    """The lock follows the open file, not the process; closing frees it."""
    with reopen(folder), pytest.raises(RunBusy):
        reopen(folder)
    reopen(folder).close()


def test_a_lock_file_that_says_nothing_still_locks(folder: Path) -> None:
    """A holder that did not get to write its name is not named."""
    with reopen(folder):
        (folder / "lock").write_text("{")
        with pytest.raises(RunBusy, match="another process"):
            reopen(folder)


def test_a_failed_opening_frees_the_lock(folder: Path) -> None:
    """A log that cannot be opened can be looked at again."""
    whole = (folder / "head.json").read_text()
    (folder / "head.json").write_text("{")
    for _ in range(2):
        with pytest.raises(LogDamaged, match=r"head\.json"):
            reopen(folder)
    (folder / "head.json").write_text(whole)
    reopen(folder).close()


def test_a_removed_lock_file_lets_nobody_in(folder: Path) -> None:
    """It only says who writes; the folder itself is what is locked."""
    with reopen(folder):
        (folder / "lock").unlink()
        for _ in range(2):
            with pytest.raises(RunBusy, match="another process"):
                reopen(folder)
    reopen(folder).close()
