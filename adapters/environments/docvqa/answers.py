"""The accepted answers of an item, in the spellings that data sets have; no number is ever made of a text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping

from skillopt_es.events.values import Json

KEYS = ("answers", "answer", "ground_truth")
_INNER = ("text", "answer", "value")
_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})"
_QUOTED = rf"""(?:"(?:[^"\\\n]|{_ESCAPE})*"|'(?:[^'\\\n]|{_ESCAPE})*')"""
_LIST = re.compile(rf"\[\s*(?:{_QUOTED}(?:\s*,\s*|\s+|(?=\])))*\]")
_ONE = re.compile(_QUOTED)


def accepted(fields: Mapping[str, Json]) -> tuple[str, ...]:
    """The answers in a row; none when it has none. Raises ValueError for what is not text."""
    key = next((key for key in KEYS if fields.get(key) not in (None, "")), None)
    return () if key is None else _texts(key, fields[key])


def quoted_list(cell: str) -> tuple[str, ...] | None:
    """
    The texts of a cell that is a list of quoted texts, as JSON, Python or NumPy write one; None for any other cell.

    Each is unquoted by itself: `['a' 'b']` is two texts, and `1,000` or `0.50` stay what they are.
    """
    text = cell.strip()
    if not text.startswith("["):
        return None
    try:
        parsed = json.loads(text)
    except ValueError:
        return tuple(ast.literal_eval(each) for each in _ONE.findall(text)) if _LIST.fullmatch(text) else None
    return tuple(parsed) if isinstance(parsed, list) and all(isinstance(each, str) for each in parsed) else None


def _texts(key: str, value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        listed = quoted_list(value)
        return tuple(each.strip() for each in ((value,) if listed is None else listed))
    if isinstance(value, Mapping):
        inner = next((name for name in (*KEYS, *_INNER) if name in value), None)
        if inner is None:
            raise ValueError(f"`{key}` is an object without {', '.join((*KEYS, *_INNER))}")
        return _texts(inner, value[inner])
    if isinstance(value, list):
        return tuple(text for each in value for text in _texts(key, each))
    raise ValueError(f"`{key}` holds {json.dumps(value)}, which is not text")
