"""A session: one process that writes one run, from opening its log to closing it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.config import EMPTY, RunConfig, recorded_config, resume_overrides
from skillopt_es.config.places import config_folder
from skillopt_es.engine.ahead import Ahead
from skillopt_es.engine.calls import LiveCalls
from skillopt_es.engine.evidence import Evidence
from skillopt_es.engine.fold import fold_log
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.loop import Observer, Trainer
from skillopt_es.engine.perform import Ports
from skillopt_es.engine.purse import Purse
from skillopt_es.engine.repeats import Repeats
from skillopt_es.engine.rollout import RolloutPorts
from skillopt_es.engine.run_data import RunData
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import RolloutCompleted, RunForked, RunResumed, RunStarted
from skillopt_es.events.errors import LogDamaged, RunNotFound, SkillOptError
from skillopt_es.events.journal import CallRow
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import CallRef, Json, Role, Setting, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatModel, Environment, Item, Splits
from skillopt_es.projections.state import AnyState, RunState
from skillopt_es.runs.folders import dir_option
from skillopt_es.runs.moments import Events
from skillopt_es.sessions.accounts import check_bounded, has_budget, open_purse, spent_before
from skillopt_es.sessions.handoff import Desk
from skillopt_es.sessions.hiding import check_walls, hide_answers
from skillopt_es.sessions.matrix import check_target, guide_of
from skillopt_es.sessions.start import run_started, size_notes, split_ids
from skillopt_es.sessions.started_calls import StartedCalls, lost_calls
from skillopt_es.sessions.wiring import REAL_WORLD, World
from skillopt_es.version import software_version


@frozen(kw_only=True)
class Session:
    """What a session is given from outside."""

    now: Callable[[], datetime]
    """The time of day, which is recorded; somebody may set it."""
    clock: Callable[[], float]
    """Seconds that only ever go on, for what must not last too long."""
    world: World = REAL_WORLD
    observers: Sequence[Observer] = ()
    ahead_gave_up: Callable[[Exception], None] = field(default=lambda error: None)
    warn: Callable[[str], None] = field(default=lambda message: None)
    stopping: Callable[[], bool] = field(default=lambda: False)
    in_flight: InFlight = field(factory=InFlight)
    ask_again: bool = False
    accept_loss: bool = False
    overrides: Sequence[str] = ()


async def start(config: RunConfig, folder: Path, session: Session) -> AnyState:
    """Trains a new run in `folder` to its end or pause."""
    environment = session.world.environment(config)
    try:
        splits = environment.load()
        first = run_started(config, splits, folder, guide=guide_of(environment))
        for note in size_notes(config, len(splits.train)):
            session.warn(note)
        models = session.world.models(config)
        try:
            check_target(models["target"], environment)
            check_bounded(config, models)
            check_walls(environment, config, folder)
            noted = await hide_answers(models, config, folder, warn=session.warn)
            first = evolve(first, notes=(*first.notes, *noted))
            writer = _new_writer(folder, session)
            try:
                run = RunData(config=config, started=first)
                return await _train(writer, run, RunState[object](), 0, first, environment, splits, models, session)
            finally:
                await asyncio.to_thread(writer.close)
        finally:
            await _close_models(models)
    finally:
        await environment.aclose()


def _new_writer(folder: Path, session: Session) -> RunWriter:
    """The writer of a new run; one that was created but never began may be begun again."""
    if not (folder / LOG_FILE).exists():
        created = session.now()
        run_id = digest_of(f"{folder.name} {created.isoformat()}".encode())[:16]
        return RunWriter.create(folder, run_id=run_id, name=folder.name, now=session.now)
    writer = RunWriter.open(folder, now=session.now)
    if writer.log.head().seq:
        writer.close()
        raise ConfigError(
            f"there is a run in {folder} already",
            hint=f"`skillopt-es resume {folder.name}{dir_option(folder.parent)}` goes on with it; "
            "`--run` names a new one",
        )
    return writer


async def resume(folder: Path, session: Session) -> AnyState:
    """Goes on with a run from wherever its log ends; a completed run is left as it is."""
    writer = RunWriter.open(folder, now=session.now, accept_loss=session.accept_loss)
    try:
        state, head = fold_log(writer.log.read())
        if state.started is None:
            raise RunNotFound(
                f"{folder.name} stopped before it began",
                hint="nothing of it is left to go on from: remove its folder, or bring it back from a copy"
                if writer.lost
                else f"start it with `skillopt-es run CONFIG --run {folder.name}{dir_option(folder.parent)}`",
            )
        if not state.started.total_steps:
            raise RunNotFound(
                f"{folder.name} is an evaluation, not a training run", hint="`skillopt-es eval` goes on with it"
            )
        if state.imported is not None:
            raise ConfigError(
                f"{folder.name} was imported from results of {state.imported.source}: "
                "it can be read, but not continued",
                hint="`skillopt-es export` writes its skill, from which a new run can start",
            )
        changed = resume_overrides(session.overrides, folder.name, dir_option(folder.parent), state.steps_done)
        if state.completed is not None:
            if changed:
                raise ConfigError(
                    f"{folder.name} is complete: there is nothing left that a setting could change",
                    hint="give prices and limits when a run starts, or while it is paused",
                )
            return state
        run = recorded_run(state.started, folder, {**state.overrides, **changed})
        environment = session.world.environment(run.config)
        try:
            splits = environment.load()
            _check_same_data(splits, state.started)
            models = session.world.models(run.config)
            try:
                check_target(models["target"], environment)
                check_bounded(run.config, models)
                check_walls(environment, run.config, folder)
                await hide_answers(models, run.config, folder, warn=session.warn)
                resumed = RunResumed(
                    software=software_version(),
                    overrides=tuple(Setting(key, value) for key, value in changed.items()),
                    lost=lost_calls(folder, writer.log, writer.journal),
                    accepted_loss=writer.lost,
                )
                return await _train(writer, run, state, head, resumed, environment, splits, models, session)
            finally:
                await _close_models(models)
        finally:
            await environment.aclose()
    finally:
        await asyncio.to_thread(writer.close)


def recorded_settings(log: Events) -> dict[str, Json]:
    """The settings that resuming or forking a run has changed, by key."""
    found: dict[str, Json] = {}
    for recorded in log.read(types=("RunResumed", "RunForked")):
        assert isinstance(recorded.event, RunResumed | RunForked)
        found.update({setting.key: setting.value for setting in recorded.event.overrides})
    return found


def recorded_run(started: RunStarted, folder: Path, overrides: Mapping[str, Json] = EMPTY) -> RunData:
    """The run that a log's first event describes, with the settings that resuming it has changed."""
    place = config_folder(started.folder, folder)
    try:
        config = recorded_config(dict(started.config), place)
    except ConfigError as error:
        raise LogDamaged(f"the recorded config cannot be read by this version: {error.message}") from error
    if overrides:  # a wrong one is the user's mistake, not the log's
        config = recorded_config(dict(started.config), place, overrides)
    return RunData(config=config, started=started)


def _check_same_data(splits: Splits, started: RunStarted) -> None:
    now = split_ids(splits)
    for name, digest in started.splits.digests.items():
        if now.digests.get(name) != digest:
            raise DataError(
                f"the {name} items are not those the run started with",
                hint="put the old data back to resume; start a new run for the new data",
            )


async def _train(
    writer: RunWriter,
    run: RunData,
    state: AnyState,
    head: int,
    opening: RunStarted | RunResumed,
    environment: Environment,
    splits: Splits,
    models: Mapping[Role, ChatModel],
    session: Session,
) -> AnyState:
    def seen(row: CallRow) -> None:
        for observer in session.observers:
            observer.called(row)

    folder = writer.log.path.parent
    started = StartedCalls(folder)
    purse = _purse(writer, run, opening, started, session) if has_budget(run.config) else None

    def stopping() -> bool:
        return session.stopping() or bool(purse is not None and purse.reached)

    desk = Desk(folder)
    desk.clear()
    evidence = Evidence(writer.log, writer.journal)
    calls = LiveCalls(
        models,
        writer.journal,
        writer,
        writer.log,
        workers=run.workers,
        ask_again=session.ask_again,
        inherited=state.forked.inherited if state.forked is not None else 0,
        repeats=Repeats(writer.journal.read(), _used(writer.log)) if run.config.train.reuse == "identical" else None,
        in_flight=session.in_flight,
        stopping=stopping,
        seen=seen,
        keep=evidence.keep,
        leave=desk.leave,
        purse=purse,
    )
    executor = session.world.executor(stopping)
    items: dict[str, Item] = {item.id: item for split in (splits.train, splits.val, splits.test) for item in split}
    rollouts = RolloutPorts(
        environment=environment, items=items, executor=executor, calls=calls, untrusted=splits.untrusted
    )
    trainer = Trainer(
        log=writer,
        head=head,
        state=state,
        run=run,
        ports=Ports(calls=calls, evidence=evidence, executor=executor, rollouts=rollouts),
        observers=session.observers,
        stopping=session.stopping,
        reached=lambda: "" if purse is None else purse.reached,
        ahead=Ahead(run, rollouts, calls, session.ahead_gave_up) if run.config.train.speculate else None,
    )
    await trainer.append([opening])
    await trainer.settled()  # whatever is paid for belongs to a run that can be resumed
    if purse is not None:
        started.open(writer.log, writer.journal)
    try:
        ended = await trainer.train()
    except SkillOptError:  # also then every call has come to its end
        started.close()
        raise
    started.close()
    return ended


def _purse(
    writer: RunWriter, run: RunData, opening: RunStarted | RunResumed, started: StartedCalls, session: Session
) -> Purse:
    """The purse of a session; what the sessions before it have used is no longer in it."""
    lost = opening.lost if isinstance(opening, RunResumed) else ()
    before = spent_before(run.config, writer.log, writer.journal, lost)
    return open_purse(run.config, before, clock=session.clock, stopping=session.stopping, note=started.note)


def _used(log: EventLog) -> frozenset[CallRef]:
    """The calls that rollouts of a log are made of."""
    rollouts = (recorded.event for recorded in log.read(types=("RolloutCompleted",)))
    return frozenset(call for event in rollouts if isinstance(event, RolloutCompleted) for call in event.calls)


async def _close_models(models: Mapping[Role, ChatModel]) -> None:
    for model in dict.fromkeys(models.values()):
        await model.aclose()


def read_state(folder: Path, until: int | None = None) -> AnyState:
    """A run's state, read from its log alone; up to an event if one is named."""
    with EventLog.open(folder) as log:
        return fold_log(log.read(until=until))[0]
