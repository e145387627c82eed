"""Live progress of a run: one updating line in a terminal, a logged line a stage elsewhere. On stderr."""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from skillopt_es.cli.terminal import Part, Toned, has_colour, is_dumb, line_of, raw, shown_by, tell
from skillopt_es.engine.algorithms import algorithm_at
from skillopt_es.engine.work import Questions, Rollouts, Work
from skillopt_es.events.catalog import CandidateGated, Event, RunPaused
from skillopt_es.events.journal import CallRow
from skillopt_es.logs import bound
from skillopt_es.presenting.event_lines import milestone
from skillopt_es.presenting.palette import tone_of
from skillopt_es.presenting.progress_line import progress_line, shown_clock
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.now import Tally

PATIENCE_SECONDS = 30.0
"""After how long a stage says how far it is, where there is no terminal to show it all the time."""


def words_for(event: Event) -> Mapping[str, object]:
    """What people are told about an event while they watch, for the logger; a pause is what the command ends with."""
    text = "" if isinstance(event, RunPaused) else milestone(event)
    tone = tone_of(event.verdict.action.replace("_", " ")) if isinstance(event, CandidateGated) else "plain"
    return {"message": text.strip(), "_said": (Toned(text, tone),)} if text else {}


class Progress:
    """An observer that knows where a run is and says so."""

    def __init__(
        self, folder: Path, console: Console, *, live: Live | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.notice = self.opening = ""  # what is said once the run has begun, before its name and after it
        self._folder = folder
        self._console = console
        self._live = live
        self._tally = Tally(clock=clock)
        self._timer: asyncio.TimerHandle | None = None

    def planned(self, work: Work, state: AnyState) -> None:
        """Notes the stage and how much of it there is to do."""
        self._begin(state)
        tally = self._tally
        tally.planned(work, state)
        if not isinstance(work, Rollouts | Questions):
            return
        self._show()
        if self._live is None:
            words = f"{self._where()}{tally.stage}" + (f", {tally.total:,} to do" if tally.total > 1 else "")
            with bound(place=work.units[0].place) if isinstance(work, Rollouts) else nullcontext():
                tell("stage", words, stage=tally.stage, to_do=tally.total)
            self._wait()

    def _begin(self, state: AnyState) -> None:
        if self._tally.begin(state):
            if self.notice:
                tell("note", self.notice)
            tell("run", f"run {self._folder}")
            if self.opening:
                tell("rules", self.opening)

    def _where(self) -> str:
        """The step that is under way, where there is one."""
        state = self._tally.state
        step = None if state is None else algorithm_at(state).words.stands(state).step
        return "" if step is None else f"step {step}: "

    def _wait(self) -> None:
        """Has a stage that goes on for long say how far it is."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(RuntimeError):  # nobody is running a loop: there is nothing to wait for
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._still)

    def _still(self) -> None:
        tally = self._tally
        if tally.done < tally.total:
            done = f"{tally.done:,} of {tally.total:,} done, {tally.answered:,} calls answered"
            seconds = tally.clock() - tally.stage_began
            tell("still", f"  {tally.stage}: {done} after {shown_clock(seconds)}")
            self._wait()

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Counts."""
        self._begin(state)
        self._tally.happened(seq, event, state)
        self._show()

    def called(self, row: CallRow) -> None:
        """Adds up the tokens."""
        self._tally.called(row)

    def _show(self) -> None:
        if self._live is not None:
            self._live.update(self)

    def __rich__(self) -> Text:
        """The live line as of now: it is drawn again while nothing happens, for the time goes on."""
        return Text(
            progress_line(self._tally.now, self._tally.state, self._console.width), no_wrap=True, overflow="ellipsis"
        )


class _Forgiving:
    """A stream whose reader may go away (a closed terminal, `| head`): what nobody sees is dropped, the run goes on."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes if it can."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes if it can."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def open_progress(folder: Path, *, quiet: bool) -> Iterator[Progress]:
    """Progress for one session, live if stderr is a terminal."""
    coloured = has_colour(sys.stderr)
    if quiet or not sys.stderr.isatty() or is_dumb():
        with shown_by(quiet=quiet):
            yield Progress(folder, Console(file=io.StringIO()), live=None)
        return
    console = Console(
        file=cast(IO[str], _Forgiving(raw(sys.stderr))),  # it makes its texts safe itself, and moves the cursor
        color_system="auto" if coloured else None,
        no_color=not coloured,
        force_terminal=True,
    )

    def above(parts: Sequence[Part]) -> None:
        console.print(Text.from_ansi(line_of(parts, coloured=console.color_system is not None)))

    # What others write meanwhile goes through our own streams, which are safe; rich would pass it on as it is.
    with (
        Live(
            console=console, refresh_per_second=8, transient=True, redirect_stdout=False, redirect_stderr=False
        ) as live,
        shown_by(above, quiet=False),
    ):
        yield Progress(folder, console, live=live)
