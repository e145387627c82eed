"""What one run of an agent is given: a private folder with the skill where the agent looks for it, and its orders."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml
from attrs import evolve, frozen

from skillopt_es.adapters.environments.episodes import skill_section
from skillopt_es.adapters.harnesses.agent import Access
from skillopt_es.events.values import FileContent, SkillTree
from skillopt_es.ports import AgentStep, CallFailed, Message, MessageRole

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
    # Without links: `_placeless` looks for this text in what agents report, and they report resolved paths.
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
    others = {path: each for path, each in skill.contents.items() if path != skill.main}
    # Agents know a skill by this file's name, whatever the file is called that it is trained from.
    _write({**others, _MAIN: FileContent(_named(skill.text).encode())}, rooms.workspace / folder / skill_name(skill))
    return f"{folder}/{skill_name(skill)}/{_MAIN}"


def place_skills(skills: SkillTree, rooms: Rooms, folder: str) -> None:
    """Writes a folder of skills as the agent's own: it finds names and descriptions there, and opens what fits."""
    _write(skills.contents, rooms.workspace / folder)


def _write(files: Mapping[str, FileContent], home: Path) -> None:
    for path, each in files.items():
        file = (home / path).resolve()
        if not file.is_relative_to(home):
            raise CallFailed("config", f"the skill's file {path!r} would be outside the skill's folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.content)
        if each.executable:
            file.chmod(0o755)


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


_ALONE = "You work alone: nobody can answer a question or grant a permission."
_SKILL = "First read the skill `{name}` in {place} and all that it refers to, and follow it."
_ACCESS: dict[Access, str] = {
    "none": "Answer from this text alone; use no tools.",
    "read": "Do not modify files.",
    "edit": "You may modify files in this folder, and only there.",
    "full": "You may modify files in this folder and run programs.",
}
_ANSWER = (
    "Your last message is taken as the answer. It must be just what is asked for, in the form that is asked for, and "
    "say nothing about how you got there."
)
_EMPTY = "An earlier run of this task ended without an answer. This time, end with one."
_HEADINGS: dict[MessageRole, str] = {
    "system": "# Instructions",
    "user": "# Task",
    "assistant": "# Your answer so far",
}
WORDING = hashlib.sha256("\n".join((_ALONE, _SKILL, *_ACCESS.values(), _ANSWER, *_HEADINGS.values())).encode())


def wording() -> str:
    """Names the wording of all prompts: a change of it makes another request of the same question."""
    return WORDING.hexdigest()[:8]


def prompt_for(messages: Sequence[Message], *, access: Access, skill: tuple[str, str] | None, emptied: bool) -> str:
    """The whole prompt; `skill` is the name and the place of the skill, `emptied` that an earlier try said nothing."""
    parts = [_ALONE]
    if skill is not None:
        parts.append(_SKILL.format(name=skill[0], place=skill[1]))
    parts += [_ACCESS[access], _ANSWER]
    if emptied:
        parts.append(_EMPTY)
    talk = [f"{_HEADINGS[each.role]}\n\n{each.content.strip()}" for each in messages if each.content.strip()]
    return "\n\n".join([" ".join(parts), *talk]) + "\n"


def mentioned(prompt: str, skills: SkillTree, sign: str) -> Iterator[AgentStep]:
    """The skills that an agent read because the prompt names them, of which its own account has nothing."""
    if not sign:
        return
    found = dict.fromkeys(re.findall(re.escape(sign) + r"([\w:-]+)", prompt))
    for name in found:
        if f"{name}/{_MAIN}" in skills.files:
            yield AgentStep(kind="tool", text=f'skill {{"name": "{name}"}} (the task names it)', ok=True)
