"""A session that was broken off is known as such: a `tail` that was taken away is told, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support.event_runs import create, fill, reopen, resumed, ticking, with_writer

from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter

GONE = "tail is gone, and the last session was broken off"
WATCHED = tuple(f"events/{name}.py" for name in ("anchor", "create", "lock", "store", "tail", "writer"))


def as_killed(folder: Path, target: Path) -> Path:
    """All files of a run as they are on disk this moment: what a kill would leave, and what a copy gets."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("*-shm"))
    return target


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run whose writer was killed between two barriers: two events are anchored, three are not."""
    with create(tmp_path / "run") as writer:
        for number in range(5):
            asyncio.run(writer.append([resumed(number)], expected=number))
            if number == 1:
                asyncio.run(writer.anchor())
        return as_killed(tmp_path / "run", tmp_path / "killed")


def lose(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink()


def test_a_lost_end_is_told_when_tail_is_gone_too(killed: Path) -> None:
    """By `verify` and by every writer, however often it is asked, until somebody accepts the loss and goes on."""
    lose(killed, "log.db-wal", "tail")
    for _ in range(2):
        assert [GONE in problem.message for problem in verify(killed).problems] == [True]
        with pytest.raises(LogDamaged, match=GONE) as refused:
            reopen(killed)
        assert "--accept-loss" in refused.value.hint
        RunWriter.open(killed, now=ticking(), accept_loss=True).close()
    with RunWriter.open(killed, now=ticking(), accept_loss=True) as writer:
        assert GONE in writer.lost
        asyncio.run(writer.append([resumed(9)], expected=2))
        again = as_killed(killed, killed.with_name("again"))
    for folder in (killed, again):
        assert verify(folder).ok
        reopen(folder).close()


def test_a_broken_off_session_that_wrote_nothing_has_a_tail_too(tmp_path: Path) -> None:
    """So its absence tells; with it in place all is well."""
    with create(tmp_path / "run"):
        folder = as_killed(tmp_path / "run", tmp_path / "killed")
    assert verify(folder).ok
    lose(folder, "tail")
    assert not verify(folder).ok


def test_a_log_of_before_the_mark_has_lost_nothing(killed: Path) -> None:
    """Its lock names a holder that was killed, and it may never have had a tail."""
    lose(killed, "tail")
    holder = {"host": "elsewhere", "pid": 7, "start": "2026-01-02T00:00:00.000000Z"}
    for said in (json.dumps(holder), "", "{", "[]", json.dumps({**holder, "tail": "yes"})):
        (killed / "lock").write_text(said)
        assert verify(killed).ok
    lose(killed, "lock")
    reopen(killed).close()
    assert verify(killed).ok


def test_a_closed_session_leaves_no_mark(tmp_path: Path) -> None:
    """Nor does reading or copying what was closed."""
    fill(tmp_path / "run", 2)
    assert ((tmp_path / "run" / "lock").read_bytes(), (tmp_path / "run" / "tail").exists()) == (b"", False)
    with EventLog.open(tmp_path / "run") as log:
        list(log.read())
    for folder in (tmp_path / "run", as_killed(tmp_path / "run", tmp_path / "copy")):
        assert verify(folder).ok
        reopen(folder).close()


def test_a_mark_of_another_log_is_not_taken_over(killed: Path) -> None:
    """Where a new run begins in a folder whose log somebody removed."""
    lose(killed, "log.db", "log.db-wal", "head.json", "tail")
    create(killed).close()
    assert verify(killed).ok


class Moments:
    """What a kill would leave, after each line of the writer's code that has changed something on disk."""

    def __init__(self, folder: Path, into: Path) -> None:
        self.left: list[Path] = []
        self._folder, self._into, self._before = folder, into, dict[str, bytes]()
        self._one = threading.Lock()

    def __enter__(self) -> Moments:
        self._tracers = sys.gettrace(), threading.gettrace()
        threading.settrace(self._look)
        sys.settrace(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._tracers[0])
        threading.settrace(self._tracers[1])  # type: ignore[arg-type]

    def _look(self, frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        with self._one:
            self._keep()
        return self._look

    def _keep(self) -> None:
        now = {each.name: each.read_bytes() for each in self._folder.glob("[!.]*") if not each.name.endswith("-shm")}
        if now == self._before or "log.db" not in now or any(".new" in name for name in now):
            return
        self._before = now
        self.left.append(self._into / str(len(self.left)))
        self.left[-1].mkdir(parents=True)
        for name, content in now.items():
            (self.left[-1] / name).write_bytes(content)


def test_killed_at_any_line_nothing_is_called_lost(killed: Path, tmp_path: Path) -> None:
    """While a run begins, is written, anchored and closed, and while one that was killed is gone on with."""

    async def write(writer: RunWriter) -> None:
        head = writer.log.head().seq
        for number in range(head, head + 2):
            await writer.append([resumed(number)], expected=number)
        await writer.anchor()
        await writer.append([resumed(9)], expected=head + 2)

    found: list[Path] = []
    for folder in (tmp_path / "fresh", killed):
        with Moments(folder, tmp_path / f"left-of-{folder.name}") as moments:
            with_writer(folder, write)
        assert len(moments.left) > 12
        found += moments.left
    for left in found:
        report = verify(left)
        assert report.ok, (left, report.problems)
        reopen(left).close()
        assert verify(left).ok
