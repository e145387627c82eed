"""An agent's standard output as events, and careful reading of what other people's JSON holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from attrs import frozen

from skillopt_es.adapters.harnesses.agent import Event
from skillopt_es.events.values import Json
from skillopt_es.ports import AgentStep

MOST_OUTPUT = 4_000  # of one tool: its head and tail; a listing of a large folder would hide all else from analysts
MOST_STEPS = 200  # the first and last ones; a log keeps them for each attempt, also of an agent that goes in circles
_MOST_NUMBER = 10**12  # no agent counts so far, and a log holds no more than 64 bits


@frozen
class Stream:
    """The JSON objects of an output, one a line, and the first of its lines that is none."""

    events: tuple[Event, ...]
    garbage: str


def read_stream(output: bytes) -> Stream:
    """The events of an output; a line that is cut, empty or no JSON object does not hide the others."""
    events: list[Event] = []
    garbage = ""
    # Not splitlines, which would also split at characters inside JSON texts.
    for line in output.decode(errors="replace").split("\n"):
        if not line.strip():
            continue
        parsed = _parsed(line)
        if parsed is None:
            garbage = garbage or line.strip()[:500]
        else:
            events.append(parsed)
    return Stream(tuple(events), garbage)


def _parsed(line: str) -> Event | None:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        # RecursionError is what deep nesting raises.
        return None
    return cast(Event, value) if isinstance(value, dict) else None


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


def objects_in(value: object, *path: str) -> Sequence[Event]:
    """The objects of the list at a path of keys."""
    found = inside(value, *path)
    return [cast(Event, each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def total(*counts: int | None) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


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
