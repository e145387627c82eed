"""The system prompts of the optimizer, one file each; what goes into the user message is built by the stages."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def system_prompt(name: str) -> str:
    """The text of `prompts/<name>.md`."""
    return (resources.files("skillopt_es.prompts") / f"{name}.md").read_text(encoding="utf-8").strip()
