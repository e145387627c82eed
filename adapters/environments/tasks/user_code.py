"""A user's Python function as a grader; it runs in this process, with its rights."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.background import finished, in_background
from skillopt_es.adapters.environments.tasks.options import GivenCode, PythonCode
from skillopt_es.adapters.environments.tasks.verdicts import GraderError, Judge, Verdict, verdict_of
from skillopt_es.adapters.loading import CannotLoadError, load_function
from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import Json
from skillopt_es.ports import GraderFunction

Fields = Mapping[str, Json]


@frozen
class _PythonJudge:
    function: GraderFunction
    fields: Fields
    timeout: float
    folder: Path

    async def __call__(self, answer: str) -> Verdict:
        """What the user's function says; it gets a copy of the item to play with."""
        try:
            return await in_background(lambda _: self._call(answer), seconds=self.timeout)
        except TimeoutError:
            raise GraderError(f"the grader took longer than {self.timeout:g} seconds") from None

    def _call(self, answer: str) -> Verdict:
        try:
            graded = self.function(answer, copy.deepcopy(dict(self.fields)))
            # A second longer than its caller waits, who says what is to be said.
            return verdict_of(finished(graded, seconds=self.timeout + 1) if isinstance(graded, Awaitable) else graded)
        except GraderError:
            raise
        except BaseException as error:  # user code may raise anything, sys.exit() included
            said = f"{type(error).__name__}: {error}".replace(str(self.folder), ".")
            raise GraderError(f"the grader raised {said[:500]}") from error


def python_judges(code: PythonCode | GivenCode, folder: Path, timeout: float) -> Callable[[Fields], Judge]:
    """Makes the judge of an item from its fields; raises ConfigError when the function cannot be found."""
    function = code.function if isinstance(code, GivenCode) else _function(code, folder)
    return lambda fields: _PythonJudge(function, fields, timeout, folder)


def _function(code: PythonCode, folder: Path) -> GraderFunction:
    try:
        return load_function(code.module, code.function, folder)
    except CannotLoadError as error:
        raise SettingRefused("env.grader", error.said, hint=error.hint) from error
