"""A user's Python function as a grader; it runs in this process, with its rights."""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from attrs import frozen

from skillopt_es.adapters.background import finished, in_background
from skillopt_es.adapters.environments.tasks.options import GivenCode, PythonCode
from skillopt_es.adapters.environments.tasks.verdicts import GraderError, Judge, Verdict, verdict_of
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
    module = _module(code.module, folder)
    found: object = getattr(module, code.function, None)
    if not callable(found):
        names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        near = get_close_matches(code.function, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(names) or 'no functions'}"
        raise SettingRefused("env.grader", f": {code.module} has no function {code.function!r}", hint=hint)
    return found


def _module(name: str, folder: Path) -> ModuleType:
    is_path = "/" in name or name.endswith(".py")
    file = folder / (name.removesuffix(".py") if is_path else name.replace(".", "/"))
    file = file.with_name(f"{file.name}.py")
    try:
        if is_path or file.is_file():
            return _from_file(file, folder)
        return importlib.import_module(name)
    except FileNotFoundError as error:
        raise SettingRefused(
            "env.grader", f": {name} cannot be imported: {error}", hint=f"it is looked for at {file}"
        ) from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise SettingRefused(
                "env.grader", f": {name} needs a module that is not installed: {error.name}"
            ) from error
        raise SettingRefused(
            "env.grader", f": there is no module {name!r}", hint=f"put it at {file}, or install its package"
        ) from error
    except BaseException as error:
        # A module may raise anything while it is imported, SystemExit included; Ctrl-C is the user's own.
        if isinstance(error, KeyboardInterrupt):
            raise
        raise SettingRefused("env.grader", f": {name} cannot be imported: {type(error).__name__}: {error}") from error


def _from_file(file: Path, folder: Path) -> ModuleType:
    """The module in a file, under a name that collides with nothing installed."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that the grader's neighbours shadow nothing
    name = f"skillopt_es_grader_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
