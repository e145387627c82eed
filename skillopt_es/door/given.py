"""What a caller hands over as objects: models, an environment or a grader, in place of those that a config names."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, cast

from attrs import evolve, field, frozen

from skillopt_es.config import TRAINING, RunConfig, config_of, load_config, with_overrides
from skillopt_es.door.tasks import KeptTasks, Tasks, kept_below
from skillopt_es.engine.algorithm import Algorithm
from skillopt_es.engine.algorithms import hand_over
from skillopt_es.errors import ConfigError
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import Json, Role
from skillopt_es.ports import (
    HANDED_OVER,
    AgentFunction,
    AnswerFunction,
    ChatModel,
    ChatReply,
    ChatRequest,
    Environment,
    GraderFunction,
)
from skillopt_es.sessions.opening import function_agent, function_model, open_environment
from skillopt_es.sessions.wiring import REAL_WORLD, World

Config = str | os.PathLike[str] | Mapping[str, Json] | RunConfig | None
Settings = Mapping[str, Json] | Sequence[str]
"""Config keys by their dotted names; or texts as `--set` takes them, such as `train.seed=7`."""
Model = ChatModel | AnswerFunction


@frozen
class ChatFunction:
    """
    A function as a target that is asked like a chat model: it gets each `ChatRequest`, with all messages and tools.

    `name` is what the log calls it; by default the function's own name.
    """

    function: AnswerFunction = field()
    name: str = ""

    @function.validator
    def _(self, _: object, function: object) -> None:
        _require(callable(function), "function", function, "a function")

    def __call__(self, request: ChatRequest) -> str | ChatReply | Awaitable[str | ChatReply]:
        """What the function returns."""
        return self.function(request)


Target = ChatModel | ChatFunction | AgentFunction


class Handed(TypedDict, total=False):
    """What each function of the door takes in place of what a config names; None leaves a thing to the config."""

    settings: Settings | None
    tasks: Tasks | None
    target: Target | None
    optimizer: Model | None
    environment: Environment | None
    grader: GraderFunction | None
    judge: Model | None
    algorithm: Algorithm[Any] | None


@frozen(kw_only=True)
class Given:
    """
    What was handed over, checked; `directory` is where tasks are kept.

    A target is an agent: a function that takes an `AgentTask`, or a `ChatModel` or a `ChatFunction`. The optimizer and
    the judge are models: functions that take a `ChatRequest` and return text or a `ChatReply`, or a `ChatModel`. All
    functions may be async. A grader takes the answer and the item (a dict), and returns a bool, a number from 0 to 1,
    or a dict of
    `hard`, `soft` and `note`; it is for `env.name: tasks`. Models and environments are closed when the work ends.
    """

    directory: Path
    settings: Settings | None = None
    tasks: Tasks | None = None
    target: Target | None = None
    optimizer: Model | None = None
    environment: Environment | None = None
    grader: GraderFunction | None = None
    judge: Model | None = None
    algorithm: Algorithm[Any] | None = None
    _kept: KeptTasks | None = field(init=False)

    @_kept.default
    def _(self) -> KeptTasks | None:
        return None if self.tasks is None else kept_below(self.directory, self.tasks)

    def __attrs_post_init__(self) -> None:
        for role, model in self.models().items():
            _require(callable(model) or isinstance(model, ChatModel), role, model, "a ChatModel or a function")
        for name, given in (("environment", self.environment), ("algorithm", self.algorithm)):
            kind: type = Environment if name == "environment" else Algorithm
            _require(given is None or isinstance(given, kind), name, given, f"{_AN[name]} {kind.__name__}")
        _require(self.grader is None or callable(self.grader), "grader", self.grader, "a function")
        if self.tasks is not None and self.environment is not None:
            raise ConfigError("an environment brings its own tasks", hint="pass `environment` or `tasks`, not both")

    def models(self) -> Mapping[Role, Model | Target]:
        """The models that were handed over, by role."""
        named: Mapping[Role, Model | Target | None] = {
            "target": self.target,
            "optimizer": self.optimizer,
            "judge": self.judge,
        }
        return {role: model for role, model in named.items() if model is not None}

    @property
    def has_data(self) -> bool:
        """Whether the tasks of the work were handed over, too."""
        return self.tasks is not None or self.environment is not None

    def texts(self) -> tuple[str, ...]:
        """The settings, and what the config then says of the objects, so that the log tells the truth."""
        found: dict[str, Json] = {}
        if self.algorithm is not None:
            hand_over(self.algorithm)
            found["train.algorithm"] = self.algorithm.name
        for role, model in self.models().items():
            found[f"model.{role}_backend"] = HANDED_OVER
            found[f"model.{role}"] = name_of(model)
        if self.environment is not None:
            found["env.name"] = self.environment.name
        if self.grader is not None:
            found["env.grader"] = f"python:{getattr(self.grader, '__module__', '')}:{_plain_name(self.grader)}"
        return (*settings_texts(self.settings), *settings_texts(found))

    def with_tasks(self, config: RunConfig, asks: Sequence[Role]) -> RunConfig:
        """The config of a new run or an evaluation, which names the file with the tasks that were handed over."""
        if self._kept is None:
            return config
        found = with_overrides(config, settings_texts(self._kept.settings(config.env)), os.environ, asks=asks)
        self._kept.write()
        return found

    def world(self) -> World:
        """The real world with these in their places; whoever uses it closes them with the rest."""
        return evolve(REAL_WORLD, model=self._model, environment=self._environment)

    def _model(self, config: RunConfig, role: Role) -> ChatModel:
        given = self.models().get(role)
        if given is None:
            return REAL_WORLD.model(config, role)
        if isinstance(given, ChatModel):
            return given
        if role == "target" and not isinstance(given, ChatFunction):
            return function_agent(cast(AgentFunction, given), name_of(given), config)
        return function_model(cast(AnswerFunction, given), name_of(given), config, role)

    def _environment(self, config: RunConfig) -> Environment:
        if config.env.executor != "local" and (self.environment is not None or self.grader is not None):
            raise ConfigError(
                f"env.executor is {config.env.executor!r}, and an environment or a grader that is handed over as an "
                "object cannot travel",
                hint="set env.executor: local; or install it as a package and name it in env.name or env.grader",
            )
        if self.environment is None:
            if self._kept is None:
                return open_environment(config, grader=self.grader)
            self._kept.write()
            # A run that is resumed has recorded another place for its tasks; the log has the digests of both.
            return open_environment(evolve(config, env=self._kept.read_by(config.env)), grader=self.grader)
        if self.grader is not None:
            raise ConfigError("an environment grades for itself", hint="hand over `environment` or `grader`, not both")
        return self.environment


_AN = {"environment": "an", "algorithm": "an"}


def _require(right: bool, name: str, given: object, wanted: str) -> None:
    """Raises ConfigError for what cannot be what it was handed over as, before anything begins."""
    if not right:
        raise ConfigError(f"{name} is {given!r:.60}, but must be {wanted}")


def settings_texts(settings: Settings | None) -> tuple[str, ...]:
    """Settings as the texts that `--set` takes."""
    if settings is None:
        return ()
    if not isinstance(settings, Mapping):
        return tuple(settings)
    return tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())


def config_from(config: Config, given: Given, asks: Sequence[Role] = TRAINING) -> RunConfig:
    """The typed config: a file, a mapping as the file would hold, one that was loaded; None for the bundled demo."""
    texts = given.texts()
    if config is None and given.tasks is not None:
        config = {}  # the demo is for its own tasks
    if isinstance(config, RunConfig):
        return given.with_tasks(with_overrides(config, texts, os.environ, asks=asks), asks)
    if isinstance(config, Mapping):
        return given.with_tasks(config_of(dict(config), Path.cwd(), texts, os.environ, asks=asks), asks)
    file = None if config is None else Path(config)
    return given.with_tasks(load_config(file, texts, os.environ, asks=asks), asks)


def stem_of(config: Config, given: Given) -> str:
    """What a run of it is called, before the time."""
    if isinstance(config, Mapping | RunConfig) or (config is None and given.has_data):
        return "run"
    if config is None:
        return "demo"
    file = real_path(config)
    return file.parent.name if file.stem == "config" else file.stem


def name_of(model: Model | Target) -> str:
    """What a model that was handed over is called in the log."""
    if isinstance(model, ChatModel):
        return model.identity
    if isinstance(model, ChatFunction):
        return model.name or name_of(model.function)
    return f"{getattr(model, '__module__', '')}.{_plain_name(model)}".strip(".")


def _plain_name(function: Callable[..., object]) -> str:
    if isinstance(function, partial):
        return _plain_name(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__))
