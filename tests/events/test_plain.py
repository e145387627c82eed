"""What is not a plain file is told at once, wherever a file of a run is read."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.event_runs import fill
from support.ready import PATIENCE

from skillopt_es.events.anchor import Anchor, read_anchor, write_anchor
from skillopt_es.events.plain import NotPlainError, TooLargeError, open_plain, read_plain, write_plain


def test_a_plain_file_is_read_and_nothing_else(tmp_path: Path) -> None:
    """A link only where it may be followed; what is not there is told as by `open`."""
    (tmp_path / "file").write_bytes(b"what it says")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
    assert read_plain(tmp_path / "file") == read_plain(tmp_path / "link", follow=True) == b"what it says"
    for name, follow in (("link", False), ("pipe", True), ("to-pipe", True), ("folder", True), ("socket", True)):
        with pytest.raises(NotPlainError, match="symbolic link" if name == "link" else "not a plain file"):
            open_plain(tmp_path / name, follow=follow)
    with pytest.raises(NotPlainError, match="not a plain file"):
        open_plain(Path("/dev/zero"))
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "none")
    assert read_plain(tmp_path / "file", most=12) == b"what it says"
    for endless in (tmp_path / "file", *Path("/proc/self").glob("status")):  # which says that it has no bytes
        with pytest.raises(TooLargeError, match="more than 11 bytes"):
            read_plain(endless, most=11)


READ = """
import sys
from pathlib import Path
from skillopt_es.events.errors import LogError
from skillopt_es.events.verify import verify
from skillopt_es.sessions.accounts import lost_calls
from skillopt_es.runs.kept import kept_overview
from skillopt_es.runs.folders import is_written
from skillopt_es.runs.kept import kept_sums
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog

for folder in map(Path, sys.argv[1:]):
    try:
        with EventLog.open(folder) as log:
            is_written(folder), kept_overview(folder), kept_sums(folder, log, 0)
            lost_calls(folder, log, Journal(log.reader))
        verify(folder)
        print(f"{folder.name}: read")
    except LogError as error:
        print(f"{folder.name}: {error.message}")
"""


def test_a_pipe_in_the_place_of_a_file_hangs_no_reader(tmp_path: Path) -> None:
    """What only saves time or names a process is passed over; what counts is said to be unreadable."""
    fill(tmp_path / "whole", 1)
    counting = ("tail", "head.json", "in-flight.jsonl")
    names = (*counting, "usage.json", "overview.json", "lock")
    for name in names:
        shutil.copytree(tmp_path / "whole", tmp_path / f"run-{name}")
        (tmp_path / f"run-{name}" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / f"run-{name}" / name)
    run = [sys.executable, "-c", READ, *(str(tmp_path / f"run-{name}") for name in names)]
    said = subprocess.run(run, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout.splitlines()
    assert len(said) == len(names)
    for name, line in zip(names, said, strict=True):
        assert line.startswith(f"run-{name}: ")
        assert line.endswith(f"{name} cannot be read: it is not a plain file" if name in counting else ": read")


def test_a_pipe_or_link_where_a_new_anchor_is_written_is_replaced(tmp_path: Path) -> None:
    """Nobody waits for a reader of it, and nothing is written through it."""
    os.mkfifo(tmp_path / "head.json.new")
    anchor = Anchor(run_id="r", seq=1, hash="a", calls=0, calls_hash="b")
    write_anchor(tmp_path, anchor)
    (tmp_path / "else").write_text("mine", encoding="utf-8")
    (tmp_path / "head.json.new").symlink_to(tmp_path / "else")
    write_anchor(tmp_path, anchor)
    assert read_anchor(tmp_path) == anchor
    assert (tmp_path / "else").read_text(encoding="utf-8") == "mine"


def test_two_that_write_one_file_at_once_both_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drafts have different names, also in one process; none is left."""
    path, replace = tmp_path / "file", Path.replace

    def replace_later(draft: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        write_plain(path, b"the other")
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", replace_later)
    write_plain(path, b"the one")
    assert read_plain(path) == b"the one"
    assert list(tmp_path.iterdir()) == [path]
