"""The simulated target: writes the value that a note holds as the skill asks, naively where the skill says nothing."""

from __future__ import annotations

import re

from skillopt_es.adapters.models.simulated.kinds import Rule
from skillopt_es.adapters.models.simulated.reminders import appendix_of, rules_named_in, without_appendix
from skillopt_es.adapters.models.simulated.rules import chance
from skillopt_es.adapters.models.simulated.worlds import topic_of, world_of
from skillopt_es.ports import ChatRequest

UNKNOWN = "I am a simulated model and do not know this."
LAPSES = 0.12
LAPSES_WHEN_CHECKING = 0.025

# Written out here, not imported: a model knows a skill only as the text it is given.
_GUIDANCE = re.compile(r"<!-- SLOW_UPDATE_START -->(.*?)<!-- SLOW_UPDATE_END -->", re.DOTALL)
_HEADING = re.compile(r"^## Skill\s*$", re.MULTILINE)
_RECHECK = re.compile(r"\b(?:re-?check|check again|double-check|go through)\b[^.]*\brules?\b", re.IGNORECASE)


def respond(request: ChatRequest) -> str:
    """The answer to the last user message, under the skill in the system message."""
    if request.stage == "probe":
        return "This is simulated-target."
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
    obeys = rule is not None and bool(rule.line_in(skill)) and not _forgets(rule, task, skill)
    answer = world.named(topic.house(found) if obeys else topic.naive(found), task)
    for habit in world.habits:
        if habit.rule.line_in(skill):
            answer = habit.spoil(answer)
    return world.said(answer)


def _forgets(rule: Rule, task: str, skill: str) -> bool:
    """Whether a rule slips the target's mind; far less often when the guidance or a note tells it to check."""
    guidance = " ".join(_GUIDANCE.findall(skill))
    checks = _RECHECK.search(guidance) or rule in rules_named_in(appendix_of(skill))
    share = LAPSES_WHEN_CHECKING if checks else LAPSES
    # Guidance and notes do not enter the draw, so that following them can only help.
    rest = " ".join(without_appendix(_GUIDANCE.sub("", skill)).split())
    return chance("lapse", task, rest) < share
