"""
The phases of a classic run: what is under way, as values in which nothing is missing.

An event or a decision belongs to one phase. What is given it here is there; an event that comes in another phase has
nothing before it that led to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from skillopt_es.algorithms.classic.jobs import MetaSkillJob, SlowUpdateJob
from skillopt_es.algorithms.classic.state import ClassicState, EndedEpoch, EpochState, OpenStep, opened
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import Event
from skillopt_es.projections.state import there

J = TypeVar("J")
V = TypeVar("V")

Decides = Callable[[ClassicState, RunConfig, RecordedTexts], Event]
Asks = Callable[[J, ClassicState, RunConfig, RecordedTexts], Asking[V]]


def open_step(state: ClassicState) -> OpenStep:
    """The step under way; raises OutOfPlace between two steps."""
    return there(opened(state), "step under way")


def open_epoch(state: ClassicState) -> EpochState:
    """The epoch under way; raises OutOfPlace before the first."""
    return there(state.algorithm.epoch, "epoch under way")


def owed_epoch(state: ClassicState) -> EpochState:
    """The finished epoch that is owed something; raises OutOfPlace where none is."""
    return there(state.algorithm.owed, "finished epoch that is owed something").epoch


def ended(epoch: EpochState) -> EndedEpoch:
    """An epoch that is at its end; raises OutOfPlace where its skills are not compared."""
    return EndedEpoch(epoch=epoch, comparison=there(epoch.comparison, "comparison of the epoch's skills"))


# --- for decisions ---------------------------------------------------------------------------------------------------


def anywhere(decide: Callable[[ClassicState, RunConfig], Event]) -> Decides:
    """A decision that belongs to no phase."""
    return lambda state, config, evidence: decide(state, config)


def in_step(decide: Callable[[ClassicState, OpenStep, RunConfig], Event]) -> Decides:
    """A decision about the step under way."""
    return lambda state, config, evidence: decide(state, open_step(state), config)


def in_epoch(decide: Callable[[ClassicState, EpochState, RunConfig], Event]) -> Decides:
    """A decision about the epoch under way."""
    return lambda state, config, evidence: decide(state, open_epoch(state), config)


def at_end(decide: Callable[[ClassicState, EndedEpoch, RunConfig], Event]) -> Decides:
    """A decision about the comparison of the epoch under way."""
    return lambda state, config, evidence: decide(state, ended(open_epoch(state)), config)


# --- for questions ---------------------------------------------------------------------------------------------------


def asked_in_step(ask: Callable[[J, ClassicState, OpenStep, RunConfig, RecordedTexts], Asking[V]]) -> Asks[J, V]:
    """A question of the step under way."""
    return lambda job, state, config, evidence: ask(job, state, open_step(state), config, evidence)


EndJob = TypeVar("EndJob", SlowUpdateJob, MetaSkillJob)


def asked_at_end(
    ask: Callable[[EndJob, ClassicState, EndedEpoch, RunConfig, RecordedTexts], Asking[Any]],
) -> Asks[EndJob, Any]:
    """A question of an epoch's end: of the one under way, or of a finished one that is asked for again."""

    def asking(job: EndJob, state: ClassicState, config: RunConfig, evidence: RecordedTexts) -> Asking[Any]:
        epoch = open_epoch(state) if job.after is None else owed_epoch(state)
        return ask(job, state, ended(epoch), config, evidence)

    return asking
