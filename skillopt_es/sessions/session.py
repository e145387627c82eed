"""A session: one process that trains one run, from opening its log to closing it."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from skillopt_es.config import RunConfig, resume_overrides
from skillopt_es.engine.fold import fold_log
from skillopt_es.engine.programs import check_allowed
from skillopt_es.engine.run_data import RunData, recorded_run
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import RunForked, RunResumed, RunStarted
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import Json, LostCall, Setting
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import Splits, guide_of
from skillopt_es.projections.state import AnyState, RunState
from skillopt_es.runs.folders import dir_option
from skillopt_es.runs.lookup import Events
from skillopt_es.sessions.accounts import has_budget, lost_calls
from skillopt_es.sessions.opening import (
    OpenWorld,
    Session,
    Stage,
    closing,
    open_data,
    open_or_create,
    open_work,
    open_world,
)
from skillopt_es.sessions.start import run_started, size_notes, split_ids
from skillopt_es.version import software_version


async def start(config: RunConfig, folder: Path, session: Session) -> AnyState:
    """Trains a new run in `folder` to its end or pause."""
    async with open_data(config, session.world) as data:
        first = run_started(config, data.splits, folder, guide=guide_of(data.environment))
        for note in size_notes(config, len(data.splits.train)):
            session.warn(note)
        async with (
            open_world(data, first.skill, folder, session) as world,
            closing(_new_writer(folder, session)) as writer,
        ):
            first = evolve(first, notes=(*first.notes, *world.notes))
            stage = _stage(RunData(config=config, started=first), RunState[object](), 0, first, session)
            return await _train(writer, stage, world, session)


def _new_writer(folder: Path, session: Session) -> RunWriter:
    """The writer of a new run; one that was created but never began may be begun again."""
    there = (folder / LOG_FILE).exists()
    writer = open_or_create(folder, session)
    if there and writer.log.head().seq:
        writer.close()
        raise ConfigError(
            f"there is already a run in {folder}",
            hint=f"`skillopt-es resume {folder.name}{dir_option(folder.parent)}` continues it; `--run` names a new one",
        )
    return writer


async def resume(folder: Path, session: Session) -> AnyState:
    """Goes on with a run from wherever its log ends; a completed run is left as it is."""
    async with closing(RunWriter.open(folder, now=session.now, accept_loss=session.accept_loss)) as writer:
        state, head = fold_log(writer.log.read())
        started = _resumable(state, folder, lost_end=bool(writer.lost))
        changed = resume_overrides(session.overrides, folder.name, dir_option(folder.parent), state.steps_done)
        if state.completed is not None:
            if changed:
                raise ConfigError(
                    f"{folder.name} is complete: there is nothing left that a setting could change",
                    hint="give prices and limits when a run starts, or while it is paused",
                )
            return state
        run = recorded_run(started, folder, {**state.overrides, **changed})
        async with open_data(run.config, session.world) as data:
            _check_same_data(data.splits, started)
            async with open_world(data, started.skill, folder, session) as world:
                resumed = RunResumed(
                    software=software_version(),
                    overrides=tuple(Setting(key, value) for key, value in changed.items()),
                    lost=lost_calls(folder, writer.log, writer.journal),
                    accepted_loss=writer.lost,
                )
                return await _train(writer, _stage(run, state, head, resumed, session), world, session)


def _resumable(state: AnyState, folder: Path, *, lost_end: bool) -> RunStarted:
    """How a run began that may be resumed; raises RunNotFound or ConfigError for one that may not."""
    if state.started is None:
        raise RunNotFound(
            f"{folder.name} stopped before it began",
            hint="nothing is left to continue from: remove its folder, or restore it from a copy"
            if lost_end
            else f"start it with `skillopt-es run CONFIG --run {folder.name}{dir_option(folder.parent)}`",
        )
    check_allowed("resume", state.started, folder.name)
    return state.started


def _check_same_data(splits: Splits, started: RunStarted) -> None:
    now = split_ids(splits)
    for name, digest in started.splits.digests.items():
        if now.digests.get(name) != digest:
            raise DataError(
                f"the {name} items are not those the run started with",
                hint="put the old data back to resume; start a new run for the new data",
            )


def _stage(run: RunData, state: AnyState, head: int, opening: RunStarted | RunResumed, session: Session) -> Stage:
    lost: tuple[LostCall, ...] = opening.lost if isinstance(opening, RunResumed) else ()
    return Stage(
        run=run,
        state=state,
        head=head,
        opening=(opening,),
        lost=lost,
        pays=has_budget(run.config),
        repeats=run.config.train.reuse == "identical",
        ask_again=session.ask_again,
    )


async def _train(writer: RunWriter, stage: Stage, world: OpenWorld, session: Session) -> AnyState:
    async with open_work(writer, stage, world, session) as work:
        return await work.trainer.train()


def recorded_settings(log: Events) -> dict[str, Json]:
    """The settings that resuming or forking a run has changed, by key."""
    found: dict[str, Json] = {}
    for recorded in log.read(types=("RunResumed", "RunForked")):
        assert isinstance(recorded.event, RunResumed | RunForked)
        found.update({setting.key: setting.value for setting in recorded.event.overrides})
    return found


def read_state(folder: Path, until: int | None = None) -> AnyState:
    """A run's state, read from its log alone; up to an event if one is named."""
    with EventLog.open(folder) as log:
        return fold_log(log.read(until=until))[0]
