"""What a caller hands over as objects: models, an environment or a grader, in place of those that a config names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from skillopt_es.config import RunConfig, config_of, load_config, with_overrides
from skillopt_es.engine.programs import Program, hand_over
from skillopt_es.errors import ConfigError
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import Json, Role
from skillopt_es.ports import HANDED_OVER, AnswerFunction, ChatModel, Environment, GraderFunction
from skillopt_es.sessions.opening import function_model, open_environment
from skillopt_es.sessions.wiring import REAL_WORLD, World

Config = str | os.PathLike[str] | Mapping[str, Json] | RunConfig | None
Settings = Mapping[str, Json] | Sequence[str]
"""Config keys by their dotted names; or texts as `--set` takes them, such as `train.seed=7`."""
Model = ChatModel | AnswerFunction


@frozen(kw_only=True)
class Given:
    """
    Objects in place of what a config names; None leaves a thing to the config.

    A model is a `ChatModel`, or a function that takes a `ChatRequest` and returns text or a `ChatReply`, async or not.
    A grader takes the answer and the item (a dict), and returns a bool, a number from 0 to 1, or a dict of `hard`,
    `soft` and `note`; it is for `env.name: tasks`. Models and environments are closed when the work ends.
    """

    target: Model | None = None
    optimizer: Model | None = None
    environment: Environment | None = None
    grader: GraderFunction | None = None
    judge: Model | None = None
    program: Program[Any] | None = None

    def __attrs_post_init__(self) -> None:
        for role, model in self.models().items():
            _require(callable(model) or isinstance(model, ChatModel), role, model, "a ChatModel or a function")
        for name, given in (("environment", self.environment), ("program", self.program)):
            kind: type = Environment if name == "environment" else Program
            _require(given is None or isinstance(given, kind), name, given, f"{_AN[name]} {kind.__name__}")
        _require(self.grader is None or callable(self.grader), "grader", self.grader, "a function")

    def models(self) -> Mapping[Role, Model]:
        """The models that were handed over, by role."""
        named: Mapping[Role, Model | None] = {"target": self.target, "optimizer": self.optimizer, "judge": self.judge}
        return {role: model for role, model in named.items() if model is not None}

    def overrides(self) -> tuple[str, ...]:
        """What the config then says of them, so that the log tells the truth."""
        found = {}
        if self.program is not None:
            hand_over(self.program)
            found["train.program"] = self.program.name
        for role, model in self.models().items():
            found[f"model.{role}_backend"] = HANDED_OVER
            found[f"model.{role}"] = name_of(model)
        if self.environment is not None:
            found["env.name"] = self.environment.name
        if self.grader is not None:
            found["env.grader"] = f"python:{getattr(self.grader, '__module__', '')}:{_plain_name(self.grader)}"
        return settings_texts(found)

    def world(self) -> World:
        """The real world with these in their places; whoever uses it closes them with the rest."""
        return evolve(REAL_WORLD, model=self._model, environment=self._environment)

    def _model(self, config: RunConfig, role: Role) -> ChatModel:
        given = self.models().get(role)
        if given is None:
            return REAL_WORLD.model(config, role)
        if isinstance(given, ChatModel):
            return given
        return function_model(given, name_of(given), config, role)

    def _environment(self, config: RunConfig) -> Environment:
        if config.env.executor != "local" and (self.environment is not None or self.grader is not None):
            raise ConfigError(
                f"env.executor is {config.env.executor!r}, and an environment or a grader that is handed over as an "
                "object cannot travel",
                hint="set env.executor: local; or install it as a package and name it in env.name or env.grader",
            )
        if self.environment is None:
            return open_environment(config, grader=self.grader)
        if self.grader is not None:
            raise ConfigError("an environment grades for itself", hint="hand over `environment` or `grader`, not both")
        return self.environment


_AN = {"environment": "an", "program": "a"}


def _require(right: bool, name: str, given: object, wanted: str) -> None:
    """Raises ConfigError for what cannot be what it was handed over as, before anything begins."""
    if not right:
        raise ConfigError(f"{name} is {given!r:.60}, but must be {wanted}")


def settings_texts(settings: Settings) -> tuple[str, ...]:
    """Settings as the texts that `--set` takes."""
    if not isinstance(settings, Mapping):
        return tuple(settings)
    return tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())


def config_from(config: Config, settings: Settings, given: Given) -> RunConfig:
    """The typed config: a file, a mapping as the file would hold, one that was loaded; None for the bundled demo."""
    texts = (*settings_texts(settings), *given.overrides())
    if isinstance(config, RunConfig):
        return with_overrides(config, texts, os.environ)
    if isinstance(config, Mapping):
        return config_of(dict(config), Path.cwd(), texts, os.environ)
    return load_config(None if config is None else Path(config), texts, os.environ)


def stem_of(config: Config) -> str:
    """What a run of it is called, before the time."""
    if isinstance(config, Mapping | RunConfig):
        return "run"
    if config is None:
        return "demo"
    file = real_path(config)
    return file.parent.name if file.stem == "config" else file.stem


def name_of(model: Model) -> str:
    """What a model that was handed over is called in the log."""
    if isinstance(model, ChatModel):
        return model.identity
    return f"{getattr(model, '__module__', '')}.{_plain_name(model)}".strip(".")


def _plain_name(function: Callable[..., object]) -> str:
    if isinstance(function, partial):
        return _plain_name(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__))
