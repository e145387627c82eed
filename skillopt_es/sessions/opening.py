"""
One wiring of a session: the world that a config names, open for as long as it is used, and a trainer over a run's log.

Training, evaluating, grading again and examining go through here, so what is checked before anything is paid for, what
is hidden, counted and closed, is the same for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from attrs import field, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.ahead import Ahead
from skillopt_es.engine.budget import Reached
from skillopt_es.engine.call_records import Repeats
from skillopt_es.engine.calls import LiveCalls
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.loop import Observer, Trainer, Work
from skillopt_es.engine.perform import Ports
from skillopt_es.engine.purse import Purse
from skillopt_es.engine.rollout import RolloutPorts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import RecordedTexts
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import Event, RolloutCompleted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.journal import CallRow
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import CallRef, LostCall, Role, SkillTree, digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatModel, Environment, Item, Splits, provided, required
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.accounts import StartedCalls, check_bounded, open_purse, spent_before
from skillopt_es.sessions.handoff import Desk
from skillopt_es.sessions.hiding import check_walls, hide_answers
from skillopt_es.sessions.skills import check_opening
from skillopt_es.sessions.wiring import REAL_WORLD, World

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
    stopping: Callable[[], bool] = field(default=lambda: False)
    in_flight: InFlight = field(factory=InFlight)
    ask_again: bool = False
    accept_loss: bool = False
    overrides: Sequence[str] = ()


# --- the world -----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class OpenData:
    """A config's environment, and the items that it has loaded."""

    config: RunConfig
    environment: Environment
    splits: Splits

    @property
    def items(self) -> Mapping[str, Item]:
        """Every item by its id."""
        splits = self.splits
        return {item.id: item for split in (splits.train, splits.val, splits.test) for item in split}


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
    try:
        for role in roles:
            models[role] = session.world.model(data.config, role)
        check_target(models["target"], data.environment)
        check_opening(skill, models["target"], data.environment)
        check_bounded(data.config, models)
        check_walls(data.environment, data.config, folder)
        notes = await hide_answers(models, data.config, folder, warn=session.warn)
        yield OpenWorld(data=data, models=models, notes=notes)
    finally:
        # One model may serve both roles.
        for model in dict.fromkeys(models.values()):
            await model.aclose()


def check_target(model: ChatModel, environment: Environment) -> None:
    """Raises ConfigError when the target cannot do what the environment needs."""
    missing = sorted(required(environment) - provided(model))
    if missing:
        raise ConfigError(
            f"env.name is {environment.name!r}, which needs {' and '.join(missing)}, "
            f"but the target model ({model.identity}) does not offer that",
            hint="choose another model.target_backend, or another env.name",
        )


# --- a run's log ---------------------------------------------------------------------------------------------------


def open_or_create(folder: Path, session: Session) -> RunWriter:
    """The writer of the log in a folder, which is created where there is none."""
    if (folder / LOG_FILE).exists():
        return RunWriter.open(folder, now=session.now, accept_loss=session.accept_loss)
    run_id = digest_of(f"{folder.name} {session.now().isoformat()}".encode())[:16]
    return RunWriter.create(folder, run_id=run_id, name=folder.name, now=session.now)


@asynccontextmanager
async def closing(writer: RunWriter) -> AsyncIterator[RunWriter]:
    """The writer, closed when the block ends."""
    try:
        yield writer
    finally:
        # It waits for the disk, which must not hold up the loop.
        await asyncio.to_thread(writer.close)


@frozen(kw_only=True)
class Stage:
    """
    Where a session takes up a run: the state that its log ends in, and the events that it begins with.

    `lost` are the calls that these events say were in flight when the one before was killed. `pays` is whether calls
    count against a budget; `repeats`, whether a request that was answered elsewhere in the run may be answered by that.
    """

    run: RunData
    state: AnyState
    head: int
    opening: Sequence[Event]
    lost: tuple[LostCall, ...] = ()
    pays: bool
    repeats: bool
    ask_again: bool


@asynccontextmanager
async def open_work(writer: RunWriter, stage: Stage, world: OpenWorld, session: Session) -> AsyncIterator[Work]:
    """A trainer whose opening events are durable: whatever is paid for belongs to a run that can be resumed."""
    started = StartedCalls(writer.log.path.parent)
    purse = _purse(writer, stage, started, session) if stage.pays else None
    work = _wired(writer, stage, world, session, purse)
    if stage.opening:
        await work.trainer.append(stage.opening)
    await work.trainer.settled()
    if purse is not None:
        started.open(writer.log, writer.journal)
    try:
        yield work
    except SkillOptError:  # also then every call has come to its end; another error may have left some in flight
        started.close()
        raise
    started.close()


def _purse(writer: RunWriter, stage: Stage, started: StartedCalls, session: Session) -> Purse:
    """The purse of a session; what the sessions before it have used is no longer in it."""
    config = stage.run.config
    before = spent_before(config, writer.log, writer.journal, stage.lost)
    return open_purse(config, before, clock=session.clock, stopping=session.stopping, note=started.note)


def _wired(writer: RunWriter, stage: Stage, world: OpenWorld, session: Session, purse: Purse | None) -> Work:
    run, evidence = stage.run, RecordedTexts(writer.log, writer.journal)

    def reached() -> Reached | None:
        return None if purse is None else purse.reached

    def stopping() -> bool:
        return session.stopping() or reached() is not None

    calls = _calls(writer, stage, world, session, purse, evidence, stopping)
    executor = session.world.executor(stopping)
    rollouts = RolloutPorts(
        environment=world.data.environment,
        items=world.data.items,
        executor=executor,
        calls=calls,
        untrusted=world.data.splits.untrusted,
    )
    trainer = Trainer(
        log=writer,
        head=stage.head,
        state=stage.state,
        run=run,
        ports=Ports(calls=calls, evidence=evidence, executor=executor, rollouts=rollouts),
        observers=session.observers,
        # The session's own: a budget that is reached is a pause, and no interruption.
        stopping=session.stopping,
        reached=reached,
        ahead=Ahead(run, rollouts, calls, session.ahead_gave_up) if run.config.train.speculate else None,
    )
    return Work(trainer=trainer, rollouts=rollouts, writer=writer, reached=reached)


def _calls(
    writer: RunWriter,
    stage: Stage,
    world: OpenWorld,
    session: Session,
    purse: Purse | None,
    evidence: RecordedTexts,
    stopping: Callable[[], bool],
) -> LiveCalls:
    def seen(row: CallRow) -> None:
        for observer in session.observers:
            observer.called(row)

    desk = Desk(writer.log.path.parent)
    desk.clear()
    forked = stage.state.forked
    return LiveCalls(
        world.models,
        writer.journal,
        writer,
        writer.log,
        workers=stage.run.workers,
        ask_again=stage.ask_again,
        inherited=0 if forked is None else forked.inherited,
        repeats=Repeats(writer.journal.read(), _used(writer.log)) if stage.repeats else None,
        in_flight=session.in_flight,
        stopping=stopping,
        seen=seen,
        keep=evidence.keep,
        leave=desk.leave,
        purse=purse,
    )


def _used(log: EventLog) -> frozenset[CallRef]:
    """The calls that rollouts of a log are made of."""
    rollouts = (recorded.event for recorded in log.read(types=("RolloutCompleted",)))
    return frozenset(call for event in rollouts if isinstance(event, RolloutCompleted) for call in event.calls)
