"""A test with many values: a few run by default, the others with the slow ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    return pytest.param(*((value,) if single else value), marks=pytest.mark.slow)
