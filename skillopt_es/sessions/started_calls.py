"""
Calls under a budget that have started: `in-flight.jsonl` in the run folder, one line a try.

A killed process leaves them in no journal, though they may have been paid for. Whoever goes on with the run compares
the lines with the journal and records what is missing, at its worst, in `RunResumed`. An orderly end leaves no file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO, TypeVar

from attrs import evolve, field, frozen, validators

from skillopt_es.engine.budget import Bound
from skillopt_es.events.catalog import RunResumed
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.faults import read_fault
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import read_plain
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import LostCall, Role

FILE = "in-flight.jsonl"

T = TypeVar("T")
_CONVERTER = strict_converter(detailed=False)
_COUNT = (validators.ge(0), validators.lt(2**63))


@frozen
class _Begun:
    """The first line: where log and journal ended when the session began."""

    events: int = field(validator=_COUNT)
    calls: int = field(validator=_COUNT)


@frozen
class _Try:
    """A try that was about to start, and what it may use at most; `again`: of the same call as the one before."""

    slot: str = field(validator=lambda _, __, slot: slot.encode())  # half a character is none
    role: Role
    input: int = field(validator=_COUNT)
    output: int = field(validator=_COUNT)
    again: bool


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
    """
    The calls that a killed process left in flight, unless the log has them already.

    Raises LogDamaged for a file that is not what was written: how much was paid for cannot be told then.
    """
    said = _read(folder / FILE)
    if said is None:
        return ()
    begun, tries = said
    if any(isinstance(each.event, RunResumed) for each in log.read(after=begun.events)):
        return ()
    recorded = Counter(row.call.slot for row in journal.read(after=begun.calls))
    return tuple(call for slot, calls in _started(tries).items() for call in calls[recorded[slot] :])


def _started(tries: Iterable[_Try]) -> dict[str, list[LostCall]]:
    """The calls that started, by slot, in their order."""
    found: dict[str, list[LostCall]] = {}
    for each in tries:
        calls = found.setdefault(each.slot, [])
        if each.again and calls:
            calls[-1] = evolve(calls[-1], tries=calls[-1].tries + 1)
        else:
            calls.append(
                LostCall(slot=each.slot, role=each.role, input_tokens=each.input, output_tokens=each.output, tries=1)
            )
    return found


def _read(path: Path) -> tuple[_Begun, list[_Try]] | None:
    """What the file says; None where no call can have started."""
    try:
        content = read_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise read_fault(error, path) from error
    *lines, _ = content.split(b"\n")  # what follows the last line's end was cut when the process ended
    if not lines:
        return None
    begun = _structured(path, 1, lines[0], _Begun)
    return begun, [_structured(path, number, line, _Try) for number, line in enumerate(lines[1:], start=2)]


def _structured(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return _CONVERTER.structure(json.loads(line), kind)
    except MISFITS as error:
        raise LogDamaged(
            f"line {number} of {path} is not what was written: which calls were in flight when the run was killed "
            "cannot be told",
            hint="bring the file back from a copy; or remove it and go on: the budget then does not count these calls",
        ) from error
