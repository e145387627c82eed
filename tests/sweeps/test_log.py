"""A sweep's own log: appended, chained, whole after a kill, written by one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillopt_es.events.errors import LogDamaged, RunBusy
from skillopt_es.sweeps.facts import RunLaunched, SweepBegan, SweepContinued
from skillopt_es.sweeps.log import LOG_FILE, SweepWriter, read_sweep

BEGAN = SweepBegan(software="test", file="sweep.yaml", score="test", runs=())


def writer(folder: Path) -> SweepWriter:
    """The log of a folder, at a fixed time."""
    return SweepWriter(folder, lambda: datetime(2026, 1, 1, tzinfo=UTC))


def written(folder: Path) -> Path:
    """A log of two facts."""
    with writer(folder) as log:
        log.append(BEGAN)
        log.append(RunLaunched(run="a", resumes=False))
    return folder / LOG_FILE


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """By the next process, too, which goes on behind it."""
    written(tmp_path)
    with writer(tmp_path) as log:
        log.append(SweepContinued(software="test"))
        log.append(RunLaunched(run="a", resumes=True))
    assert read_sweep(tmp_path).launches == {"a": 2}


def test_a_line_without_an_end_never_happened(tmp_path: Path) -> None:
    """It was cut by a kill, and is written over."""
    file = written(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"n": 3, "at": "2026')
    assert read_sweep(tmp_path).launches == {"a": 1}
    with writer(tmp_path) as log:
        log.append(RunLaunched(run="b", resumes=False))
    assert file.read_bytes().startswith(whole)
    assert read_sweep(tmp_path).launches == {"a": 1, "b": 1}


@pytest.mark.parametrize("change", [(b'"a"', b'"b"'), (b"2026", b"2027"), (b'"n": 2', b'"n": 3')])
def test_a_changed_line_is_named(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    """Whatever was changed in it."""
    file = written(tmp_path)
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second.replace(*change))
    with pytest.raises(LogDamaged, match="line 2 of"):
        read_sweep(tmp_path)


def test_a_missing_line_is_noticed(tmp_path: Path) -> None:
    """The next one does not follow the one before it."""
    file = written(tmp_path)
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(LogDamaged, match="line 1 of"):
        read_sweep(tmp_path)


def test_one_process_writes(tmp_path: Path) -> None:
    """A second one is told who."""
    with writer(tmp_path), pytest.raises(RunBusy):
        writer(tmp_path)
