"""
The world that a config names, opened (`opening.py`) and wired to a trainer.

Training, evaluating, grading again and examining go through here, so what is checked before anything is paid for, what
is hidden, counted and closed, is the same for all of them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from attrs import asdict, evolve, field, frozen

from skillopt_es.config import RunConfig, recorded_config
from skillopt_es.engine.agent_calls import AgentCalls
from skillopt_es.engine.ahead import Ahead
from skillopt_es.engine.attempts import RolloutPorts
from skillopt_es.engine.budget import OwnAccount, Purse
from skillopt_es.engine.call_records import Repeats
from skillopt_es.engine.calls import LiveCalls, Means, Records
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.loop import Control, Running, Trainer
from skillopt_es.engine.observers import Observer, Observers
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import Event, RolloutCompleted, RunForked, RunResumed, RunStarted, only
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import CallRef, Json, LostCall, Role, SkillTree
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatModel, ChecksFirst, Environment, Executor, Fronting, judge_calls, provided, required
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.inbox import Inbox
from skillopt_es.sessions.accounts import (
    StartedCalls,
    change_limits,
    check_bounded,
    open_account,
    spent_before,
    tariffs_of,
    with_ordered_limits,
)
from skillopt_es.sessions.handoff import Desk
from skillopt_es.sessions.hiding import check_walls, covered_keys, hide_answers, keys_within_reach
from skillopt_es.sessions.opening import OpenData, open_environment, open_executor, open_hands, open_model
from skillopt_es.sessions.sharing import SharedAccount, open_shared
from skillopt_es.sessions.skills import check_opening
from skillopt_es.version import software_version


@frozen
class World:
    """How a session reaches everything outside; tests put their own in its place."""

    model: Callable[[RunConfig, Role], ChatModel]
    environment: Callable[[RunConfig], Environment]
    executor: Callable[[RunConfig, Callable[[], bool], Callable[[str], None]], Executor] = open_executor
    shared: Callable[[RunConfig, Path], SharedAccount | None] = lambda config, folder: None


REAL_WORLD = World(
    model=lambda config, role: open_model(config, role, os.environ),
    environment=open_environment,
    shared=lambda config, folder: open_shared(config, folder, os.environ),
)


BOTH_ROLES: tuple[Role, ...] = ("target", "optimizer")
"""In the order in which they are opened: of two that are wrong, the target is spoken of first."""


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
    note: Callable[[str], None] = field(default=lambda message: None)
    stopping: Callable[[], bool] = field(default=lambda: False)
    in_flight: InFlight = field(factory=InFlight)
    ask_again: bool = False
    accept_loss: bool = False
    overrides: Sequence[str] = ()


# --- the world -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class OpenWorld:
    """The same with models that may be asked; `notes` say which of them could read the answers."""

    data: OpenData
    models: Mapping[Role, ChatModel]
    notes: tuple[str, ...]


@asynccontextmanager
async def environment_of(config: RunConfig, world: World) -> AsyncIterator[Environment]:
    """The environment of a config, until the block ends."""
    environment = world.environment(config)
    try:
        yield environment
    finally:
        await environment.aclose()


@asynccontextmanager
async def open_data(config: RunConfig, world: World) -> AsyncIterator[OpenData]:
    """The environment and its items; raises DataError for what cannot be read."""
    async with environment_of(config, world) as environment:
        yield OpenData(config=config, environment=environment, splits=environment.load())


@asynccontextmanager
async def open_world(
    data: OpenData, skill: SkillTree, folder: Path, session: Session, roles: Sequence[Role] = BOTH_ROLES
) -> AsyncIterator[OpenWorld]:
    """The models of these roles; raises ConfigError for one that cannot do, promise or be trusted with what it must."""
    models: dict[Role, ChatModel] = {}
    executor: Executor | None = None
    try:
        for role in (*roles, *judging_roles(data.config, data.environment)):
            models[role] = session.world.model(data.config, role)
        executor = session.world.executor(data.config, session.stopping, session.warn)
        check_target(models["target"], data.environment)
        check_opening(skill, models["target"], data.environment)
        check_bounded(data.config, models)
        check_walls(data.environment, data.config, folder)
        notes = await hide_answers(models, data.config, folder, warn=session.warn)
        for _, said in await keys_within_reach(models, data.config):
            session.warn(said)
        if isinstance(executor, ChecksFirst):  # what could never be had is told before a run begins
            await executor.check()
        yield OpenWorld(data=data, models=models, notes=notes)
    finally:
        if executor is not None:
            await executor.aclose()
        # One model may serve both roles.
        for model in dict.fromkeys(models.values()):
            await model.aclose()


def judging_roles(config: RunConfig, environment: Environment) -> tuple[Role, ...]:
    """The judge, where answers are graded by one; raises ConfigError where the config names none."""
    if not judge_calls(environment):
        return ()
    if not config.judge_model.model:
        raise ConfigError(
            f"{config.place('env.grader')}answers are graded by a judge, and nothing says which model that is",
            hint="set model.judge: NAME (and model.judge_backend, where it is another one than model.backend)",
        )
    return ("judge",)


def check_target(model: ChatModel, environment: Environment) -> None:
    """Raises ConfigError when the target cannot do what the environment needs."""
    missing = sorted(required(environment) - provided(model))
    if missing:
        raise ConfigError(
            f"env.name is {environment.name!r}, which needs {' and '.join(missing)}, "
            f"but the target model ({model.identity}) does not offer that",
            hint="choose another model.target_backend, or another env.name",
        )


@frozen(kw_only=True)
class Stage:
    """
    Where a session takes up a run: after the event `head`, with events that it begins with, and in which state.

    Each of the events has the state after it beside it: before the first event of a run there is none.

    `lost` are the calls that these events say were in flight when the one before was killed. `pays` is whether calls
    count against a budget; `repeats`, whether a request that was answered elsewhere in the run may be answered by that.
    """

    config: RunConfig
    state: AnyState
    head: int
    opening: Sequence[tuple[Event, AnyState]]
    lost: tuple[LostCall, ...] = ()
    pays: bool
    repeats: bool
    ask_again: bool


@asynccontextmanager
async def open_work(writer: RunWriter, stage: Stage, world: OpenWorld, session: Session) -> AsyncIterator[Running]:
    """A trainer whose opening events are durable: whatever is paid for belongs to a run that can be resumed."""
    folder = writer.log.path.parent
    started = StartedCalls(folder)
    inbox = Inbox(folder, session.clock, session.warn)
    config = with_ordered_limits(stage.config, stage.state, inbox.waiting(), partial(_changed, stage))
    pays = stage.pays or config.budget != stage.config.budget
    own = _account(writer, config, stage, session) if pays else None
    async with _shared(stage, folder, session) as shared:
        accounts = [each for each in (own, shared) if each is not None]
        purse = Purse(accounts, tariffs_of(config), None if own is None else started.note)
        means = Means(
            at_once=stage.config.workers,
            purse=purse,
            in_flight=session.in_flight,
            stops=(session.stopping, inbox.pausing),
        )
        control = Control(
            observer=Observers(
                (*session.observers, *covered_keys(world.models, stage.config, session.warn)), session.warn
            ),
            orders=inbox,
            limited=partial(_limited, stage, own, world.models),
            stopping=session.stopping,
            reached=means.reached,
        )
        try:
            async with _executor(stage, session, means) as executor:
                work = _wired(writer, stage, world, session, means, control, executor)
                # Nobody is asked before it is on disk that the run has begun.
                if stage.opening:
                    await work.trainer.begin(stage.opening)
                await work.trainer.settled()
                if own is not None:
                    session.in_flight.left = own.left
                    started.open(writer.log, writer.journal)
                try:
                    yield work
                except SkillOptError:  # also then every call has ended; another error may leave some in flight
                    started.close()
                    raise
                started.close()
        finally:
            started.leave()  # after the executor, whose jobs write to it


@asynccontextmanager
async def _executor(stage: Stage, session: Session, means: Means) -> AsyncIterator[Executor]:
    """The executor of a run, until the block ends."""
    executor = session.world.executor(stage.config, means.stopping, session.warn)
    try:
        yield executor
    finally:
        await executor.aclose()


@asynccontextmanager
async def _shared(stage: Stage, folder: Path, session: Session) -> AsyncIterator[SharedAccount | None]:
    """What the run shares with others, until the block ends."""
    shared = session.world.shared(stage.config, folder)
    try:
        yield shared
    finally:
        if shared is not None:
            await shared.aclose()


def _account(writer: RunWriter, config: RunConfig, stage: Stage, session: Session) -> OwnAccount:
    """The account of a session; what the sessions before it have used is no longer in it."""
    before = spent_before(config, writer.log, writer.journal, stage.lost)
    limits, known = asdict(config.budget), asdict(stage.config.budget)
    return open_account(
        config,
        before,
        clock=session.clock,
        stopping=session.stopping,
        ordered=[name for name in limits if limits[name] != known[name]],
    )


def _wired(
    writer: RunWriter,
    stage: Stage,
    world: OpenWorld,
    session: Session,
    means: Means,
    control: Control,
    executor: Executor,
) -> Running:
    config, evidence = stage.config, RecordedTexts(writer.log, writer.journal)
    records = _records(writer, stage, evidence, control.observer)
    calls = LiveCalls(world.models, records, means, ask_again=stage.ask_again)
    for role, model in world.models.items():
        if isinstance(model, Fronting):
            own_means = evolve(means, at_once={role: stage.config.role(role).concurrency})
            own = LiveCalls({role: model.upstream}, records, own_means, ask_again=stage.ask_again)
            model.route(AgentCalls(own, calls.agent_asks))
    rollouts = RolloutPorts(
        hands=open_hands(stage.config, world.data, executor, os.environ),
        items=world.data.items,
        executor=executor,
        calls=calls,
        untrusted=world.data.splits.untrusted,
        own_skills="skills" in provided(world.models["target"]),
    )
    trainer = Trainer(
        log=writer,
        head=stage.head,
        state=stage.state,
        config=config,
        rollouts=rollouts,
        evidence=evidence,
        control=control,
        ahead=Ahead(config, rollouts, calls, session.ahead_gave_up) if config.train.speculate else None,
    )
    return Running(trainer=trainer, rollouts=rollouts, writer=writer, reached=means.reached)


def _limited(
    stage: Stage, own: OwnAccount | None, models: Mapping[Role, ChatModel], settings: Mapping[str, Json]
) -> None:
    """Gives the session other limits; raises ConfigError for what is none, or cannot be counted."""
    config = _changed(stage, settings)
    check_bounded(config, models)
    change_limits(own, config, settings)


def _changed(stage: Stage, settings: Mapping[str, Json]) -> RunConfig:
    """The run's config with other settings; raises ConfigError for what is none."""
    overrides, started = stage.state.overrides, stage.state.started
    place = Path(stage.config.folder)
    return recorded_config(dict(started.config), place, {**overrides, **settings}, limit_chosen=started.limit_chosen)


def _records(writer: RunWriter, stage: Stage, evidence: RecordedTexts, observer: Observer) -> Records:
    desk = Desk(writer.log.path.parent)
    desk.clear()
    forked = stage.state.forked
    return Records(
        journal=writer.journal,
        recorder=writer,
        texts=writer.log,
        inherited=0 if forked is None else forked.inherited,
        reworded=bool(_releases(writer.log) - {software_version()}),
        repeats=Repeats(writer.journal.read(), _used(writer.log)) if stage.repeats else None,
        seen=observer.called,
        keep=evidence.last.keep,
        leave=desk.leave,
    )


def _releases(log: EventLog) -> frozenset[str]:
    """The releases that have written to a log."""
    writers = (recorded.event for recorded in log.read(types=("RunStarted", "RunResumed", "RunForked")))
    return frozenset(event.software for event in writers if isinstance(event, RunStarted | RunResumed | RunForked))


def _used(log: EventLog) -> frozenset[CallRef]:
    """The calls that rollouts of a log are made of."""
    rollouts = only(RolloutCompleted, log.read(types=("RolloutCompleted",)))
    return frozenset(call for _, event in rollouts for call in event.calls)
