"""Workbooks as plain values: the shape in which they come out of a sandbox."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta

from attrs import field, frozen

from skillopt_es.adapters.environments.spreadsheetbench.cells import CellValue, Oddity
from skillopt_es.events.values import Json, clean_text

CellAt = tuple[str, int, int]  # sheet, row, column


@frozen(kw_only=True)
class Book:
    """The sheets of a workbook in order, what their graded cells hold, and formulas without a stored value."""

    sheets: tuple[str, ...]
    cells: Mapping[CellAt, CellValue] = field(factory=dict)
    formulas: frozenset[CellAt] = frozenset()


class UnreadableError(Exception):
    """A workbook, or what a sandbox said of it, cannot be read; the message says why."""


def read_book(told: Json) -> Book:
    """The workbook that `child.py` describes; raises UnreadableError for what is no such description."""
    try:
        return _book(told)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnreadableError(f"its description is damaged ({type(error).__name__})") from None


def _book(told: Json) -> Book:
    if not isinstance(told, dict):
        raise TypeError("not an object")
    if "error" in told:
        raise UnreadableError(clean_text(str(told["error"])))
    return Book(
        sheets=tuple(clean_text(str(name)) for name in _list(told["sheets"])),
        cells={_place(row): _value(row[3], row[4]) for row in map(_list, _list(told["cells"]))},
        formulas=frozenset(_place(_list(row)) for row in _list(told["formulas"])),
    )


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _place(row: list[Json]) -> CellAt:
    sheet, line, column = row[:3]
    if not isinstance(line, int) or not isinstance(column, int):
        raise TypeError("a cell's row and column must be numbers")
    return clean_text(str(sheet)), line, column


def _value(kind: Json, told: Json) -> CellValue:
    text = clean_text(str(told))
    read = _KINDS.get(str(kind))
    return Oddity(str(kind), text) if read is None else read(text)


def _span(text: str) -> CellValue:
    seconds = float(text)
    return timedelta(seconds=seconds) if math.isfinite(seconds) else Oddity("timedelta", text)


_KINDS: Mapping[str, Callable[[str], CellValue]] = {
    "bool": lambda text: text == "True",
    "int": int,
    "float": float,
    "str": str,
    "datetime": lambda text: datetime.fromisoformat(text).replace(tzinfo=None),
    "date": date.fromisoformat,
    "time": lambda text: time.fromisoformat(text).replace(tzinfo=None),
    "timedelta": _span,
}
