"""
Calls under a budget that have started: `in-flight.jsonl` in the run folder, one line a try.

A killed process leaves them in no journal, though they may have been paid for. Whoever goes on with the run compares
the lines with the journal and records what is missing, at its worst, in `RunResumed`. An orderly end leaves no file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from attrs import evolve

from skillopt_es.events.catalog import RunResumed
from skillopt_es.events.faults import read_fault
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import read_plain
from skillopt_es.events.values import LostCall, Role
from skillopt_es.training.budget import Bound

FILE = "in-flight.jsonl"


class StartedCalls:
    """The file of one session."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._file: TextIO | None = None

    def open(self, log: EventLog, journal: Journal) -> None:
        """Begins anew: what stood in the file is in the log."""
        self._file = self._path.open("w", encoding="utf-8", buffering=1)  # a line is the system's once it is written
        self._file.write(json.dumps({"events": log.head().seq, "calls": len(journal)}) + "\n")

    def note(self, slot: str, role: Role, bound: Bound, again: bool) -> None:
        """A try is about to start."""
        assert self._file is not None
        row = {"slot": slot, "role": role, "input": bound.input, "output": bound.output, "again": again}
        self._file.write(json.dumps(row) + "\n")

    def close(self) -> None:
        """Every call has come to its end: the file has nothing to tell."""
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)


def lost_calls(folder: Path, log: EventLog, journal: Journal) -> tuple[LostCall, ...]:
    """The calls that a killed process left in flight, unless the log has them already."""
    try:
        lines = read_plain(folder / FILE).decode().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise read_fault(error, folder / FILE) from error
    rows = [row for line in lines if (row := _row(line)) is not None]
    if not rows or "events" not in rows[0]:
        return ()
    if any(isinstance(each.event, RunResumed) for each in log.read(after=rows[0]["events"])):
        return ()
    recorded = Counter(row.call.slot for row in journal.read(after=rows[0]["calls"]))
    return tuple(call for slot, calls in _started(rows[1:]).items() for call in calls[recorded[slot] :])


def _started(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[LostCall]]:
    """The calls that started, by slot, in their order."""
    found: dict[str, list[LostCall]] = {}
    for row in rows:
        calls = found.setdefault(row["slot"], [])
        if row["again"] and calls:
            calls[-1] = evolve(calls[-1], tries=calls[-1].tries + 1)
        else:
            role: Role = row["role"]
            calls.append(
                LostCall(slot=row["slot"], role=role, input_tokens=row["input"], output_tokens=row["output"], tries=1)
            )
    return found


def _row(line: str) -> dict[str, Any] | None:
    """A line; None for one that was cut by the end of the process."""
    with suppress(ValueError):
        row = json.loads(line)
        return row if isinstance(row, dict) else None
    return None
