"""
`logs.jsonl` in the run folder: what happened as structured lines, for people with log tools.

It can be made again, so what cannot be written (a full disk) is dropped and never stops a run.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TextIO

import structlog

from skillopt_es.engine.tasks import Task
from skillopt_es.events.catalog import Event
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.journal import CallRow
from skillopt_es.projections.state import TrainerState


class RunLogFile:
    """An observer that writes one JSON line an event and one a call that was retried or failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: TextIO | None = None

    def __enter__(self) -> RunLogFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if self._file is not None:
                self._file.close()

    def _write(self, event: str, **fields: object) -> None:
        with suppress(OSError):
            self._write_line(event, **fields)

    def _write_line(self, event: str, **fields: object) -> None:
        if self._file is None:
            self._file = (self._folder / "logs.jsonl").open("a", encoding="utf-8")
        logger = structlog.wrap_logger(
            structlog.WriteLogger(self._file),
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
        )
        logger.info(event, **fields)

    def planned(self, task: Task, state: TrainerState) -> None:
        """A task begins: nothing to write."""

    def happened(self, seq: int, event: Event, state: TrainerState) -> None:
        """One line an event."""
        place = getattr(event, "place", None) or getattr(event, "step", None) or getattr(event, "epoch", None)
        self._write(type(event).__name__, seq=seq, at=place)

    def called(self, row: CallRow) -> None:
        """One line a call that did not go through at once."""
        call = row.call
        if call.outcome == "failed" or call.tries != "[]" or call.ahead or call.repeats:
            facts = {"tries": call.tries, "ahead": call.ahead, "repeats": call.repeats}
            self._write("call", slot=call.slot, outcome=call.outcome, error=call.error_kind, **facts)

    def ahead_gave_up(self, error: Exception) -> None:
        """One line for rollouts ahead of a verdict that broke off; only an error of ours has words for a file."""
        said = error.message if isinstance(error, SkillOptError) else ""
        self._write("ahead_gave_up", error=type(error).__name__, message=said)
