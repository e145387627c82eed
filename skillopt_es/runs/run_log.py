"""
What happens in a run, logged; and `logs.jsonl` in its folder, for people with log tools.

The file can be made again, so what cannot be written (a full disk) is dropped and never stops a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from skillopt_es.engine.work import Work
from skillopt_es.events.catalog import Event, RunCompleted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.journal import CallRow
from skillopt_es.events.places import Place
from skillopt_es.logs import as_json, bound, listening, logger
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.folders import is_run

_logged: ContextVar[Path | None] = ContextVar("logged", default=None)

LOGS_FILE = "logs.jsonl"
"""What a run writes for log tools, in its folder."""


@contextmanager
def logged_to(folder: Path) -> Iterator[None]:
    """Binds the run, and appends every line that is logged inside to its `logs.jsonl`, once where blocks are nested."""
    if _logged.get() == folder:
        yield
        return
    file: TextIO | None = None
    early: list[str] = []

    def write(line: Mapping[str, object]) -> None:
        nonlocal file
        # Lines wait here until there is a run whose folder takes them.
        early.append(f"{as_json(line)}\n")
        with suppress(OSError):
            if file is None and is_run(folder):  # a run that cannot start leaves nothing
                file = (folder / LOGS_FILE).open("a", encoding="utf-8")
            if file is not None:
                file.writelines(early)
                file.flush()
                early.clear()

    token = _logged.set(folder)
    with bound(run=folder.name), listening(write):
        try:
            yield
        finally:
            _logged.reset(token)
            with suppress(OSError):
                if file is not None:
                    file.close()


class RunLog:
    """An observer that logs every event, and every call that was tried again or failed; `more` adds fields."""

    def __init__(self, more: Callable[[Event], Mapping[str, object]] = lambda event: {}) -> None:
        self._more = more

    def planned(self, work: Work, state: AnyState) -> None:
        """A task begins: nothing has happened yet."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """One line an event."""
        place = _place(event, state)
        logger().info(type(event).__name__, seq=seq, **({"place": place} if place else {}), **self._more(event))

    def called(self, row: CallRow) -> None:
        """One line for a call that did not go through at once."""
        call = row.call
        if call.outcome == "failed" or call.tries != "[]" or call.ahead or call.repeats:
            facts = {"tries": call.tries, "ahead": call.ahead, "repeats": call.repeats}
            logger().info("call", place=call.slot, outcome=call.outcome, error=call.error_kind, **facts)


def _place(event: Event, state: AnyState) -> str:
    """Where an event happened; nothing for what concerns the whole run."""
    if isinstance(event, RunCompleted):
        return ""
    place: str | None = getattr(event, "place", None)
    step: int | None = getattr(event, "step", None)
    epoch: int | None = getattr(event, "epoch", None)
    if place:
        return place
    if step:
        return Place.of_step((step - 1) // max(1, state.started.steps_per_epoch) + 1, step)
    return Place.of_epoch(epoch) if epoch else ""


def ahead_gave_up(error: Exception) -> None:
    """Logs that rollouts ahead of a verdict broke off; only an error of ours has words for a file."""
    said = error.message if isinstance(error, SkillOptError) else ""
    logger().warning("ahead_gave_up", error=type(error).__name__, message=said)
