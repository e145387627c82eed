"""A test with many values: a few run by default and the others with the slow ones, or all in one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest


def parametrized(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    by_default: int,
    ids: Sequence[str] | Callable[[Any], str] | None = None,
) -> pytest.MarkDecorator:
    """`pytest.mark.parametrize`; so many of the values, spread over all of them, run by default."""
    listed = list(values)
    single = isinstance(names, str) and "," not in names
    quick = [at for at, each in enumerate(listed) if not _is_slow(each)]
    assert 0 < by_default < len(quick), "which of them would be slow?"
    kept = {quick[round(number * (len(quick) - 1) / max(1, by_default - 1))] for number in range(by_default)}
    marked = [each if at in kept or _is_slow(each) else _slow(each, single=single) for at, each in enumerate(listed)]
    return pytest.mark.parametrize(names, marked, ids=ids)


def _is_slow(value: Any) -> bool:
    return isinstance(value, type(pytest.param())) and any(mark.name == "slow" for mark in value.marks)


def _slow(value: Any, *, single: bool) -> Any:
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, pytest.mark.slow))
    return pytest.param(*_parts(value, single=single), marks=pytest.mark.slow)


def _parts(value: Any, *, single: bool) -> Sequence[Any]:
    if isinstance(value, type(pytest.param())):
        return value.values
    return (value,) if single else value


def each_of(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """One test that tries each of these values: many that are quick cost more to collect and report than to run."""
    single = isinstance(names, str) and "," not in names
    listed = [_parts(value, single=single) for value in values]
    named = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @wraps(test)
        def tried(**fixtures: Any) -> None:
            for value in listed:
                given = dict(zip(named, value, strict=True))
                try:
                    test(**given, **fixtures)
                except BaseException as error:
                    error.add_note(f"with {given!r}")
                    raise

        rest = [each for name, each in signature.parameters.items() if name not in named]
        tried.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return tried

    return decorate
