"""The simulated target: writes the value that a note holds as the skill asks, naively where the skill says nothing."""

from __future__ import annotations

import re

from skillopt_es.adapters.models.simulated import playing
from skillopt_es.adapters.models.simulated.lapses import forgets
from skillopt_es.adapters.models.simulated.worlds import topic_of, world_of
from skillopt_es.ports import ChatRequest

UNKNOWN = "I am a simulated model and do not know this."

_HEADING = re.compile(r"^## Skill\s*$", re.MULTILINE)


def respond(request: ChatRequest) -> str:
    """The answer to the last user message, under the skill in the system message."""
    if request.stage == "probe":
        return "This is simulated-target."
    if playing.is_game(request):
        return playing.play(request)
    system = "\n".join(message.content for message in request.messages if message.role == "system")
    tasks = [message.content for message in request.messages if message.role == "user"]
    # A follow-up ("answer again, and be brief") has no question in it: the one before is still open.
    known = next((task for task in reversed(tasks) if topic_of(task)), "")
    return _answer(known, world_of(known).skill_in(_skill_of(system))) if known else UNKNOWN


def _skill_of(system: str) -> str:
    heading = _HEADING.search(system)
    return system[heading.end() :] if heading else system


def _answer(task: str, skill: str) -> str:
    asked = topic_of(task)
    assert asked is not None
    topic, found = asked
    world = world_of(task)
    rule = topic.rule
    obeys = rule is not None and bool(rule.line_in(skill)) and not forgets(rule, task, skill)
    answer = world.named(topic.house(found) if obeys else topic.naive(found), task)
    for habit in world.habits:
        if habit.rule.line_in(skill):
            answer = habit.spoil(answer)
    return world.said(answer)
