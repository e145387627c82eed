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
from skillopt_es.engine.programs import program_at
from skillopt_es.engine.tasks import Questions, Rollouts, Task
from skillopt_es.events.catalog import CandidateGated, Event, RunPaused
from skillopt_es.events.journal import CallRow
from skillopt_es.logs import bound
from skillopt_es.presenting.escaping import shown_inline
from skillopt_es.presenting.event_lines import milestone
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.palette import tone_of
from skillopt_es.projections.state import AnyState, RunState

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
        self,
        folder: Path,
        console: Console,
        *,
        live: Live | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.notice = self.opening = ""  # what is said once the run has begun, before its name and after it
        self._folder = folder
        self._console = console
        self._live = live
        self._clock = clock
        self._began = clock()
        self._steps_before: int | None = None
        self._stage = ""
        self._total = 0
        self._done = 0
        self._answered = 0
        self._stage_began = self._began
        self._timer: asyncio.TimerHandle | None = None
        self._tokens = 0
        self._unreported = False
        self._state = RunState[object]()

    def planned(self, task: Task, state: AnyState) -> None:
        """Notes the stage and how much of it there is to do."""
        self._begin(state)
        called = program_at(state).words
        match task:
            case Rollouts(units):
                self._stage, self._total = called.trying(units[0]), len(units)
            case Questions(jobs):
                self._stage, self._total = called.asking[type(jobs[0])], len(jobs)
            case _:
                return
        self._done = self._answered = 0
        self._stage_began = self._clock()
        self._state = state
        self._show()
        if self._live is None:
            words = f"{self._where()}{self._stage}" + (f", {self._total:,} to do" if self._total > 1 else "")
            with bound(place=task.units[0].place) if isinstance(task, Rollouts) else nullcontext():
                tell("stage", words, stage=self._stage, to_do=self._total)
            self._wait()

    def _begin(self, state: AnyState) -> None:
        if self._steps_before is None:
            self._steps_before = state.steps_done
            if self.notice:
                tell("note", self.notice)
            tell("run", f"run {self._folder}")
            if self.opening:
                tell("rules", self.opening)

    def _where(self) -> str:
        """The step that is under way, where there is one."""
        step = program_at(self._state).words.step(self._state)
        return "" if step is None else f"step {step}: "

    def _wait(self) -> None:
        """Has a stage that goes on for long say how far it is."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(RuntimeError):  # nobody is running a loop: there is nothing to wait for
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._still)

    def _still(self) -> None:
        if self._done < self._total:
            done = f"{self._done:,} of {self._total:,} done, {self._answered:,} calls answered"
            tell("still", f"  {self._stage}: {done} after {_clock(self._clock() - self._stage_began)}")
            self._wait()

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Counts."""
        self._state = state
        self._done += 1
        self._begin(state)
        self._show()

    def called(self, row: CallRow) -> None:
        """Adds up the tokens."""
        self._answered += 1
        used = (row.call.input_tokens, row.call.output_tokens)
        self._unreported = self._unreported or None in used
        self._tokens += sum(tokens for tokens in used if tokens is not None)

    def _show(self) -> None:
        if self._live is not None:
            self._live.update(self)

    def __rich__(self) -> Text:
        """The live line as of now: it is drawn again while nothing happens, for the time goes on."""
        return Text(shown_inline(self._line()), no_wrap=True, overflow="ellipsis")

    def _line(self) -> str:
        """As much as fits beside what is under way and the time: of the rest, the last goes first."""
        state = self._state
        where = "" if state.started is None else program_at(state).words.where(state)
        stage = f"{self._stage} {min(self._done, self._total)}/{self._total}"
        values = ""
        if state.current is not None and state.best is not None:
            values = f"current {shown_value(state.current.value)} best {shown_value(state.best.value)}"
        tokens = f"{self._tokens:,}{'+?' if self._unreported else ''} tokens"
        parts = (where, stage, values, tokens, self._time())
        line, over = "", 0
        for left_out in ((), (tokens,), (tokens, values), (tokens, values, where)):
            line = " · ".join(part for part in parts if part and part not in left_out)
            over = len(line) - self._console.width
            if over <= 0:
                return line
        return line.replace(self._stage, f"{self._stage[: max(0, len(self._stage) - over - 1)]}…", 1)

    def _time(self) -> str:
        elapsed = self._clock() - self._began
        text = f"{_clock(elapsed)} elapsed"
        state = self._state
        done = state.steps_done - (self._steps_before or 0)
        if state.started is not None and done:
            left = (state.started.total_steps - state.steps_done) * elapsed / done
            text += f", about {_clock(left)} left"
        return text


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


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
