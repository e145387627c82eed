"""The simulated world of ALFWorld: what can be known about household games, and which of it a lost game lacked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillopt_es.adapters.models.simulated.forms import as_written
from skillopt_es.adapters.models.simulated.kinds import Habit, Rule, Topic
from skillopt_es.adapters.models.simulated.world import World

_TASK = re.compile(r"Your task is to: (.*)")
_WANTED = re.compile(
    r"look at (?P<lit>\w+) under|put (?:a )?(?:(?P<how>clean|hot|cool|two) )?(?P<what>\w+) in (?P<where>\w+)"
)
_NEVER = r"(?!)"


def _topic(kind: str, keywords: Sequence[str], wording: str) -> Topic:
    """Something to know about games; no task asks for it by its words, only a whole game shows that it is missing."""
    rule = Rule(name=kind, keywords=keywords, wording=wording)
    return Topic(kind=kind, asked=_NEVER, value=_NEVER, naive=as_written, rule=rule)


def _waste(name: str, keywords: Sequence[str], wording: str) -> Habit:
    return Habit(rule=Rule(name=name, keywords=keywords, wording=wording), spoil=str)


OPENING = _topic(
    "closed places",
    [r"\bopen\b", r"\bclosed\b"],
    "Open every closed receptacle that you come to while you search: what you need may be inside.",
)
CLEANING = _topic(
    "cleaning",
    [r"\bclean\b", r"\bsink\w*"],
    "For a clean object, take it to the sinkbasin and clean it there before you put it away.",
)
HEATING = _topic(
    "heating",
    [r"\b(?:heat|hot)\b", r"\bmicrowave\b"],
    "For a hot object, take it to the microwave and heat it there before you put it away.",
)
COOLING = _topic(
    "cooling",
    [r"\bcool\b", r"\bfridge\b"],
    "For a cool object, take it to the fridge and cool it there before you put it away.",
)
PAIRS = _topic(
    "pairs",
    [r"\btwo\b", r"\bsecond\b"],
    "For two objects, leave the first one where you have put it and search for the second one.",
)
LIGHT = _topic(
    "light",
    [r"\blamp\b|\bdesklamp\b", r"\buse\b"],
    "To look at an object under a lamp, carry it to the desklamp and use the lamp.",
)
LOOKING = _waste(
    "looking around",
    [r"\blook around\b", r"\bafter every (?:command|step|action)\b"],
    "Look around again after every command.",
)
COUNTING = _waste(
    "counting",
    [r"\binventory\b", r"\bbefore every (?:command|step|action)\b"],
    "Check the inventory before every command.",
)
TREATMENTS = {"clean": (CLEANING, "sinkbasin"), "hot": (HEATING, "microwave"), "cool": (COOLING, "fridge")}
VERBS = {"clean": "clean", "hot": "heat", "cool": "cool"}


def wanted_in(text: str) -> re.Match[str] | None:
    """What the task in a text wants: what is to be brought where, how it shall be, or what is to be lit."""
    task = _TASK.search(text)
    return _WANTED.search(task[1]) if task else None


def _missing(_task: str, trajectory: str) -> Topic | None:
    """What a lost game shows to be missing."""
    wanted = wanted_in(trajectory)
    if wanted is None:
        return None
    thing, how = wanted["lit"] or wanted["what"], wanted["how"]
    taken = re.findall(rf"You pick up the ({thing} \d+)", trajectory)
    if not taken:
        return OPENING
    if wanted["lit"]:
        return LIGHT
    if how == "two":
        return PAIRS if len(taken) > len(set(taken)) else OPENING
    if how and f"You {VERBS[how]} the {thing}" not in trajectory:
        return TREATMENTS[how][0]
    return OPENING


HOUSEHOLD = World(
    tasks=r"-= Welcome to TextWorld",
    topics=(OPENING, CLEANING, HEATING, COOLING, PAIRS, LIGHT),
    habits=(LOOKING, COUNTING),
    mistake="A game was lost for want of {kind}",
    lacks=_missing,
)
