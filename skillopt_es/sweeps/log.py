"""
A sweep's own log: one fact a line, appended and never changed, each line with the hash of the one before it.

A line that has no end was cut by a kill: it never happened. One process alone writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Self

from attrs import frozen

from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.faults import read_fault, system_fault
from skillopt_es.events.lock import RunLock
from skillopt_es.events.plain import read_plain
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import digest_of
from skillopt_es.sweeps.facts import KINDS, Fact, SweepState, evolved, folded

LOG_FILE = "sweep.jsonl"
_CONVERTER = strict_converter(detailed=False)


@frozen
class _Line:
    n: int
    at: str
    fact: Fact
    hash: str


def is_sweep(folder: Path) -> bool:
    """Whether a folder has a sweep's log."""
    return (folder / LOG_FILE).is_file()


def read_sweep(folder: Path) -> SweepState:
    """Where the sweep in a folder stands; raises LogDamaged for a log that is not what was written."""
    return folded(line.fact for line in _read(folder / LOG_FILE)[0])


class SweepWriter:
    """The one writer of a sweep's log; `state` follows what it writes."""

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        """Opens the log, or begins it; raises RunBusy while another process has it."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise system_fault(error, folder) from error
        self._path, self._now = folder / LOG_FILE, now
        self._lock = RunLock(folder, start=now().isoformat(timespec="seconds"))
        try:
            lines, whole = _read(self._path)
            self.state = folded(line.fact for line in lines)
            self._count, self._hash = len(lines), lines[-1].hash if lines else ""
            self._first = lines[0].hash if lines else ""
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._file, whole)
            os.lseek(self._file, whole, os.SEEK_SET)
        except OSError as error:
            self._lock.release()
            raise system_fault(error, self._path) from error
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._lock.release()

    @property
    def name(self) -> str:
        """Names this sweep among all others, once it has begun: by its first line."""
        return self._first[:12]

    def append(self, fact: Fact) -> None:
        """Writes a fact; it is on the disk when this returns."""
        state = evolved(self.state, fact)
        row = {
            "n": self._count + 1,
            "at": self._now().isoformat(timespec="milliseconds"),
            "type": type(fact).__name__,
            "data": _CONVERTER.unstructure(fact),
        }
        found = _hash(self._hash, row)
        line = json.dumps({**row, "hash": found}, ensure_ascii=False).encode() + b"\n"
        try:
            while line:  # a full disk may take a part of it
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            raise system_fault(error, self._path) from error
        self.state, self._hash, self._count = state, found, self._count + 1
        self._first = self._first or found


def _hash(before: str, row: dict[str, object]) -> str:
    return digest_of(f"{before}{json.dumps(row, sort_keys=True)}".encode())


def _read(path: Path) -> tuple[list[_Line], int]:
    """The lines of a log, and how many bytes of it are whole."""
    try:
        content = read_plain(path)
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise read_fault(error, path) from error
    *rows, rest = content.split(b"\n")
    lines: list[_Line] = []
    for number, row in enumerate(rows, start=1):
        lines.append(_line(path, number, row, lines[-1].hash if lines else ""))
    return lines, len(content) - len(rest)


def _line(path: Path, number: int, row: bytes, before: str) -> _Line:
    try:
        said = json.loads(row)
        given = said.pop("hash")
        if given != _hash(before, said) or said["n"] != number:
            raise ValueError("it does not follow the line before it")
        return _Line(number, said["at"], _CONVERTER.structure(said["data"], KINDS[said["type"]]), given)
    except MISFITS as error:
        raise LogDamaged(
            f"line {number} of {path} is not what was written",
            hint="restore the file from a copy; or move the sweep's folder away and begin it anew",
        ) from error
