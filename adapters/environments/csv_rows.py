"""CSV files with a header: every cell is text, an error names file and line; and lists that a cell holds as text."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import cast

from skillopt_es.adapters.environments.data import text_of
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json


def read_csv_rows(path: Path, delimiter: str = ",") -> list[tuple[str, dict[str, Json]]]:
    """The rows by the names of their columns, each with its `file:line`; no cell is taken for a number."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # contexts and pages of text are long
    reader = csv.reader(io.StringIO(text_of(path), newline=""), strict=True, delimiter=delimiter)
    names: list[str] = []
    rows: list[tuple[str, dict[str, Json]]] = []
    line = 1
    try:
        for cells in reader:
            # A row begins in the line after the one before it: a cell may have line ends in it.
            where, line = f"{path}:{line}", reader.line_num + 1
            if not names:
                names = _header(where, cells)
            elif cells:
                rows.append((where, _row(where, names, cells)))
    except csv.Error as error:
        raise DataError(
            f"{path}:{reader.line_num}: not CSV: {error}", hint="separate cells by commas, and quote with double quotes"
        ) from None
    return rows


def _header(where: str, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DataError(f"{where}: the column {twice[0]!r} is there twice", hint="keep one of them")
    return names


def _row(where: str, names: list[str], cells: list[str]) -> dict[str, Json]:
    if len(cells) != len(names):
        raise DataError(
            f"{where}: this row has {len(cells)} cells, but the header has {len(names)} columns",
            hint="put double quotes around a cell that has a comma in it",
        )
    return {name: cell for name, cell in zip(names, cells, strict=True) if name}


_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})"
_TEXT = rf"""(?:'(?:[^'\\\n]|{_ESCAPE})*'|"(?:[^"\\\n]|{_ESCAPE})*")"""
_PYTHON_LIST = re.compile(rf"\[\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*\]")


def texts_of(value: object) -> list[str] | None:
    """A list of texts, also one that a CSV cell holds as JSON or Python; None when it is no such list."""
    if isinstance(value, str):
        value = _literal(value)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        return None
    return [str(each) for each in value]


def _literal(cell: str) -> object:
    """
    What a cell says that is a list in JSON or Python.

    Nothing else is evaluated: a bare 1,000 would become two numbers, and `['a' 'b']`, as arrays are printed, one text.
    """
    cell = cell.strip()
    try:
        return cast(object, json.loads(cell)) if cell.startswith("[") else None
    except RecursionError:  # nested too deep to be a list of answers
        return None
    except json.JSONDecodeError:
        return cast(object, ast.literal_eval(cell)) if _PYTHON_LIST.fullmatch(cell) else None
