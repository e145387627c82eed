"""What is said of SearchQA's tasks: to the target, and to analysts."""

from __future__ import annotations

from skillopt_es.adapters.environments.episodes import prompt_text

GUIDE = prompt_text(__package__, "guide")
_ROLE = "You are an expert at answering questions from search results."
_RULES = prompt_text(__package__, "rules")
RECHECK = prompt_text(__package__, "recheck")
_MARKER = "[DOC]"
_CUT = "[... the context is cut here ...]"


def system_prompt(skill_section: str) -> str:
    """The system prompt around a skill section, which may be empty."""
    return "\n\n".join(part for part in (_ROLE, skill_section, _RULES) if part)


def user_prompt(context: str, question: str, *, budget: int) -> str:
    """The user message of one item, its context within `budget` characters."""
    return f"## Context\n{truncate(context, budget)}\n\n## Question\n{question}"


def truncate(context: str, budget: int) -> str:
    """The context's whole leading passages within `budget` characters; a hard cut when not even one fits."""
    if len(context) <= budget:
        return context
    kept = ""
    for passage in context.split(_MARKER):
        # The first passage joins an empty text and so loses its marker, as in the original.
        longer = f"{kept}{_MARKER}{passage}" if kept else passage
        if len(longer) > budget:
            break
        kept = longer
    return kept or f"{context[:budget]}\n{_CUT}"
