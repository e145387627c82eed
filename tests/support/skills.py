"""Folders of skills for tests."""

from __future__ import annotations

from skillopt_es.events.values import SkillTree


def skill(name: str, description: str = "What it is for.", body: str = "- a rule", more: str = "") -> str:
    """The text of a SKILL.md."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"


def folder(**files: str) -> SkillTree:
    """Skills by name, each a file."""
    return SkillTree(files={f"{name}/SKILL.md": text for name, text in files.items()}, main="")
