"""
The functions that `import skillopt_es` offers: those of `work.py`, each with its twin that waits.

All of them take the same things, which `Handed` and `Watched` name. Their signatures name each one, for help() and for
an editor, and an argument that is unknown is a TypeError.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from skillopt_es.door import work
from skillopt_es.door.given import Handed
from skillopt_es.errors import Interrupted
from skillopt_es.events.errors import SkillOptError

P = ParamSpec("P")
T = TypeVar("T")

_DEFAULTS = {"progress": True}
"""What stands for an argument that is left out; it is None for all others."""
_SETTING = re.compile(r"`?--set ([\w.]+)(?:=([^`\s;,]+))?`?")
_OPTIONS = {
    "--name": "`name=`",
    "--open-test": "`open_test=True`",
    "--split": "`splits=`",
    "--accept-loss": "`accept_loss=True`",
}


def in_python(text: str) -> str:
    """A sentence with the arguments of functions in the place of the command's options; its commands stay."""
    parts = re.split(r"(`skillopt-es [^`]*`)", text)
    return "".join(part if part.startswith("`skillopt-es ") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    text = _SETTING.sub(lambda found: f'settings={{"{found[1]}": {_value(found[2])}}}' if found[2] else found[1], text)
    for option, argument in _OPTIONS.items():
        text = re.sub(rf"`?{option}\b`?", argument, text)
    return text


def _value(text: str) -> str:
    return text if text in ("…", "...") or re.fullmatch(r"-?\d+(\.\d+)?", text) else f'"{text}"'


@contextmanager
def _spoken() -> Iterator[None]:
    """Errors inside say what to pass, and not what to type."""
    try:
        yield
    except SkillOptError as error:
        error.message, error.hint = in_python(error.message), in_python(error.hint)
        error.args = (error.message, *error.args[1:])
        raise


class _Text(str):
    """An annotation as it is written: help() shows the names, not what they stand for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _signature(function: Callable[..., object]) -> inspect.Signature:
    """The function's signature, with a parameter for each thing that may be handed over."""
    own = inspect.signature(function)
    plain = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    takes = Handed if "Handed" in str(own.parameters["handed"].annotation) else work.Watched
    handed = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name),
            annotation=_Text(getattr(kind, "__forward_arg__", kind)),
        )
        for name, kind in takes.__annotations__.items()
    ]
    shown = [each.replace(annotation=_Text(each.annotation)) for each in plain]
    return own.replace(parameters=[*shown, *handed], return_annotation=_Text(own.return_annotation))


def awaited(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The function for those who have an event loop of their own."""
    signature = _signature(function)
    checked = signature.bind

    @wraps(function)
    async def offered(*args: P.args, **kwargs: P.kwargs) -> T:
        checked(*args, **kwargs)
        with _spoken():
            return await function(*args, **kwargs)

    offered.__signature__ = signature  # type: ignore[attr-defined]
    return offered


def waited(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The twin that waits: the work is done on a thread of its own, so that a notebook's loop does not matter."""
    signature = _signature(function)
    checked = signature.bind

    @wraps(function)
    def offered(*args: P.args, **kwargs: P.kwargs) -> T:
        checked(*args, **kwargs)
        with _spoken():
            return _wait(lambda: function(*args, **kwargs))

    offered.__name__ = offered.__qualname__ = function.__name__.removeprefix("a")
    offered.__signature__ = signature  # type: ignore[attr-defined]
    del offered.__wrapped__  # it is a coroutine function, which this one is not
    return offered


def _wait(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of the work. The first KeyboardInterrupt lets calls in flight end; the second one does not wait."""
    asked, over = threading.Event(), threading.Event()
    # The thread waits for one of these: a KeyboardInterrupt during `start` may not leave work behind.
    go, called_off = threading.Event(), threading.Event()
    outcome: list[T] = []
    failure: list[BaseException] = []

    async def whole() -> T:
        work.stopping.set(asked.is_set)
        return await begin()

    def run() -> None:
        go.wait()
        if called_off.is_set():
            return
        try:
            outcome.append(asyncio.run(whole()))
        except BaseException as error:  # noqa: BLE001 -- raised again where the caller waits
            failure.append(error)
        finally:
            over.set()

    try:
        threading.Thread(target=run, name="skillopt-es", daemon=True).start()
    except KeyboardInterrupt:
        called_off.set()
        go.set()
        raise Interrupted("stopped before anything began") from None
    while True:
        try:
            go.set()
            # No `join`: up to Python 3.12, one that a KeyboardInterrupt ends takes the thread for finished.
            over.wait()
            break
        except KeyboardInterrupt:
            if asked.is_set():
                raise Interrupted("stopped at once, as asked; calls in flight may be paid again") from None
            asked.set()
    if failure:
        raise failure[0]
    return outcome[0]


atrain, train = awaited(work.atrain), waited(work.atrain)
atrain_on, train_on = awaited(work.atrain_on), waited(work.atrain_on)
aresume, resume = awaited(work.aresume), waited(work.aresume)
aevaluate, evaluate = awaited(work.aevaluate), waited(work.aevaluate)
aestimate, estimate = awaited(work.aestimate), waited(work.aestimate)
