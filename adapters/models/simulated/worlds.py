"""All simulated worlds: the house style of the demo, and one for each benchmark that has a demo of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

import cattrs
import yaml

from skillopt_es.adapters.models.simulated.forms import CALLING_CODES, MONTHS, Found
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic, World

_PIECES = {"MONTH": "|".join(MONTHS), "COUNTRY": "|".join(CALLING_CODES)}


@cache
def worlds() -> Mapping[str, World]:
    """All worlds by name, the demo's first; they are read when a model first needs them."""
    read = yaml.safe_load(resources.files(__package__).joinpath("worlds.yaml").read_text(encoding="utf-8"))
    whole = _filled(read["worlds"], {**_PIECES, **read["pieces"]})
    return cattrs.Converter(forbid_extra_keys=True).structure(whole, dict[str, World])


def _filled(node: object, pieces: Mapping[str, str]) -> object:
    """The same with each {{NAME}} replaced by its piece."""
    if isinstance(node, dict):
        return {key: _filled(value, pieces) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(each, pieces) for each in node]
    if isinstance(node, str):
        for name, piece in pieces.items():
            node = node.replace(f"{{{{{name}}}}}", piece)
    return node


@cache
def all_style() -> tuple[Rule, ...]:
    """The rules that help in any world."""
    return tuple(rule for world in worlds().values() for rule in world.style)


@cache
def all_harmful() -> tuple[Rule, ...]:
    """The rules that cost points in any world."""
    return tuple(dict.fromkeys(rule for world in worlds().values() for rule in world.harmful))


def house_style() -> tuple[Rule, ...]:
    """The rules that help with questions on notes."""
    return tuple(topic.rule for topic in worlds()["house"].topics if topic.rule and not topic.script)


def world_of(task: str) -> World:
    """The world that a task belongs to."""
    # OfficeQA's mark is the longer one of two, and tasks in the house style have none: the last world comes first.
    return next(world for world in reversed([*worlds().values()]) if re.match(world.tasks, task.lstrip()))


def topic_of(task: str) -> tuple[Topic, Found] | None:
    """The kind of a task and the value it asks for; None for what the simulation knows nothing about."""
    return world_of(task).topic_of(task)
