"""A function of the user's, by its module or file and its name; it then runs in this process, with its rights."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from skillopt_es.adapters.raised import raised_words


class CannotLoadError(Exception):
    """Why there is no such function; the message goes on after what names it."""

    def __init__(self, said: str, hint: str = "") -> None:
        super().__init__(said)
        self.said = said
        self.hint = hint


def load_function(module: str, function: str, folder: Path) -> Callable[..., object]:
    """The function of a module (`pkg.mod`) or a file (`tools/mine.py`) seen from a folder; raises CannotLoadError."""
    loaded = _module(module, folder)
    found: object = getattr(loaded, function, None)
    if not callable(found):
        names = [name for name, value in vars(loaded).items() if callable(value) and not name.startswith("_")]
        near = get_close_matches(function, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(names) or 'no functions'}"
        raise CannotLoadError(f": {module} has no function {function!r}", hint)
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
        raise CannotLoadError(f": {name} cannot be imported: {error}", f"it is looked for at {file}") from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise CannotLoadError(f": {name} needs a module that is not installed: {error.name}") from error
        raise CannotLoadError(f": there is no module {name!r}", f"put it at {file}, or install its package") from error
    except BaseException as error:
        # A module may raise anything while it is imported, SystemExit included; Ctrl-C is the user's own.
        if isinstance(error, KeyboardInterrupt):
            raise
        raise CannotLoadError(f": {name} cannot be imported: {raised_words(error, folder)}") from error


def _from_file(file: Path, folder: Path) -> ModuleType:
    """The module in a file, under a name that collides with nothing installed."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that its neighbours shadow nothing
    name = f"skillopt_es_loaded_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
