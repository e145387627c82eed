"""
The system prompts of the optimizer, one file each; what goes into the user message is built by the stages.

A run records the version of the prompts that it began with, and keeps it: its recorded answers are answers to those. A
version's folder holds the prompts that changed with it. The rest are those of the versions before.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

LATEST = 5
"""What new runs begin with."""


@cache
def system_prompt(name: str, version: int = LATEST) -> str:
    """The text of a prompt in a version."""
    folder = resources.files("skillopt_es.prompts")
    files = (folder / f"v{number}" / f"{name}.md" for number in range(version, 0, -1))
    return next(file for file in files if file.is_file()).read_text(encoding="utf-8").strip()
