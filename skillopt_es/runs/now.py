"""
How far a session is with what it is doing: counted once, told on the terminal and, by a small file, to other processes.

`now.json` lies in the folder of a run that is being trained. It says only what the log cannot: the stage, how much of
it there is to do, calls in flight and waiting. It is written a few times a second, is gone when the session ends, and
means nothing once nobody writes the run any more.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import asdict, define, evolve, field, frozen

from skillopt_es.engine.algorithms import algorithm_at, most_calls
from skillopt_es.engine.in_flight import InFlight, Left
from skillopt_es.engine.work import Questions, Rollouts, Work
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.events.plain import read_plain, write_plain
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.folders import is_written

NOW_FILE = "now.json"
_EVERY_SECONDS = 0.25  # written so often at most: each is a file renamed, and pages look ten times a second
_OLD_SECONDS = 2.0  # the time goes on where nothing else does
_converter = strict_converter(detailed=False)


@frozen(kw_only=True)
class Now:
    """
    What a session is doing: `done` of `total` of a stage, calls answered in it, in flight and waiting, and its tokens.

    `failed` are calls that came to nothing. `elapsed` and `left` are seconds, of the session; `left` is unknown before
    its first step is over. Without `all_reported`, the tokens are a lower bound. `budget` is empty without limits.
    """

    where: str = ""
    stage: str = ""
    total: int = 0
    done: int = 0
    answered: int = 0
    failed: int = 0
    in_flight: int = 0
    waiting: int = 0
    tokens: int = 0
    all_reported: bool = True
    elapsed: float = 0.0
    left: float | None = None
    budget: tuple[Left, ...] = ()


@define
class Tally:
    """An observer that counts what a session does; `now` is what there is to say."""

    clock: Callable[[], float] = time.monotonic
    in_flight: InFlight = field(factory=InFlight)
    state: AnyState | None = None
    stage: str = ""
    total: int = 0
    done: int = 0
    answered: int = 0
    failed: int = 0
    tokens: int = 0
    unreported: bool = False
    began: float = field(init=False)
    stage_began: float = field(init=False)
    steps_before: int | None = None

    def __attrs_post_init__(self) -> None:
        self.began = self.stage_began = self.clock()

    def begin(self, state: AnyState) -> bool:
        """Notes where the session took the run up; whether this is the first that is heard of it."""
        first = self.steps_before is None
        if first:
            self.steps_before = state.steps_done
        return first

    def planned(self, work: Work, state: AnyState) -> None:
        """Notes the stage and how much of it there is to do."""
        self.begin(state)
        called = algorithm_at(state).words
        match work:
            case Rollouts(units):
                self.stage, self.total = called.doing(units[0]), len(units)
            case Questions(jobs):
                self.stage, self.total = called.doing(jobs[0]), len(jobs)
            case _:
                return
        self.done = self.answered = self.failed = 0
        self.stage_began = self.clock()
        self.state = state

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Counts."""
        self.begin(state)
        self.state = state
        self.done += 1

    def called(self, row: CallRow) -> None:
        """Adds up the tokens."""
        self.answered += 1
        self.failed += row.call.outcome == "failed"
        used = (row.call.input_tokens, row.call.output_tokens)
        self.unreported = self.unreported or None in used
        for tokens in used:
            if tokens is not None:
                self.tokens += tokens

    @property
    def left(self) -> float | None:
        """How long the rest takes, if each step takes as long as those of this session did."""
        state = self.state
        done = 0 if state is None else state.steps_done - (self.steps_before or 0)
        if state is None or not done or (algorithm_at(state).plan.by_calls and most_calls(state) is not None):
            return None
        return (state.started.total_steps - state.steps_done) * (self.clock() - self.began) / done

    @property
    def now(self) -> Now:
        """Everything at once."""
        return Now(
            where="" if self.state is None else algorithm_at(self.state).words.stands(self.state).where,
            stage=self.stage,
            total=self.total,
            done=min(self.done, self.total),
            answered=self.answered,
            failed=self.failed,
            in_flight=self.in_flight.count,
            waiting=self.in_flight.waiting,
            tokens=self.tokens,
            all_reported=not self.unreported,
            elapsed=self.clock() - self.began,
            left=self.left,
            budget=tuple(self.in_flight.left()),
        )


class Telling:
    """An observer that leaves what a session is doing beside its log, for other processes."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self._path = folder / NOW_FILE
        self._tally = tally
        self._timer: asyncio.TimerHandle | None = None
        self._said = Now()

    def planned(self, work: Work, state: AnyState) -> None:
        """A stage begins."""
        self._tally.planned(work, state)
        self._begin()

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """A part of it is done."""
        self._tally.happened(seq, event, state)

    def called(self, row: CallRow) -> None:
        """A call is done."""
        self._tally.called(row)

    def close(self) -> None:
        """Nothing is being done any more."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(OSError):  # the run's own files say all that lasts
            self._path.unlink(missing_ok=True)

    def _begin(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self._tell)

    def _tell(self) -> None:
        """Looks again after a while also where nothing happens: calls come to wait without an event."""
        self._timer = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self._tell)
        now = self._tally.now
        if evolve(now, elapsed=self._said.elapsed, left=self._said.left) != self._said or self._grew_old(now):
            self._said = now
            self._write(json.dumps(asdict(now)))

    def _grew_old(self, now: Now) -> bool:
        return now.elapsed - self._said.elapsed >= _OLD_SECONDS

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a folder that cannot be written stops the log, not this
            write_plain(self._path, text.encode())


def now_of(folder: Path) -> Now | None:
    """What the session that is writing a run is doing; None where nobody is, or it does not say."""
    if not is_written(folder):
        return None
    try:
        found: Now = _converter.structure(json.loads(read_plain(folder / NOW_FILE)), Now)
    except (OSError, ValueError, RecursionError, *MISFITS):
        return None
    return found
