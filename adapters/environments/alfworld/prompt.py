"""What is said of ALFWorld's tasks: to analysts, and to the target anew at every step."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from skillopt_es.adapters.environments.alfworld.world import View
from skillopt_es.adapters.environments.episodes import prompt_text

GUIDE = prompt_text(__package__, "guide")
SYSTEM = "You are an expert agent who solves household tasks in the ALFRED embodied environment."
HIDDEN = "help"

_INTRO = "What was learned from earlier tasks of this kind. Follow it where it fits:"
_ROLE = "You act in a household, one command at a time."
_RULES = prompt_text(__package__, "rules")


@frozen
class GameStep:
    """A step that was taken: what was seen before it, and the command that followed."""

    seen: str
    command: str


def user_prompt(skill: str, task: str, view: View, steps: Sequence[GameStep], *, window: int) -> str:
    """The user message of the next step; `skill` is the body of the skill, which may be empty."""
    parts = [f"## Skill Knowledge\n{_INTRO}\n\n{skill}"] if skill else []
    if not steps:
        parts.append(f"{_ROLE}\nYour current observation is: {view.observation}")
    else:
        parts.append(f"{_ROLE} Your task is to: {task}")
        parts.append(_past(steps, window))
        parts.append(f"You are at step {len(steps) + 1}. Your current observation is: {view.observation}")
    parts.append(f"Your admissible commands are: {listed(view)}")
    return "\n\n".join([*parts, _RULES])


def listed(view: View) -> str:
    """The admissible commands, as they are shown."""
    return "[" + ",\n ".join(f"'{each}'" for each in view.commands if each != HIDDEN) + "]"


def _past(steps: Sequence[GameStep], window: int) -> str:
    first = max(0, len(steps) - window)
    taken = f"You have taken {len(steps)} step{'s' if len(steps) > 1 else ''} so far."
    if first == len(steps):
        return taken
    lines = [
        f"[Observation {number}: '{step.seen}', Action {number}: '{step.command}']"
        for number, step in enumerate(steps[first:], start=first + 1)
    ]
    return "\n".join([f"{taken} The last {len(lines)}, each with what you saw before it:", *lines])
