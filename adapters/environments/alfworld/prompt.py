"""What is said of ALFWorld's tasks: to analysts, and to the target anew at every step."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from skillopt_es.adapters.environments.alfworld.world import View

SYSTEM = "You are an expert agent who solves household tasks in the ALFRED embodied environment."
HIDDEN = "help"

_INTRO = "What was learned from earlier tasks of this kind. Follow it where it fits:"
_ROLE = "You act in a household, one command at a time."
_RULES = (
    "It is your turn. First reason step by step about where you are and what is still to be done, "
    "inside <think> and </think> tags.\n"
    "Then choose one of the admissible commands, word for word, and give it inside <action> and </action> tags."
)


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


GUIDE = """\
Household tasks as text games, won or not within a limit of steps. Follow each game step by step: where was the
object, when was it seen, which step was the first that could not lead to the goal any more.
Kinds of failure, to be used as failure_type where one fits:
- navigation_loop: the same places again and again
- missed_object: it was in sight, or in something that was never opened
- wrong_sequence: steps in an order in which they do not help, such as putting away before heating
- premature_stop: the goal was reached in part, and nothing more was tried
- action_loop: one command again, though nothing happens
- appliance_error: the wrong appliance, or the right one used wrongly
- rule_missing, rule_wrong, rule_ignored: the skill lacks, has wrong, or has and was not obeyed
- other
Rules say what to do in a kind of situation; where things were in one game does not help in the next."""
