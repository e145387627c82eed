"""
Adapters opened by their registered names, as a config has them: models, environments, executors, notifiers.

Our own adapters come in through the same door as anybody's: entry points of the installed packages.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from attrs import evolve, fields, frozen

from skillopt_es.adapters.environments.redacted import RedactedEnvironment, RedactedHands, without_secrets
from skillopt_es.adapters.environments.searchqa.environment import gold_of, grade
from skillopt_es.adapters.executors.local import Here, LocalExecutor
from skillopt_es.adapters.models.crashes import policy_of
from skillopt_es.adapters.models.function import FunctionModel
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.config import EnvConfig, RunConfig
from skillopt_es.config.backends import ADAPTERS, BACKEND_NAMES, is_own_agent, kind_of
from skillopt_es.config.dotenv import dotenv_files, named_variables, with_dotenv
from skillopt_es.config.draft import label_of_the_target, place_of, written_as
from skillopt_es.config.values import may_hold_a_secret
from skillopt_es.errors import ConfigError, SettingRefused, first_of
from skillopt_es.events.lock import require_locks
from skillopt_es.events.values import Role
from skillopt_es.ports import (
    HANDED_OVER,
    MODELS,
    AgentFunction,
    AgentSettings,
    AnswerFunction,
    ChatModel,
    DataSettings,
    Environment,
    EnvironmentSettings,
    Executor,
    ExecutorSettings,
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
    TravellingAgent,
    Workplace,
)
from skillopt_es.version import installed_for, software_version

ENVIRONMENTS = "skillopt_es.environments"
EXECUTORS = "skillopt_es.executors"
TASKS = "tasks"

_TRAVELLING = ("command", "python")
_UNNAMED = ("AZURE_CLIENT_SECRET", "OFFICEQA_CUSTOM_SEARCH_AUTH")


def close_memory() -> None:
    """Closes this process's memory and environment to other processes of the same user; Linux only, and not to root."""
    if sys.platform == "linux":
        from skillopt_es.adapters.sandboxes import kernel  # noqa: PLC0415 -- Linux alone has it

        kernel.close_memory()


def provider_of(backend: str) -> Provider[...] | None:
    """What an installed backend says is special about it; nothing for one that says nothing, or is not installed."""
    point = installed_for(MODELS).get(kind_of(backend))
    opener: object = None if point is None else point.load()
    return opener if isinstance(opener, Provider) else None


def _find(group: str, name: str, config: RunConfig, key: str) -> object:
    """The adapter of that name, or the one that the name also stands for."""
    require_locks()  # adapters are for those who write a run, and need much else that only such systems have
    known = installed_for(group)
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
            hint=f"from Python, pass it again, as to `skillopt_es.resume(folder, {role}=…)`; "
            f"a config names a function as model.{role}_backend: python:my_agent.py:answer",
        )
    named = f"model.{written_as(config, role, 'backend')}"
    opener = cast(OpenModel, _find(MODELS, kind_of(own.backend), config, named))
    _refuse_secrets(config, role)
    settings = model_settings(config, role)
    try:
        if own.gateway and is_own_agent(own.backend):
            from skillopt_es.adapters.agents.gateway import with_gateway  # noqa: PLC0415 -- a server, for few runs

            asked = cast(OpenModel, _find(MODELS, own.gateway, config, f"model.{written_as(config, role, 'gateway')}"))
            return with_gateway(opener, asked, own.gateway, settings, environ)
        return opener(settings, environ)
    except SettingRefused as error:  # an adapter knows its settings, but not where they were written
        place, key = place_of(config, role, error.key)
        label = label_of_the_target(config, role) if error.key == "base_url" and not own.base_url.strip() else ""
        hint = error.hint
        if label:
            hint = (
                f"model.backend: {label} is the target's alone and leaves the {role} on Azure: "
                f"export AZURE_OPENAI_ENDPOINT=…, or set model.{role}_backend"
            )
        raise ConfigError(f"{place}{key or error.spelled}{error.said}", hint=hint) from error


def model_settings(config: RunConfig, role: Role) -> ModelSettings:
    """What opens one role's model."""
    own = config.role(role)
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
        json_answers=_grades_json(config.env),
        isolated=own.agent_isolated,
        keys=tuple(str(file.absolute()) for file in dotenv_files(config)),
    )
    if is_own_agent(own.backend) and not own.gateway and written_as(config, role, "api_key_env") == "api_key_env":
        given["api_key_env"] = ""  # a key for both roles is a provider's, which no agent is to see
    return ModelSettings(role=role, seed=config.train.seed, roles=len(config.roles), agent=agent, **given)


def _grades_json(env: EnvConfig) -> bool:
    """Whether answers are graded as JSON, perhaps by one grader of several."""
    given = env.options.get("grader")
    parts = given if isinstance(given, list) else [given]
    named = [part.get("grader") if isinstance(part, dict) else part for part in parts]
    return env.name == TASKS and "json" in named


def travelling_agent(config: RunConfig) -> TravellingAgent | None:
    """
    The target's agent, where it can work wherever an attempt is made: a program or a function of the user's own.

    One at an address is where it is, and a coding agent stays beside the writer, which hides the answers from it.
    """
    own = config.target_model
    kind = kind_of(own.backend)
    if not is_own_agent(own.backend) or kind not in _TRAVELLING:
        return None
    # Keys and limits are the writer's, and so is it to try again.
    own_settings = model_settings(config, "target")
    settings = evolve(own_settings, api_key_env="", requests_per_minute=0, tokens_per_minute=0, attempts=1)
    return TravellingAgent(kind=kind, settings=settings, gateway=bool(own.gateway))


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


def function_model(function: AnswerFunction, name: str, config: RunConfig, role: Role) -> ChatModel:
    """A Python function as one role's model, under the name that the log has for it."""
    seconds, retry = config.role(role).timeout_seconds, policy_of(model_settings(config, role))
    return FunctionModel(function=function, name=name, timeout_seconds=seconds, retry=retry)


def function_agent(function: AgentFunction, name: str, config: RunConfig) -> ChatModel:
    """A Python function as the target: an agent like one that a config names, under the name that the log has."""
    from skillopt_es.adapters.agents.agent import OwnAgent  # noqa: PLC0415 -- for few runs
    from skillopt_es.adapters.agents.python_code import PythonWay  # noqa: PLC0415

    settings = model_settings(config, "target")
    assert settings.agent is not None
    return OwnAgent(PythonWay(function, name, config.folder, settings.agent.json_answers), settings, ())


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
        raise first_of(_placed(config, each) for each in (error, *error.others)) from error


def _placed(config: RunConfig, mistake: ConfigError) -> ConfigError:
    """The same with the place where the key was written."""
    place = config.place(mistake.key) if isinstance(mistake, SettingRefused) else ""
    return ConfigError(place + mistake.message, hint=mistake.hint)


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
    keys = {config.role(role).api_key_env for role in config.roles}
    agents = {*config.target_model.agent_variables} - keys if travelling_agent(config) is not None else set()
    settings = ExecutorSettings(
        stopping=stopping,
        workers=config.env.workers,
        options=options,
        secrets=frozenset(named_variables(config)) - agents,
        warn=warn,
    )
    try:
        return opener(settings)
    except SettingRefused as error:  # an executor knows its keys, but not where they were written
        raise ConfigError(f"{config.place(f'{name}.{error.key}')}{name}.{error.message}", hint=error.hint) from error


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
        agent=travelling_agent(config),
    )
    hands, secrets = executor.hands(place), known_secrets(config, environ)
    return RedactedHands(hands, Redactor(secrets)) if secrets and not isinstance(hands, Here) else hands


def open_notifier(how: str, environ: Mapping[str, str]) -> Notifier:
    """The way to tell somebody outside that `--notify` names; raises ConfigError."""
    from skillopt_es.adapters.notifying import open_notifier as opened  # noqa: PLC0415 -- few runs tell anybody

    return opened(how, environ)
