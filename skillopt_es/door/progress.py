"""One line that says how far a training or an evaluation is, in a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from shutil import get_terminal_size
from typing import TextIO

from attrs import define, field

from skillopt_es.engine.work import Work
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.events.values import Split
from skillopt_es.logs import logger
from skillopt_es.presenting.progress_line import progress_line
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.now import Now, Tally

Progress = bool | Callable[[Now], object]
"""True shows a line where a person looks, False shows nothing; a function gets each `Now` in place of that."""

_EVERY_SECONDS = 0.1  # ten a second look smooth; a line for each event would cost a fast run its time


@define(eq=False)
class Shown:
    """An observer of a run that shows where it is; an evaluation says that by `scored`."""

    show: Callable[[Now, AnyState | None], object]
    warn: Callable[[str], None]
    end: Callable[[], None] = field(default=lambda: None)
    tally: Tally = field(factory=Tally)
    clock: Callable[[], float] = time.monotonic
    _last: float = field(default=float("-inf"), init=False)
    _failed: bool = field(default=False, init=False)

    def planned(self, work: Work, state: AnyState) -> None:
        """A stage begins."""
        self.tally.planned(work, state)
        self._look(self.tally.now, new=True)

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """A part of it is done."""
        self.tally.happened(seq, event, state)
        self._look()

    def called(self, row: CallRow) -> None:
        """A call is done."""
        self.tally.called(row)
        self._look()

    def scored(self, split: Split, done: int, total: int) -> None:
        """So many items of a split have their result."""
        self.tally.stage, self.tally.done, self.tally.total = f"scoring {split}", done, total
        self._look(self.tally.now, new=done == total)

    def close(self) -> None:
        """The work is over: what was not shown yet is shown."""
        if self._last > float("-inf"):
            self._look(self.tally.now, new=True)
        self.end()

    def _look(self, now: Now | None = None, *, new: bool = False) -> None:
        """Shows where the work is; often, but not for each of a thousand events."""
        moment = self.clock()
        if self._failed or (not new and moment - self._last < _EVERY_SECONDS):
            return
        self._last = moment
        try:
            self.show(self.tally.now if now is None else now, self.tally.state)
        except Exception as error:  # noqa: BLE001 -- the user's own function, or a stream that is gone
            self._failed = True
            logger().error("progress_failed", exc_info=error)
            self.warn(f"progress raised {type(error).__name__}: {error}; the work continues without it")


class Line:
    """A line of a stream that is written over again and again."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._wide = 0

    def show(self, now: Now, state: AnyState | None) -> None:
        """The line as of now, in the place of the one before."""
        # A line that wraps could not be written over.
        text = progress_line(now, state, get_terminal_size().columns - 1)
        self._stream.write(f"\r{text.ljust(self._wide)}")
        self._stream.flush()
        self._wide = len(text)

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        if self._wide:
            self._stream.write("\n")
            self._stream.flush()
            self._wide = 0


def is_looked_at(stream: TextIO) -> bool:
    """Whether a person looks at a stream: it is a terminal, or the output of a notebook's cell."""
    return stream.isatty() or type(stream).__module__.partition(".")[0] == "ipykernel"


def shown(progress: Progress, warn: Callable[[str], None], stream: TextIO | None = None) -> Shown | None:
    """What shows the progress; None where there is nothing to show, or nowhere to show it."""
    if callable(progress):
        return Shown(lambda now, state: progress(now), warn)
    stream = sys.stderr if stream is None else stream
    if not progress or not is_looked_at(stream):
        return None
    line = Line(stream)
    return Shown(line.show, warn, line.end)
