"""Where a skill file comes from, as far as its place tells: what the original released, or wrote as a result."""

from __future__ import annotations

import re
from pathlib import Path

_RELEASED = re.compile(r"(?P<model>.+)_skill\.md")
_STEP = re.compile(r"skill_v0*(?P<step>\d+)\.md")


def origin_of(path: Path) -> str:
    """One sentence without the names of folders above; empty where nothing is known."""
    path = path.resolve()
    folder, above = path.parent, path.parent.parent
    released = _RELEASED.fullmatch(path.name)
    if released and above.name == "ckpt":
        return f"{path.name} was released with SkillOpt for {folder.name}, trained with {released['model']}"
    if path.name == "best_skill.md" and _is_result(folder):
        return f"{path.name} is the best skill of the SkillOpt results in {folder.name}"
    step = _STEP.fullmatch(path.name)
    if step and folder.name == "skills" and _is_result(above):
        when = f"after step {step['step']}" if int(step["step"]) else "at the beginning"
        return f"{path.name} is the skill {when} of the SkillOpt results in {above.name}"
    return ""


def _is_result(folder: Path) -> bool:
    return (folder / "history.json").is_file() and (folder / "skills").is_dir()
