"""A private folder for one run of an agent: the skill where the agent looks for skills, nothing else."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from attrs import evolve, frozen

from skillopt_es.adapters.environments.episodes import skill_section
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import CallFailed, Message

_NAME = "trained-skill"
_MAIN = "SKILL.md"
_DESCRIPTION = "How to do the tasks of this workspace. Read it before every task."
_FITS = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_ELSEWHERE = "## Skill\n(The skill is in {place}.)"


@frozen
class Rooms:
    """The folders of one run; only `workspace` is shown to the agent. All of them are gone after it."""

    base: Path
    workspace: Path
    home: Path
    temporary: Path
    notes: Path


def make_rooms() -> Rooms:
    """New, empty folders that nobody else can read."""
    base = Path(tempfile.mkdtemp(prefix="skillopt-agent-")).resolve()
    rooms = Rooms(base, *(base / name for name in ("workspace", "home", "tmp", "notes")))
    for folder in (rooms.workspace, rooms.home, rooms.temporary, rooms.notes):
        folder.mkdir()
    return rooms


def remove_rooms(rooms: Rooms) -> None:
    """Removes them; what an agent made unremovable stays behind."""
    shutil.rmtree(rooms.base, ignore_errors=True)


def skill_name(skill: SkillTree) -> str:
    """The name under which agents know the skill: its own, if it has a fitting one."""
    found = _FRONT_MATTER.match(skill.text)
    try:
        own = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        own = None
    name = own.get("name") if isinstance(own, dict) else None
    return name if isinstance(name, str) and _FITS.fullmatch(name) else _NAME


def place_skill(skill: SkillTree, rooms: Rooms, folder: str) -> str:
    """Writes the skill's files into its folder among the agent's skills; the place of the main one."""
    home = rooms.workspace / folder / skill_name(skill)
    others = {path: text for path, text in skill.files.items() if path != skill.main}
    # Agents know a skill by this file's name, whatever the file is called that it is trained from.
    for path, text in {**others, _MAIN: _named(skill.text)}.items():
        file = (home / path).resolve()
        if not file.is_relative_to(home):
            raise CallFailed("config", f"the skill's file {path!r} would be outside the skill's folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    return f"{folder}/{skill_name(skill)}/{_MAIN}"


def _named(text: str) -> str:
    """Agents find a skill by the name and description in its front matter; one that has any is left as it is."""
    if _FRONT_MATTER.match(text):
        return text
    return f"---\nname: {_NAME}\ndescription: {_DESCRIPTION}\n---\n\n{text}"


def without_skill(messages: Sequence[Message], skill: SkillTree, place: str) -> list[Message]:
    """The messages with the skill's text replaced by its place; a message that shows it otherwise stays as it is."""
    section, instead = skill_section(skill), _ELSEWHERE.format(place=place)
    return [
        evolve(each, content=each.content.replace(section, instead)) if each.role == "system" else each
        for each in messages
    ]
