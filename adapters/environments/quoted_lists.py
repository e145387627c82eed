"""Lists of texts that a table's cell holds as text."""

from __future__ import annotations

import ast
import json
import re
from typing import cast

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
    except json.JSONDecodeError:
        return cast(object, ast.literal_eval(cell)) if _PYTHON_LIST.fullmatch(cell) else None
