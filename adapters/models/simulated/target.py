"""The simulated target: writes the value that it is shown as the skill asks, naively where the skill says nothing."""

from __future__ import annotations

import re

from attrs import evolve, frozen

from skillopt_es.adapters.models.simulated import clerk, playing, scripts, shelf
from skillopt_es.adapters.models.simulated.forms import written
from skillopt_es.adapters.models.simulated.kinds import Topic
from skillopt_es.adapters.models.simulated.reminders import forgets
from skillopt_es.adapters.models.simulated.sight import text_on
from skillopt_es.adapters.models.simulated.worlds import topic_of, world_of
from skillopt_es.ports import ChatRequest, ToolCall

UNKNOWN = "I am a simulated model and do not know this."

_HEADING = re.compile(r"^## Skill\s*$", re.MULTILINE)


@frozen
class _Task:
    """A question with what is seen beside it, and what tools have said since."""

    text: str
    evidence: str = ""


def respond(request: ChatRequest) -> str | ToolCall | list[ToolCall]:
    """The answer to the last user message under the skill in the system message, or what has to be looked up first."""
    if request.stage == "probe":
        return "This is simulated-target."
    if playing.is_game(request):
        return playing.play(request)
    # A follow-up ("answer again, and be brief") has no question in it: the one before is still open.
    known = next((task for task in reversed(_tasks(request)) if topic_of(task.text)), None)
    if known is None:
        return UNKNOWN
    system = "\n".join(message.content for message in request.messages if message.role == "system")
    skill = world_of(known.text).skill_in(_skill_of(system))
    if shelf.offers_skills(request):
        asked = topic_of(known.text)
        assert asked is not None
        calls = shelf.wanted_skills(request, skill, asked[0])
        if calls:
            return calls
        skill = "\n".join(shelf.opened_in(request).values())
    wanted = clerk.next_request(request, known.text, lambda topic: _obeys(topic, known, skill))
    if wanted is not None:
        return wanted
    answer = _answer(known, skill)
    return scripts.next_request(request, answer) or answer


def _tasks(request: ChatRequest) -> list[_Task]:
    """What users have asked; what tools say belongs to the question before it."""
    tasks: list[_Task] = []
    for message in request.messages:
        if message.role == "user":
            pages = "\n".join(text_on(image.data) for image in message.images)
            tasks.append(_Task(f"{message.content}\n\n{pages}" if pages else message.content))
        elif message.role == "tool" and tasks and not message.content.startswith('{"skill_id"'):
            tasks[-1] = evolve(tasks[-1], evidence=f"{tasks[-1].evidence}\n{message.content}")
    return tasks


def _skill_of(system: str) -> str:
    heading = _HEADING.search(system)
    return system[heading.end() :] if heading else system


def _obeys(topic: Topic, task: _Task, skill: str) -> bool:
    rule = topic.rule
    return rule is not None and bool(rule.line_in(skill)) and not forgets(rule, task.text, skill)


def _answer(task: _Task, skill: str) -> str:
    world = world_of(task.text)
    asked = world.topic_of(task.text + task.evidence)
    assert asked is not None
    topic, found = asked
    value = written(topic.house if _obeys(topic, task, skill) else topic.naive, found)
    return world.reply(value, task.text, skill)
