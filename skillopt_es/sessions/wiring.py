"""
The world that a config names, opened by registered names and wired to a trainer; the only place that knows adapters.

Our own adapters come in through the same door as anybody's: entry points of the installed packages. Training,
evaluating, grading again and examining go through here, so what is checked before anything is paid for, what is hidden,
counted and closed, is the same for all of them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

from attrs import field, fields, frozen

from skillopt_es.adapters.environments.redacted import RedactedEnvironment, RedactedHands, without_secrets
from skillopt_es.adapters.environments.searchqa.environment import gold_of, grade
from skillopt_es.adapters.executors.local import Here, LocalExecutor
from skillopt_es.adapters.models.function import FunctionModel
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.config import EnvConfig, RunConfig, recorded_config
from skillopt_es.config.backends import ADAPTERS, BACKEND_NAMES, is_own_agent, kind_of
from skillopt_es.config.dotenv import named_variables, with_dotenv
from skillopt_es.config.draft import place_of, written_as
from skillopt_es.config.values import may_hold_a_secret
from skillopt_es.engine.agent_calls import AgentCalls
from skillopt_es.engine.ahead import Ahead
from skillopt_es.engine.budget import Purse, Reached
from skillopt_es.engine.call_records import Repeats
from skillopt_es.engine.calls import LiveCalls
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.loop import Observer, Ports, Trainer, Work
from skillopt_es.engine.rollout import RecordedTexts, RolloutPorts
from skillopt_es.engine.tasks import RunData
from skillopt_es.errors import ConfigError, SettingRefused
from skillopt_es.events.catalog import Event, RolloutCompleted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.journal import CallRow
from skillopt_es.events.lock import require_locks
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import CallRef, Json, LostCall, Role, SkillTree
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import (
    HANDED_OVER,
    MODELS,
    AgentSettings,
    AnswerFunction,
    ChatModel,
    ChecksFirst,
    DataSettings,
    Environment,
    EnvironmentSettings,
    Executor,
    ExecutorSettings,
    Fronting,
    GraderFunction,
    Hands,
    Item,
    ModelSettings,
    Notifier,
    OpenEnvironment,
    OpenExecutor,
    OpenModel,
    Provider,
    RoleSettings,
    Splits,
    Workplace,
    judge_calls,
    provided,
    required,
)
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.inbox import Inbox
from skillopt_es.sessions.accounts import StartedCalls, change_limits, check_bounded, left_of, open_purse, spent_before
from skillopt_es.sessions.handoff import Desk
from skillopt_es.sessions.hiding import check_walls, hide_answers
from skillopt_es.sessions.sharing import SharedPurse, open_shared
from skillopt_es.sessions.skills import check_opening
from skillopt_es.version import software_version

ENVIRONMENTS = "skillopt_es.environments"
EXECUTORS = "skillopt_es.executors"
TASKS = "tasks"

_UNNAMED = ("AZURE_CLIENT_SECRET", "OFFICEQA_CUSTOM_SEARCH_AUTH")


def registered(group: str) -> dict[str, EntryPoint]:
    """The adapters of a kind that are installed, by name."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def provider_of(backend: str) -> Provider[...] | None:
    """What an installed backend says is special about it; nothing for one that says nothing, or is not installed."""
    point = registered(MODELS).get(kind_of(backend))
    opener: object = None if point is None else point.load()
    return opener if isinstance(opener, Provider) else None


def _find(group: str, name: str, config: RunConfig, key: str) -> object:
    """The adapter of that name, or the one that the name also stands for."""
    require_locks()  # adapters are for those who write a run, and need much else that only such systems have
    known = registered(group)
    name = name if name in known else BACKEND_NAMES.get(name, name)
    if name not in known and name in ADAPTERS:
        why, instead = ADAPTERS[name]
        raise ConfigError(f"{config.place(key)}{key} is {name!r}, but {why}", hint=instead)
    if not name.strip():
        raise ConfigError(f"{config.place(key)}{key} is not set", hint=f"installed: {', '.join(known)}")
    if name not in known:
        others = BACKEND_NAMES if group == MODELS else ()
        close = difflib.get_close_matches(name, [*known, *others], n=1)
        hint = f"did you mean {close[0]}?" if close else f"installed: {', '.join(known)}"
        raise ConfigError(f"{config.place(key)}{key} is {name!r}, but no such adapter is installed", hint=hint)
    return known[name].load()


def holds_answer(environment: str) -> Callable[[str, Sequence[str]], bool] | None:
    """For SearchQA whether an answer and an accepted one contain each other; no other benchmark asks."""
    if environment != "searchqa":
        return None
    return lambda prediction, answers: grade(prediction, [gold_of(answer) for answer in answers]).sub_em


def open_model(config: RunConfig, role: Role, environ: Mapping[str, str]) -> ChatModel:
    """One role's model; raises ConfigError for a setting it cannot work with."""
    own = config.role(role)
    environ = with_dotenv(config, environ)
    if own.backend == HANDED_OVER:
        raise ConfigError(
            f"the {role} of this run is a Python function, {own.model}: a log has its name alone",
            hint=f"hand it over again, from Python: skillopt_es.resume(folder, {role}=…); "
            f"a config names a function as model.{role}_backend: python:my_agent.py:answer",
        )
    named = f"model.{written_as(config, role, 'backend')}"
    opener = cast(OpenModel, _find(MODELS, kind_of(own.backend), config, named))
    _refuse_secrets(config, role)
    given = {key.name: getattr(own, key.name) for key in fields(RoleSettings)}
    agent = AgentSettings(
        command=own.agent_command,
        access=own.agent_access,
        network=own.agent_network,
        env=own.agent_variables,
        processes=own.agent_processes,
        web_search=own.agent_web_search,
        thinking_tokens=own.agent_thinking_tokens,
        argv=own.argv,
        url=own.url,
        folder=config.folder,
    )
    if is_own_agent(own.backend) and not own.gateway and written_as(config, role, "api_key_env") == "api_key_env":
        given["api_key_env"] = ""  # a key for both roles is a provider's, which no agent is to see
    settings = ModelSettings(role=role, seed=config.train.seed, agent=agent, **given)
    try:
        if own.gateway and is_own_agent(own.backend):
            from skillopt_es.adapters.agents.gateway import with_gateway  # noqa: PLC0415 -- a server, for few runs

            asked = cast(OpenModel, _find(MODELS, own.gateway, config, f"model.{written_as(config, role, 'gateway')}"))
            return with_gateway(opener, asked, own.gateway, settings, environ)
        return opener(settings, environ)
    except SettingRefused as error:  # an adapter knows its settings, but not where they were written
        place, key = place_of(config, role, error.key)
        raise ConfigError(f"{place}{key or error.spelled}{error.said}", hint=error.hint) from error


def _refuse_secrets(config: RunConfig, role: Role) -> None:
    """An address is recorded and shown, so nothing that could be a key may be part of it."""
    for setting in ("base_url", "url"):
        if may_hold_a_secret(getattr(config.role(role), setting)):
            key = written_as(config, role, setting)
            raise ConfigError(
                f"{config.place(f'model.{key}')}model.{key} holds credentials, a query (?) or a fragment (#), "
                "so it is not shown",
                hint="leave these out, and name the environment variable that holds the key in model.api_key_env",
            )


def known_secrets(config: RunConfig, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values of all variables that the config names because they hold a key, or that are read without that."""
    environ = with_dotenv(config, environ)
    named = list(named_variables(config))
    named += [str(value) for key, value in config.env.options.items() if key.endswith("_env")]
    values = (environ.get(name, "").strip() for name in (*named, *_UNNAMED))
    return tuple(dict.fromkeys(value for value in values if value))


def function_model(function: AnswerFunction, name: str, timeout_seconds: float) -> ChatModel:
    """A Python function as a model, under the name that the log has for it."""
    return FunctionModel(function=function, name=name, timeout_seconds=timeout_seconds)


def open_environment(
    config: RunConfig, environ: Mapping[str, str] = os.environ, grader: GraderFunction | None = None
) -> Environment:
    """
    The environment of a run, with its secrets taken out of all it says; raises ConfigError for an unknown option.

    A `grader` that is handed over grades the user's own tasks, in place of the one that the config names.
    """
    secrets = known_secrets(config, environ)
    if not secrets:
        return _environment(config, grader)
    clean = Redactor(secrets)
    with without_secrets(clean):
        return RedactedEnvironment(_environment(config, grader), clean)


def _environment(config: RunConfig, grader: GraderFunction | None) -> Environment:
    env = config.env
    opener = cast(OpenEnvironment, _find(ENVIRONMENTS, env.name, config, "env.name"))
    if grader is not None:
        if env.name != TASKS:
            raise ConfigError(
                f"env.name is {env.name!r}, which grades for itself", hint=f"a grader is for env.name: {TASKS}"
            )
        from skillopt_es.adapters.environments.tasks import open_graded_by  # noqa: PLC0415 -- needs fcntl

        opener = partial(open_graded_by, grader)
    try:
        return opener(environment_settings(config))
    except SettingRefused as error:  # an environment knows its keys, but not where they were written
        raise ConfigError(config.place(error.key) + error.message, hint=error.hint) from error


def environment_settings(config: RunConfig) -> EnvironmentSettings:
    """What opens the environment of a run, in this process or in another."""
    env = config.env
    data = DataSettings(
        split_mode=env.split_mode,
        split_ratio=env.split_ratio,
        split_seed=env.split_seed,
        split_field=env.split_field,
        split_dir=str(config.path(env.split_dir)) if env.split_dir else "",
        data_path=str(config.path(env.data_path)) if env.data_path else "",
        limit=env.limit,
    )
    return EnvironmentSettings(
        name=env.name,
        folder=config.folder,
        data=data,
        timeout_seconds=env.exec_timeout,
        max_completion_tokens=env.max_completion_tokens,
        options=env.options,
        shared_keys=tuple(key.name for key in fields(EnvConfig) if key.name != "options"),
    )


def open_executor(
    config: RunConfig, stopping: Callable[[], bool], warn: Callable[[str], None] = lambda message: None
) -> Executor:
    """The executor of a run, which begins nothing more once the session is stopping."""
    name = config.env.executor
    opener = cast(OpenExecutor, _find(EXECUTORS, name, config, "env.executor"))
    options = config.resolved.get(name, {})
    assert isinstance(options, dict)
    settings = ExecutorSettings(
        stopping=stopping,
        workers=config.env.workers,
        options=options,
        secrets=frozenset(named_variables(config)),
        warn=warn,
    )
    try:
        return opener(settings)
    except SettingRefused as error:  # an executor knows its keys, but not where they were written
        raise ConfigError(f"{config.place(f'{name}.{error.key}')}{name}.{error.message}", hint=error.hint) from error


def local_executor(stopping: Callable[[], bool] = lambda: False) -> Executor:
    """The executor of this process, for what asks no model."""
    return LocalExecutor(stopping)


def open_hands(config: RunConfig, data: OpenData, executor: Executor, environ: Mapping[str, str]) -> Hands:
    """Who makes a run's attempts; what comes from elsewhere loses the run's secrets here, for nobody has them there."""
    place = Workplace(
        environment=data.environment,
        settings=environment_settings(config),
        digests=data.splits.digests,
        software=software_version(),
    )
    hands, secrets = executor.hands(place), known_secrets(config, environ)
    return RedactedHands(hands, Redactor(secrets)) if secrets and not isinstance(hands, Here) else hands


def open_notifier(how: str, environ: Mapping[str, str]) -> Notifier:
    """The way to tell somebody outside that `--notify` names; raises ConfigError."""
    from skillopt_es.adapters.notifying import open_notifier as opened  # noqa: PLC0415 -- few runs tell anybody

    return opened(how, environ)


@frozen
class World:
    """How a session reaches everything outside; tests put their own in its place."""

    model: Callable[[RunConfig, Role], ChatModel]
    environment: Callable[[RunConfig], Environment]
    executor: Callable[[RunConfig, Callable[[], bool], Callable[[str], None]], Executor] = open_executor
    shared: Callable[[RunConfig, Path], SharedPurse | None] = lambda config, folder: None


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
    folder = writer.log.path.parent
    started = StartedCalls(folder)
    purse = _purse(writer, stage, started, session) if stage.pays else None
    with _shared(stage, folder, session) as shared:
        bounds = _Bounds(purse, shared, Inbox(folder, session.clock), session)
        async with _executor(stage, session, bounds) as executor:
            work = _wired(writer, stage, world, session, bounds, executor)
            # Nobody is asked before it is on disk that the run has begun.
            if stage.opening:
                await work.trainer.append(stage.opening)
            await work.trainer.settled()
            if purse is not None:
                session.in_flight.left = partial(left_of, purse)
                started.open(writer.log, writer.journal)
            try:
                yield work
            except SkillOptError:  # also then every call has come to its end; another error may leave some on the way
                started.close()
                raise
            started.close()


@frozen
class _Bounds:
    """What ends a session before its run does: what may be used, its own and what it shares, and who says so."""

    own: Purse | None
    shared: SharedPurse | None
    orders: Inbox
    session: Session

    def reached(self) -> Reached | None:
        """Why nothing is left of what may be used; None while there is."""
        return next((each.reached for each in (self.own, self.shared) if each is not None and each.reached), None)

    def stopping(self) -> bool:
        """Whether nothing more begins."""
        return self.session.stopping() or self.reached() is not None or self.orders.pausing()


@asynccontextmanager
async def _executor(stage: Stage, session: Session, bounds: _Bounds) -> AsyncIterator[Executor]:
    """The executor of a run, until the block ends."""
    executor = session.world.executor(stage.run.config, bounds.stopping, session.warn)
    try:
        yield executor
    finally:
        await executor.aclose()


@contextmanager
def _shared(stage: Stage, folder: Path, session: Session) -> Iterator[SharedPurse | None]:
    """What the run shares with others, until the block ends."""
    shared = session.world.shared(stage.run.config, folder)
    try:
        yield shared
    finally:
        if shared is not None:
            shared.close()


def _purse(writer: RunWriter, stage: Stage, started: StartedCalls, session: Session) -> Purse:
    """The purse of a session; what the sessions before it have used is no longer in it."""
    config = stage.run.config
    before = spent_before(config, writer.log, writer.journal, stage.lost)
    return open_purse(config, before, clock=session.clock, stopping=session.stopping, note=started.note)


def _wired(
    writer: RunWriter, stage: Stage, world: OpenWorld, session: Session, bounds: _Bounds, executor: Executor
) -> Work:
    run, evidence = stage.run, RecordedTexts(writer.log, writer.journal)
    calls = _calls(writer, stage, world.models, stage.run.workers, session, bounds, evidence)
    for role, model in world.models.items():
        if isinstance(model, Fronting):
            upstream = {role: model.upstream}
            at_once = {role: stage.run.config.role(role).concurrency}
            own = _calls(writer, stage, upstream, at_once, session, bounds, evidence)
            model.route(AgentCalls(own))
    rollouts = RolloutPorts(
        hands=open_hands(stage.run.config, world.data, executor, os.environ),
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
        run=run,
        ports=Ports(calls=calls, evidence=evidence, executor=executor, rollouts=rollouts),
        observers=session.observers,
        # The session's own: a budget that is reached is a pause, and no interruption.
        stopping=session.stopping,
        reached=bounds.reached,
        orders=bounds.orders,
        limited=partial(_limited, stage, bounds.own),
        ahead=Ahead(run, rollouts, calls, session.ahead_gave_up) if run.config.train.speculate else None,
    )
    return Work(trainer=trainer, rollouts=rollouts, writer=writer, reached=bounds.reached)


def _limited(stage: Stage, purse: Purse | None, settings: Mapping[str, Json]) -> None:
    """Gives the session other limits; raises ConfigError for what is none, or cannot be counted."""
    overrides = {**stage.state.overrides, **settings}
    config = recorded_config(dict(stage.run.started.config), Path(stage.run.config.folder), overrides)
    change_limits(purse, config, settings)


def _calls(
    writer: RunWriter,
    stage: Stage,
    models: Mapping[Role, ChatModel],
    workers: Mapping[Role, int],
    session: Session,
    bounds: _Bounds,
    evidence: RecordedTexts,
) -> LiveCalls:
    def seen(row: CallRow) -> None:
        for observer in session.observers:
            observer.called(row)

    desk = Desk(writer.log.path.parent)
    desk.clear()
    forked = stage.state.forked
    return LiveCalls(
        models,
        writer.journal,
        writer,
        writer.log,
        workers=workers,
        ask_again=stage.ask_again,
        inherited=0 if forked is None else forked.inherited,
        repeats=Repeats(writer.journal.read(), _used(writer.log)) if stage.repeats else None,
        in_flight=session.in_flight,
        stopping=bounds.stopping,
        seen=seen,
        keep=evidence.keep,
        leave=desk.leave,
        purse=bounds.own,
        shared=bounds.shared,
    )


def _used(log: EventLog) -> frozenset[CallRef]:
    """The calls that rollouts of a log are made of."""
    rollouts = (recorded.event for recorded in log.read(types=("RolloutCompleted",)))
    return frozenset(call for event in rollouts if isinstance(event, RolloutCompleted) for call in event.calls)
