"""`target_backend: python:my_agent.py:answer`: a function of the user's, which gets an AgentTask; async or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.agents.agent import AttemptFailedError, OwnAgent, check_settings
from skillopt_es.adapters.agents.contract import AgentAnswer, read_answer
from skillopt_es.adapters.background import finished, in_background
from skillopt_es.adapters.loading import CannotLoadError, load_function
from skillopt_es.adapters.models.endpoint import refused
from skillopt_es.adapters.models.errors import failure
from skillopt_es.adapters.raised import raised_words
from skillopt_es.ports import AgentTask, CallFailed, ChatModel, ModelSettings, provider


@frozen
class PythonWay:
    """Calls the function, many at a time: a plain one on threads, an async one on a loop that they share."""

    function: Callable[[AgentTask], object]
    name: str
    folder: str
    as_json: bool = False

    @property
    def identity(self) -> str:
        """Which function it is."""
        return f"agent python {self.name}"

    async def answer(self, task: AgentTask) -> AgentAnswer:
        """What the function returns; what it raises is this attempt's crash, unless it raises CallFailed itself."""
        try:
            returned = await in_background(lambda _: self._called(task), seconds=task.deadline_seconds)
        except (TimeoutError, CallFailed):
            raise
        except _RaisedError as error:
            raise AttemptFailedError(failure("crash", str(error))) from error.__cause__
        return read_answer(returned, as_json=self.as_json)

    async def within_reach(self) -> str:
        """Nothing to say: a function is part of the program that has the keys."""
        return ""

    def _called(self, task: AgentTask) -> object:
        try:
            returned = self.function(task)
            # A second longer than its caller waits, who says what is to be said.
            return finished(returned, seconds=task.deadline_seconds + 1) if inspect.isawaitable(returned) else returned
        except CallFailed:
            raise
        except BaseException as error:  # user code may raise anything, sys.exit() and a timeout of its own included
            raise _RaisedError(f"{self.name} raised {raised_words(error, self.folder)}") from error


class _RaisedError(Exception):
    """What the user's function raised, which must not be taken for ours."""


@provider(agent=True)
def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """The agent as configured; raises ConfigError when there is no such function."""
    check_settings(settings)
    assert settings.agent is not None
    name = settings.backend.partition(":")[2]
    module, _, function = name.rpartition(":")
    if not module or not function.isidentifier():
        raise refused(
            settings,
            "backend",
            f" is {settings.backend!r}, but must name a file or a module, and a function in it",
            hint="such as python:my_agent.py:answer",
        )
    try:
        found = load_function(module, function, Path(settings.agent.folder))
    except CannotLoadError as error:
        raise refused(settings, "backend", error.said, hint=error.hint) from error
    return OwnAgent(PythonWay(found, name, settings.agent.folder, settings.agent.json_answers), settings, ())
