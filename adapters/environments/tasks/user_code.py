"""A user's Python function as a grader; it runs in this process, with its rights."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from inspect import Parameter, signature
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.background import finished, in_background
from skillopt_es.adapters.environments.tasks.options import GivenCode, PythonCode
from skillopt_es.adapters.environments.tasks.verdicts import (
    Attempt,
    Grader,
    GraderError,
    Verdict,
    row_of,
    verdict_of,
)
from skillopt_es.adapters.loading import CannotLoadError, load_function
from skillopt_es.adapters.raised import raised_words
from skillopt_es.errors import SettingRefused
from skillopt_es.events.values import Json
from skillopt_es.ports import GraderFunction

Fields = Mapping[str, Json]
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@frozen
class _PythonGrader:
    function: Callable[..., object]
    takes_row: bool
    fields: Fields
    timeout: float
    folder: Path

    async def __call__(self, attempt: Attempt) -> Verdict:
        """What the user's function says; it gets a copy of the item to play with."""
        try:
            return await in_background(lambda _: self._call(attempt), seconds=self.timeout)
        except TimeoutError:
            raise GraderError(f"the grader took longer than {self.timeout:g} seconds") from None

    def _call(self, attempt: Attempt) -> Verdict:
        try:
            if self.takes_row:
                graded = self.function(row_of(self.fields, attempt))
            else:
                cut = {"truncated": True} if attempt.truncated else {}
                graded = self.function(attempt.answer, {**copy.deepcopy(dict(self.fields)), **cut})
            # A second longer than its caller waits, who says what is to be said.
            return verdict_of(finished(graded, seconds=self.timeout + 1) if isinstance(graded, Awaitable) else graded)
        except GraderError:
            raise
        except BaseException as error:  # user code may raise anything, sys.exit() included
            raise GraderError(f"the grader raised {raised_words(error, self.folder)}") from error


def python_graders(code: PythonCode | GivenCode, folder: Path, timeout: float) -> Callable[[Fields], Grader]:
    """Makes the grader of an item from its fields; raises ConfigError when the function cannot be found."""
    function = code.function if isinstance(code, GivenCode) else _function(code, folder)
    takes_row = _takes_row(function)
    return lambda fields: _PythonGrader(function, takes_row, fields, timeout, folder)


def _takes_row(function: GraderFunction) -> bool:
    """Whether it takes one thing, the row that a command gets; else it takes the answer and the item."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # some that are written in C do not say
        return False
    needed = [each for each in parameters if each.kind in _BY_PLACE and each.default is Parameter.empty]
    return len(needed) == 1 and not any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)


def _function(code: PythonCode, folder: Path) -> GraderFunction:
    try:
        return load_function(code.module, code.function, folder)
    except CannotLoadError as error:
        raise SettingRefused("env.grader", error.said, hint=error.hint) from error
