"""Pieces of the optimizer's replies that several readers share, and pieces of their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import Json, clean_text
from skillopt_es.replies.json_reader import Unusable, read_object


def says_something(text: Json) -> bool:
    """Whether a text has a letter or a digit: some models copy the dots of the form they are shown."""
    return isinstance(text, str) and any(map(str.isalnum, text))


def text_in(row: Mapping[str, Json], key: str) -> str:
    """The text under a key; empty when there is none."""
    value = row.get(key)
    # JSON can escape what UTF-8 cannot hold.
    return clean_text(value) if isinstance(value, str) else ""


def count_in(row: Mapping[str, Json], key: str, default: int) -> int:
    """The whole number under a key; for Python true and false are numbers, too."""
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


@frozen
class ListedReply:
    """A reply whose proposals stand in one list, still as they came."""

    rows: tuple[Json, ...]
    reasoning: str


def read_listed(text: str, key: str) -> ListedReply | Unusable:
    """The reply whose proposals stand in the list `key`, with nothing around it."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    rows = found.get(key)
    if not isinstance(rows, list):
        return Unusable(f"`{key}` must be a list")
    return ListedReply(tuple(rows), text_in(found, "reasoning"))


def object_of(**properties: Json) -> dict[str, Json]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(item: Json) -> dict[str, Json]:
    """The schema of a list."""
    return {"type": "array", "items": item}


def enum_of(words: Sequence[str]) -> dict[str, Json]:
    """The schema of one of these words."""
    return {"type": "string", "enum": [*words]}


STRING: dict[str, Json] = {"type": "string"}
INTEGER: dict[str, Json] = {"type": "integer"}
