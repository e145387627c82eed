"""What is said of DocVQA's tasks: to the target, and to analysts."""

from __future__ import annotations

from skillopt_es.adapters.environments.episodes import prompt_text

GUIDE = prompt_text(__package__, "guide")
_ROLE = "You are an expert at reading images of documents."
_RULES = prompt_text(__package__, "rules")
_REMINDER = "Give the final answer inside <answer> and </answer> tags."

RECHECK = prompt_text(__package__, "recheck")


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, skill_section, _RULES) if part)


def user_prompt(question: str) -> str:
    """The text beside the image."""
    return f"{question}\n\n{_REMINDER}"
