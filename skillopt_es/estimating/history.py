"""
What earlier runs of the same models and data have measured: calls a unit, tokens and time a call.

Runs are matched by what is asked (both models and where they are) and by the digests of the data. Forks and evaluations
are left out: a part of their calls is not their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import define, evolve, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import algorithm_of
from skillopt_es.engine.estimates import Part, Planned, with_judge
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    STEP_ENDS,
    EpochCompleted,
    Recorded,
    RunCompleted,
    RunForked,
    RunStarted,
    ended_step,
    names_of,
)
from skillopt_es.events.errors import LogError
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.projections.usage import asks_itself
from skillopt_es.runs.folders import run_folders
from skillopt_es.runs.reading import whole_log
from skillopt_es.sessions.accounts import minutes_of

# The newest count; each one that is looked at is read whole, and an estimate should not take long.
_MOST_RUNS = 5
_MOST_LOOKED_AT = 20  # `usage` reads a log of 193,000 calls in .55 s: twenty such logs take eleven
_TYPES = names_of((RunForked, *STEP_ENDS, EpochCompleted, RunCompleted))


@define
class Calls:
    """The calls of one kind: how many, and the sums of what was reported of them."""

    count: int = 0
    reported: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    latency_ms: int = 0


@frozen(kw_only=True)
class PastRun:
    """One earlier run: its calls by kind, the parts of its plan as far as it came, and the time that it took."""

    name: str
    alike: bool
    complete: bool
    calls: Mapping[str, Calls]
    parts: Mapping[str, Part]
    seconds: float
    steps: int
    planned_steps: int


@define
class _Progress:
    """How far a log says that a run came."""

    steps: int = 0
    epochs: int = 0
    complete: bool = False
    usable: bool = True

    def saw(self, recorded: Recorded) -> None:
        match recorded.event:
            case EpochCompleted():
                self.epochs += 1
            case RunCompleted():
                self.complete = True
            case RunForked():
                self.usable = False
            case event if ended_step(event) is not None:
                self.steps += 1


def past_runs(directory: Path, run: Planned) -> list[PastRun]:
    """
    The newest earlier runs that ask the same models about the same data, the newest first.

    Where some were set up like this one, only those: other settings make other numbers of calls.
    """
    found: list[PastRun] = []
    alike: list[PastRun] = []
    for folder in reversed(run_folders(directory)):
        past = _past_run(folder, run)
        if past is None:
            continue
        found.append(past)
        if past.alike:
            alike.append(past)
        if len(alike) == _MOST_RUNS or len(found) == _MOST_LOOKED_AT:
            break
    return alike or found[:_MOST_RUNS]


def _past_run(folder: Path, planned: Planned) -> PastRun | None:
    """What a run has measured; None when it is another set-up, or cannot be read."""
    try:
        with whole_log(folder) as log:
            first = next(log.read(until=1), None)
            if (
                first is None
                or not isinstance(first.event, RunStarted)
                or first.event.algorithm != planned.started.algorithm
            ):
                return None
            run = Planned(started=first.event, config=config_of_run(first.event, folder))
            same_data = run.started.splits.digests == planned.started.splits.digests
            if not same_data or asked_of(run.config) != asked_of(planned.config):
                return None
            return _measured(folder.name, run, log, alike=_set_up(run.config) == _set_up(planned.config))
    except (LogError, ConfigError):
        return None


def asked_of(config: RunConfig) -> tuple[object, ...]:
    """What names the models of a config and the kind of task they are asked about."""
    roles = [config.role(role) for role in config.roles]
    return (config.env.name, *((role.backend, role.model, role.base_url.strip().rstrip("/")) for role in roles))


def _set_up(config: RunConfig) -> tuple[object, ...]:
    """What decides how many calls a run makes, but for draws."""
    return (
        evolve(config.train, seed=0),
        evolve(config.gradient, analyst_workers=1),
        config.optimizer,
        config.evaluation,
        config.env.max_completion_tokens,
        config.env.options,
    )


def _measured(name: str, run: Planned, log: EventLog, *, alike: bool) -> PastRun | None:
    progress = _Progress()
    for recorded in log.read(types=_TYPES):
        progress.saw(recorded)
    if not progress.usable:
        return None
    calls: dict[str, Calls] = {}
    algorithm = algorithm_of(run.started)
    for row in Journal(log.reader).read():
        call = row.call
        if call.repeats or asks_itself(call):
            continue
        of_kind = calls.setdefault(algorithm.plan.kind_of(call.slot, call.stage), Calls())
        of_kind.count += 1
        of_kind.latency_ms += call.latency_ms
        if call.input_tokens is not None and call.output_tokens is not None:
            of_kind.reported += 1
            of_kind.input += call.input_tokens
            of_kind.output += call.output_tokens
            of_kind.cached += call.cached_tokens if call.cached_tokens is not None else 0
    parts = with_judge(algorithm.plan.parts(run, progress.steps, max(1, progress.epochs)), run)
    return PastRun(
        name=name,
        alike=alike,
        complete=progress.complete,
        calls=calls,
        parts={part.kind: part for part in parts},
        seconds=60 * minutes_of(log),
        steps=progress.steps,
        planned_steps=run.started.total_steps,
    )
