"""Household games of ALFWorld as simulated models know them: what a task wants, and what a lost game lacked."""

from __future__ import annotations

import re

_TASK = re.compile(r"Your task is to: (.*)")
_WANTED = re.compile(
    r"look at (?P<lit>\w+) under|put (?:a )?(?:(?P<how>clean|hot|cool|two) )?(?P<what>\w+) in (?P<where>\w+)"
)
# By how a thing shall be: what is known of it, where it is done, and the verb.
TREATMENTS = {
    "clean": ("cleaning", "sinkbasin", "clean"),
    "hot": ("heating", "microwave", "heat"),
    "cool": ("cooling", "fridge", "cool"),
}


def wanted_in(text: str) -> re.Match[str] | None:
    """What the task in a text wants: what is to be brought where, how it shall be, or what is to be lit."""
    task = _TASK.search(text)
    return _WANTED.search(task[1]) if task else None


def missing_in(trajectory: str) -> str:
    """The kind of knowledge that a lost game shows to be missing; empty for what is no game."""
    wanted = wanted_in(trajectory)
    if wanted is None:
        return ""
    thing, how = wanted["lit"] or wanted["what"], wanted["how"]
    taken = re.findall(rf"You pick up the ({thing} \d+)", trajectory)
    if taken and wanted["lit"]:
        return "light"
    if len(taken) > len(set(taken)) and how == "two":
        return "pairs"
    kind, _, verb = TREATMENTS.get(how, ("", "", ""))
    if taken and kind and f"You {verb} the {thing}" not in trajectory:
        return kind
    return "closed places"
