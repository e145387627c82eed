"""
The simulated target with OfficeQA's tools: it lists bulletins, searches them for a row, and reads a table's heading.

What it searches follows from the question; how thoroughly, from the rules of its skill. It knows what it was shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from attrs import frozen

from skillopt_es.adapters.models.simulated.forms import MONTHS, Found, label_of
from skillopt_es.adapters.models.simulated.kinds import Topic
from skillopt_es.adapters.models.simulated.worlds import worlds
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatRequest, ToolCall

_ROW = re.compile(r"^(\d+): \|", re.MULTILINE)
_ABOVE_A_ROW = 40  # lines: the made bulletins' tables, which name their unit above the rows, are shorter
_REVISED, _IN_A_UNIT = "revised figure", "unit"


@frozen
class _Done:
    """A request that was answered."""

    tool: str
    arguments: Mapping[str, Json]
    answer: str


def next_request(request: ChatRequest, task: str, obeys: Callable[[Topic], bool]) -> ToolCall | None:
    """What the target asks its tools for next; None when it has what it needs, or knows no such question."""
    world = worlds()["officeqa"]
    asked = world.topic_of(task) if re.match(world.tasks, task) and request.tools else None
    if asked is None:
        return None
    topic, found = asked
    done = _done(request)
    wanted = _next(topic, found, done, thorough=topic.rule is not None and obeys(topic))
    if wanted is None:
        return None
    tool, arguments = wanted
    return ToolCall(f"call-{len(done) + 1}", tool, json.dumps(arguments))


def _next(topic: Topic, found: Found, done: list[_Done], *, thorough: bool) -> tuple[str, dict[str, Json]] | None:
    listings = [each.answer for each in done if each.tool == "glob"]
    if not listings:
        return "glob", {"pattern": _bulletins(topic, found)}
    documents = [line for line in listings[0].splitlines() if not line.startswith("[")]
    searched = {each.arguments["path"]: each.answer for each in done if each.tool == "grep"}
    hits = [path for path, answer in searched.items() if _ROW.search(answer)]
    left = [path for path in documents if path not in searched]
    if left and (not hits or (topic.kind == _REVISED and thorough)):
        return "grep", {"pattern": label_of(found), "path": left[0]}
    if topic.kind == _IN_A_UNIT and thorough and hits and not any(each.tool == "read" for each in done):
        row = _ROW.search(str(searched[hits[0]]))
        assert row is not None
        return "read", {"path": hits[0], "start": max(1, int(row[1]) - _ABOVE_A_ROW), "limit": _ABOVE_A_ROW}
    return None


def _bulletins(topic: Topic, found: Found) -> str:
    """A pattern for the bulletins that may hold the row: they come out in June and in December."""
    named = found.groupdict()
    month, _, year = (named.get("month") or named.get("after") or "").partition(" ")
    if topic.kind == _REVISED:
        return f"*{year}*"
    if month:
        return f"*{year}_{6 if MONTHS.index(month) < 6 else 12:02}*"
    return f"*{named['year']}_{'06' if named.get('half') == 'first' else '12'}*"


def _done(request: ChatRequest) -> list[_Done]:
    """What was asked of the tools so far, with what they said."""
    answers = {each.tool_call_id: each.content for each in request.messages if each.role == "tool"}
    calls = [call for message in request.messages for call in message.tool_calls]
    return [_Done(call.name, json.loads(call.arguments), answers.get(call.id, "")) for call in calls]
