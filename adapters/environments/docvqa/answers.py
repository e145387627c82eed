"""The accepted answers of an item, in the spellings that data sets have; no number is ever made of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from skillopt_es.adapters.environments.quoted_lists import texts_of
from skillopt_es.events.values import Json

KEYS = ("answers", "answer", "ground_truth")
_INNER = ("text", "answer", "value")
_BROKEN_LIST = re.compile(r"""\s*\[\s*['"]""")


def accepted(fields: Mapping[str, Json]) -> tuple[str, ...]:
    """The answers in a row; none when it has none. Raises ValueError for what is not text."""
    key = next((key for key in KEYS if fields.get(key) not in (None, "")), None)
    return () if key is None else _texts(key, fields[key])


def _texts_in(cell: str) -> tuple[str, ...]:
    """The texts of a cell that is a list of quoted texts; any other cell is one text, as it stands."""
    listed = [] if cell.strip() == "[]" else texts_of(cell)
    if listed is None and _BROKEN_LIST.match(cell):
        raise ValueError(f"`{cell.strip()}` looks like a list, but its texts are not all in quotes with commas between")
    return tuple(text.strip() for text in ((cell,) if listed is None else listed))


def _texts(key: str, value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        return _texts_in(value)
    if isinstance(value, Mapping):
        inner = next((name for name in (*KEYS, *_INNER) if name in value), None)
        if inner is None:
            raise ValueError(f"`{key}` is an object without {', '.join((*KEYS, *_INNER))}")
        return _texts(inner, value[inner])
    if isinstance(value, list):
        return tuple(text for each in value for text in _texts(key, each))
    raise ValueError(f"`{key}` holds {json.dumps(value)}, which is not text")
