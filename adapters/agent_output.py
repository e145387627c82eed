"""Careful reading of what agents say in JSON, and how much of it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from skillopt_es.events.values import Json
from skillopt_es.ports import AgentStep

MOST_OUTPUT = 4_000  # of one tool: its head and tail; a listing of a large folder would hide all else from analysts
MOST_STEPS = 200  # the first and last ones; a log keeps them for each attempt, also of an agent that goes in circles
_MOST_NUMBER = 10**12  # no agent counts so far, and a log holds no more than 64 bits


def inside(value: object, *path: str) -> Json:
    """What stands at a path of keys; None when there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return cast(Json, value)


def text_in(value: object, *path: str) -> str:
    """The text at a path of keys; an empty one when there is none."""
    found = inside(value, *path)
    return found if isinstance(found, str) else ""


def number_in(value: object, *path: str) -> int | None:
    """The whole number at a path of keys; one that no log could hold is none."""
    found = inside(value, *path)
    # JSON's true is an int to Python, but no count.
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) <= _MOST_NUMBER else None


def objects_in(value: object, *path: str) -> Sequence[Mapping[str, Json]]:
    """The objects of the list at a path of keys."""
    found = inside(value, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def shown(value: Json) -> str:
    """A tool's arguments or result as text, at most as long as one output may be."""
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return short(text)


def bounded(steps: Sequence[AgentStep]) -> tuple[AgentStep, ...]:
    """The first and the last of very many steps."""
    if len(steps) <= MOST_STEPS:
        return tuple(steps)
    half = MOST_STEPS // 2
    cut = AgentStep(kind="message", text=f"[… {len(steps) - 2 * half} steps cut …]")
    return (*steps[:half], cut, *steps[-half:])


def short(text: str) -> str:
    """The head and the tail of a long output."""
    if len(text) <= MOST_OUTPUT:
        return text
    half = MOST_OUTPUT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"
