"""The processes of a sweep's runs: where they work, how one is started here, and what one has left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from attrs import define, frozen

from skillopt_es.audit.side_by_side import side
from skillopt_es.config import load_config
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.errors import LogDamaged, LogError
from skillopt_es.events.faults import system_fault
from skillopt_es.events.log import EventLog
from skillopt_es.runs.folders import is_run, is_written, writer_here
from skillopt_es.runs.overview import overview
from skillopt_es.sweeps.facts import Outcome, RunEnded
from skillopt_es.sweeps.plan import PlannedRun, deciding_digest

RUNS = "runs"
_OUTPUT = "output"
_MOST_SAID = 2000  # characters of a run's last words; they are recorded, and its output has all


class Child(Protocol):
    """A run that is at work."""

    @property
    def run(self) -> PlannedRun:
        """Which one."""
        ...

    @property
    def code(self) -> int | None:
        """The exit code of its process once that has ended; None where nobody knows it."""
        ...

    def has_ended(self) -> bool:
        """Whether nobody works on it any more."""
        ...

    def interrupt(self) -> None:
        """Asks it to stop, as Ctrl-C does; the second time not to wait for calls in flight."""
        ...

    def last_words(self) -> str:
        """What it said at the end, where it left no document that says so."""
        ...


class Workshop(Protocol):
    """Where the processes of a sweep's runs work: on this machine, or on a cluster."""

    @property
    def environ(self) -> Mapping[str, str]:
        """What tells the runs of their shared limits."""
        ...

    def start(self, run: PlannedRun, words: Sequence[str], launch: int) -> Child:
        """Starts the command with these words, for the so manieth time for this run."""
        ...

    def at_work(self, run: PlannedRun, launches: int) -> Child | None:
        """The process that an earlier sweep's process has left at work on a run, of so many that were launched."""
        ...

    def ended(self, run: PlannedRun) -> None:
        """Nobody works on the run any more."""
        ...

    def close(self) -> None:
        """Lets go of what is shared; whoever works goes on."""
        ...


@define
class Process:
    """A process on this machine: one of ours, or (None) one that an earlier sweep's process has left behind."""

    run: PlannedRun
    folder: Path
    process: subprocess.Popen[bytes] | None

    @property
    def code(self) -> int | None:
        """Known of our own alone."""
        return None if self.process is None else self.process.returncode

    def has_ended(self) -> bool:
        """Whether nobody writes the run any more."""
        if self.process is None:
            return not is_written(run_folder(self.folder, self.run))
        return self.process.poll() is not None

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        pid = writer_here(run_folder(self.folder, self.run)) if self.process is None else self.process.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    def last_words(self) -> str:
        """Nothing: its output is a file beside the run."""
        return ""


@frozen
class Processes:
    """This machine."""

    folder: Path
    environ: Mapping[str, str]

    def start(self, run: PlannedRun, words: Sequence[str], launch: int) -> Process:
        """A process in a session of its own."""
        try:
            out, err = output_files(self.folder, run)
            with out.open("wb") as printed, err.open("ab") as said:
                process = subprocess.Popen(  # noqa: S603 -- our own command
                    [sys.executable, "-m", "skillopt_es", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=said,
                    env={**os.environ, **self.environ},
                    start_new_session=True,  # Ctrl-C is for the sweep, which passes it on
                )
        except OSError as error:
            raise system_fault(error, self.folder) from error
        return Process(run, self.folder, process)

    def at_work(self, run: PlannedRun, launches: int) -> Process | None:
        """Whoever holds the run's lock."""
        return Process(run, self.folder, None) if is_written(run_folder(self.folder, run)) else None

    def ended(self, run: PlannedRun) -> None:
        """Its lock says so to whoever wants to know."""

    def close(self) -> None:
        """Nothing to let go of."""


def output_files(folder: Path, run: PlannedRun) -> tuple[Path, Path]:
    """Where a run's process prints its document, and its errors."""
    output = folder / _OUTPUT
    output.mkdir(exist_ok=True)
    return output / f"{run.name}.json", output / f"{run.name}.err"


def run_folder(folder: Path, run: PlannedRun) -> Path:
    """Where a run of the sweep in a folder lies."""
    return folder / RUNS / run.name


def has_begun(folder: Path) -> bool:
    """Whether a run folder holds a run that `resume` goes on with."""
    if not is_run(folder):
        return False
    with EventLog.open(folder) as log:
        return log.head().seq > 0


def words_for(folder: Path, run: PlannedRun, left: RunEnded | None) -> list[str]:
    """What is to be said to the command to begin a run, or to go on with it."""
    words = _resume_words(run, left) if has_begun(run_folder(folder, run)) else _run_words(run)
    return [*words, "--dir", str(folder / RUNS), "--quiet", "--json"]


def _run_words(run: PlannedRun) -> list[str]:
    return ["run", run.config, "--run", run.name, *_sets(run.overrides)]


def _resume_words(run: PlannedRun, left: RunEnded | None) -> list[str]:
    """A run that has reached its own budget gets the one that its config has by now."""
    if left is None or not left.key.startswith("budget."):
        return ["resume", run.name]
    budget = load_config(Path(run.config), run.overrides, os.environ).resolved["budget"]
    assert isinstance(budget, dict)
    return ["resume", run.name, *_sets([f"budget.{key}={value}" for key, value in budget.items() if value is not None])]


def _sets(overrides: Sequence[str]) -> list[str]:
    return [word for each in overrides for word in ("--set", each)]


def result_of(folder: Path, run: PlannedRun, code: int | None, last_words: str = "") -> RunEnded:
    """What became of a run whose process has ended with this code (None: nobody knows it)."""
    there = run_folder(folder, run)
    if not is_run(there):
        return _broken_off(folder, run, code, last_words)
    try:
        wrong = another_run(there, run)
        if wrong is not None:
            return wrong
        found = overview(there)
        if found.problem:
            raise LogDamaged(found.problem)
        if found.status == "completed":
            return _completed(there, run)
        if found.status == "paused":
            why = found.summary
            return RunEnded(run=run.name, outcome="paused", message=why.paused, reason=why.pause, key=why.pause_key)
    except LogError as error:
        return RunEnded(run=run.name, outcome="failed", message=error.message)
    return _broken_off(folder, run, code, last_words)


def _completed(there: Path, run: PlannedRun) -> RunEnded:
    found = side(there)
    if found.problem is not None:
        return RunEnded(run=run.name, outcome="failed", message=str(found.problem))
    assert found.spent is not None
    total, currency = found.spent.usage.total, found.spent.currency
    known = total.cost.known if currency else None
    return RunEnded(
        run=run.name,
        outcome="completed",
        validation=None if found.best is None else found.best.hard,
        test=None if found.test_best is None else found.test_best.hard,
        calls=total.calls,
        input_tokens=total.input.known,
        output_tokens=total.output.known,
        cost=None if known is None else str(known),
        currency=currency,
        cost_is_whole=not (currency and total.cost.unknown),
        seconds=found.seconds,
    )


def another_run(there: Path, run: PlannedRun) -> RunEnded | None:
    """That a folder holds a run of other settings than the planned one, which must not be paid for; else None."""
    if not has_begun(there):
        return None
    with EventLog.open(there) as log:
        first = next(log.read(until=1)).event
    if isinstance(first, RunStarted) and deciding_digest(first.config) == run.digest:
        return None
    message = (
        "its settings are not those that were planned: the config was changed while the sweep went on; "
        f"move {there} away and run the sweep again"
    )
    return RunEnded(run=run.name, outcome="failed", message=message)


def _broken_off(folder: Path, run: PlannedRun, code: int | None, last_words: str) -> RunEnded:
    """A process that left no pause: it was killed, or says itself what went wrong."""
    killed = code is None or code < 0
    outcome: Outcome = "killed" if killed else "failed"
    said = "" if killed else _said(folder / _OUTPUT / f"{run.name}.json")
    by = "" if code is None else f" by signal {-code}" if killed else f" with exit code {code}"
    more = f": {last_words}" if last_words else ""
    return RunEnded(run=run.name, outcome=outcome, message=said or f"its process ended{by}{more}")


def _said(file: Path) -> str:
    """The error that a process has put out as its document; empty for none."""
    try:
        error = json.loads(file.read_text(encoding="utf-8"))["error"]
        message, hint = str(error["message"]), error["hint"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return (f"{message} ({hint})" if hint else message)[:_MOST_SAID]
