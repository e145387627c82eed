"""
The system prompts of the optimizer, one file each; what goes into the user message is built by the stages.

A release may reword a prompt. A run that began before keeps the answers that it has: `replay --check` and `resume` find
them by their place, and what is asked from then on is asked in the new words.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def system_prompt(name: str) -> str:
    """The text of a prompt."""
    return (resources.files("skillopt_es.prompts") / f"{name}.md").read_text(encoding="utf-8").strip()
