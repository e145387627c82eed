"""
The system prompts of the optimizer, one file each; what goes into the user message is built by the stages.

A reworded prompt makes other requests, so `replay --check` and `resume` do not find the recorded answers of runs that
began before: they need the software that the run began with.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def system_prompt(name: str) -> str:
    """The text of a prompt."""
    return (resources.files("skillopt_es.prompts") / f"{name}.md").read_text(encoding="utf-8").strip()
