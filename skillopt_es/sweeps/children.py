"""The processes of a sweep's runs: how one is started, whose runs they write, and what one has left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen

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
_MOST_SAID = 2000


@frozen
class Child:
    """A run that is at work: a process of ours, or (None) one that an earlier sweep's process has left behind."""

    run: PlannedRun
    process: subprocess.Popen[bytes] | None

    def has_ended(self, folder: Path) -> bool:
        """Whether nobody writes the run any more."""
        if self.process is None:
            return not is_written(run_folder(folder, self.run))
        return self.process.poll() is not None

    def interrupt(self, folder: Path) -> None:
        """Asks it to stop, as Ctrl-C does."""
        pid = writer_here(run_folder(folder, self.run)) if self.process is None else self.process.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)


def run_folder(folder: Path, run: PlannedRun) -> Path:
    """Where a run of the sweep in a folder lies."""
    return folder / RUNS / run.name


def has_begun(folder: Path) -> bool:
    """Whether a run folder holds a run that `resume` goes on with."""
    if not is_run(folder):
        return False
    with EventLog.open(folder) as log:
        return log.head().seq > 0


def start(folder: Path, run: PlannedRun, left: RunEnded | None, environ: Mapping[str, str]) -> Child:
    """Starts a process that begins the run, or goes on with it."""
    words = _resume_words(run, left) if has_begun(run_folder(folder, run)) else _run_words(run)
    output = folder / _OUTPUT
    output.mkdir(exist_ok=True)
    try:
        with (output / f"{run.name}.json").open("wb") as out, (output / f"{run.name}.err").open("ab") as err:
            process = subprocess.Popen(  # noqa: S603 -- our own command
                [sys.executable, "-m", "skillopt_es", *words, "--dir", str(folder / RUNS), "--quiet", "--json"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, **environ},
                start_new_session=True,  # Ctrl-C is for the sweep, which passes it on
            )
    except OSError as error:
        raise system_fault(error, output) from error
    return Child(run, process)


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


def result_of(folder: Path, run: PlannedRun, code: int | None) -> RunEnded:
    """What became of a run whose process has ended with this code (None: nobody knows it)."""
    there = run_folder(folder, run)
    if not is_run(there):
        return _broken_off(folder, run, code)
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
    return _broken_off(folder, run, code)


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


def _broken_off(folder: Path, run: PlannedRun, code: int | None) -> RunEnded:
    """A process that left no pause: it was killed, or says itself what went wrong."""
    killed = code is None or code < 0
    outcome: Outcome = "killed" if killed else "failed"
    said = "" if killed else _said(folder / _OUTPUT / f"{run.name}.json")
    by = "" if code is None else f" by signal {-code}" if killed else f" with exit code {code}"
    return RunEnded(run=run.name, outcome=outcome, message=said or f"its process ended{by}")


def _said(file: Path) -> str:
    """The error that a process has put out as its document; empty for none."""
    try:
        error = json.loads(file.read_text(encoding="utf-8"))["error"]
        message, hint = str(error["message"]), error["hint"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return (f"{message} ({hint})" if hint else message)[:_MOST_SAID]
