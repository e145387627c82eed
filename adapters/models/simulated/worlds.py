"""All simulated worlds: the house style of the demo, and one for each benchmark that has a demo of its own."""

from __future__ import annotations

from skillopt_es.adapters.models.simulated.docvqa import DOCVQA
from skillopt_es.adapters.models.simulated.forms import Found
from skillopt_es.adapters.models.simulated.household import HOUSEHOLD
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic
from skillopt_es.adapters.models.simulated.livemath import LIVEMATH
from skillopt_es.adapters.models.simulated.officeqa import OFFICEQA
from skillopt_es.adapters.models.simulated.rules import HABITS, TOPICS
from skillopt_es.adapters.models.simulated.searchqa import SEARCHQA
from skillopt_es.adapters.models.simulated.world import World

HOUSE = World(tasks="", topics=TOPICS, habits=HABITS)
# OfficeQA's mark is the longer one of two; tasks in the house style have no mark of their own, so they come last.
WORLDS = (SEARCHQA, OFFICEQA, LIVEMATH, HOUSEHOLD, DOCVQA, HOUSE)
_STYLED = (HOUSE, SEARCHQA, LIVEMATH, HOUSEHOLD, OFFICEQA, DOCVQA)

ALL_STYLE: tuple[Rule, ...] = tuple(rule for world in _STYLED for rule in world.style)
ALL_HARMFUL: tuple[Rule, ...] = tuple(dict.fromkeys(rule for world in _STYLED for rule in world.harmful))


def world_of(task: str) -> World:
    """The world that a task belongs to."""
    return next(world for world in WORLDS if world.tasks.match(task.lstrip()))


def topic_of(task: str) -> tuple[Topic, Found] | None:
    """The kind of a task and the value it asks for; None for what the simulation knows nothing about."""
    return world_of(task).topic_of(task)
