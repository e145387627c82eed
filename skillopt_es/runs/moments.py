"""Moments of a run: what `step 12`, `epoch 2` or `seq 345` means as a place in its log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, Protocol

from skillopt_es.counting import counted
from skillopt_es.engine.programs import check_allowed
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import (
    AppendixWritten,
    CandidateGated,
    EpochCompleted,
    GapFound,
    Recorded,
    RunStarted,
    StepSkipped,
)
from skillopt_es.events.log import Head, RunInfo

Kind = Literal["step", "epoch", "seq"]
Moment = tuple[Kind, int]


class Events(Protocol):
    """The events of a run, however they are read."""

    @property
    def run(self) -> RunInfo:
        """The run."""

    def head(self) -> Head:
        """Where its log ends."""

    def read(
        self, after: int = 0, until: int | None = None, types: Collection[str] | None = None
    ) -> Iterator[Recorded]:
        """Those after `after` up to and with `until`, of these types."""


def seq_of(log: Events, moment: Moment) -> int:
    """The number of the event that a moment ends with; raises NotInRun for one that the run has not reached."""
    kind, number = moment
    if kind == "seq":
        return _known_seq(log, number)
    return _end_of_step(log, number) if kind == "step" else _end_of_epoch(log, number)


def _known_seq(log: Events, number: int) -> int:
    head = log.head().seq
    if not 1 <= number <= head:
        raise NotInRun(f"{log.run.name} has no event {number}", hint=f"its events are 1 to {head}")
    return number


def _end_of_step(log: Events, number: int) -> int:
    last = end = 0
    for recorded in log.read(types=("CandidateGated", "StepSkipped", "AppendixWritten", "GapFound")):
        assert isinstance(recorded.event, CandidateGated | StepSkipped | AppendixWritten | GapFound)
        if recorded.event.step is None:
            continue
        last = recorded.event.step
        if last > number:
            break
        end = recorded.seq if last == number else 0
    if end:
        return end
    raise _not_reached(log, "step", number, last)


def _end_of_epoch(log: Events, number: int) -> int:
    last = 0
    for recorded in log.read(types=("EpochCompleted",)):
        assert isinstance(recorded.event, EpochCompleted)
        last = recorded.event.epoch
        if last == number:
            return recorded.seq
    raise _not_reached(log, "epoch", number, last)


def _not_reached(log: Events, kind: Literal["step", "epoch"], number: int, last: int) -> NotInRun:
    total = 0
    for recorded in log.read(until=1):
        assert isinstance(recorded.event, RunStarted)
        check_allowed("steps", recorded.event, log.run.name, NotInRun)
        steps = recorded.event.total_steps
        total = steps if kind == "step" else steps // max(1, recorded.event.steps_per_epoch)
    if number > total or number < 1:
        return NotInRun(f"{log.run.name} has no {kind} {number}: it is a run of {counted(total, kind)}")
    far = f"the last {kind} that ended is {last} of {total}" if last else f"no {kind} of its {total} has ended"
    return NotInRun(f"{log.run.name} has not come to the end of {kind} {number}: {far}")
