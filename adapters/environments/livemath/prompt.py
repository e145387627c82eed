"""What is said of LiveMathematicianBench's tasks: to the target, and to analysts."""

from __future__ import annotations

from skillopt_es.adapters.environments.episodes import prompt_text
from skillopt_es.adapters.environments.livemath.choices import Choices, shown

GUIDE = prompt_text(__package__, "guide")
_ROLE = "You are an expert mathematician who answers multiple-choice questions on research-level theorems."
_RULES = prompt_text(__package__, "rules")
RECHECK = prompt_text(__package__, "recheck")


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, skill_section, _RULES) if part)


def user_prompt(question: str, choices: Choices, *, theorem: str = "", sketch: str = "") -> str:
    """The user message of one item; theorem and sketch only where they are to be shown."""
    parts = [f"## Question\n{question}", f"## Choices\n{shown(choices.all)}"]
    parts += [f"## Theorem\n{theorem}"] if theorem else []
    parts += [f"## Proof sketch\n{sketch}"] if sketch else []
    return "\n\n".join(parts)
