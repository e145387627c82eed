"""
The one logger: what the command says on stderr while it works, and a run's `logs.jsonl`, are the same lines.

A line has `event` (what happened), `level`, `timestamp`, and `run` and `place` where they are bound around it.
Who listens is bound as well. A program that imports us keeps its own set-up of structlog, and hears nothing unasked.
"""

# structlog is imported where a line is logged: that takes longer than most commands, which log none.
# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

Listener = Callable[[Mapping[str, object]], None]
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@cache
def logger() -> FilteringBoundLogger:
    """The logger, configured once."""
    import structlog

    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        lambda _, __, line: ((line,), {}),  # as it is: each listener has a form of its own
    ]
    wrapper = structlog.make_filtering_bound_logger("info")
    bound: FilteringBoundLogger = structlog.wrap_logger(_ToListeners(), processors, wrapper_class=wrapper)
    return bound


class _ToListeners:
    """Where structlog hands a finished line: to everybody who listens right here."""

    def _hear(self, line: EventDict) -> None:
        for listener in _listeners.get():
            listener(line)

    info = warning = error = _hear


@contextmanager
def listening(listener: Listener, *, alone: bool = False) -> Iterator[None]:
    """Hands a listener every line that is logged inside, by whatever task; alone, nobody else hears it."""
    token = _listeners.set((listener,) if alone else (*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def bound(**fields: str) -> AbstractContextManager[None]:
    """Lines inside are about this run, or this place in it."""
    return _Bound(fields)


class _Bound:
    """Binds fields for its block; structlog's own looks through the whole context, at each of thousands of calls."""

    __slots__ = ("_before", "_fields")

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields
        self._before: Mapping[str, Token[object]] = {}

    def __enter__(self) -> None:
        from structlog.contextvars import bind_contextvars

        self._before = bind_contextvars(**self._fields)

    def __exit__(self, *_: object) -> None:
        from structlog.contextvars import reset_contextvars

        reset_contextvars(**self._before)


def as_json(line: Mapping[str, object]) -> str:
    """A line for programs: one JSON object. What only people are shown (`_…`) stays out."""
    from structlog.processors import JSONRenderer

    text = JSONRenderer(sort_keys=True)(None, "", {key: line[key] for key in line if not key.startswith("_")})
    assert isinstance(text, str)
    return text
