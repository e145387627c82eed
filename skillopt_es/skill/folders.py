"""
A folder of skills as agents see it: which skills there are, what each is called and described as, and what is wrong.

Each skill is a folder with a SKILL.md, whose frontmatter names and describes it, and perhaps further files.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skillopt_es.events.values import SkillTree
from skillopt_es.skill.frontmatter import LONGEST_DESCRIPTION, NAME_RULE, fields_of, is_name
from skillopt_es.skill.rewriting import frontmatter

SKILL_FILE = "SKILL.md"
MOST_SKILLS = 100  # an agent reads all names and descriptions at each task's start: of a hundred at most 27,000 tokens
MOST_FILE = 100_000  # characters, 25,000 tokens: an agent that opens it has to read it whole
MOST_FILES = 64  # of one skill: more are data, and a skill's texts all go into the questions about it
MOST_ASSET = 2_000_000  # bytes: assets are kept in the log, which is copied with each fork
MOST_ASSETS = 10_000_000  # bytes, of one skill's together; see `MOST_ASSET`

EMPTY = SkillTree(files={}, main="")
"""The folder that has no skill yet."""


@frozen(kw_only=True)
class SkillEntry:
    """One skill of a folder: what its frontmatter says, its own words, and the paths of its other files."""

    id: str
    description: str
    body: str
    always: bool
    others: tuple[str, ...]

    @property
    def path(self) -> str:
        """Its main file."""
        return main_file(self.id)


def main_file(skill: str) -> str:
    """The path of a skill's own SKILL.md in its folder of skills."""
    return f"{skill}/{SKILL_FILE}"


def skill_of(path: str) -> str:
    """The skill that a file of a folder of skills belongs to."""
    return path.partition("/")[0]


def skills_in(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The skills that files belong to, each once, in the order of their names."""
    return tuple(sorted({skill_of(path) for path in paths}))


def ids_of(tree: SkillTree) -> tuple[str, ...]:
    """The skills of a folder, by name."""
    return skills_in(tuple(tree.files))


def files_of(tree: SkillTree, skill: str) -> Mapping[str, str]:
    """The files of one skill, by their paths in the folder of skills."""
    return {path: text for path, text in sorted(tree.files.items()) if skill_of(path) == skill}


def entry_of(tree: SkillTree, skill: str) -> SkillEntry:
    """One skill of a folder without faults."""
    files = files_of(tree, skill)
    text = files[main_file(skill)]
    head = frontmatter(text)
    said = fields_of(head)
    return SkillEntry(
        id=skill,
        description=" ".join(str(said["description"]).split()),
        body=text[len(head) :].strip(),
        always=said.get("always") is True,
        others=tuple(path for path in files if path != main_file(skill)),
    )


def entries_of(tree: SkillTree) -> tuple[SkillEntry, ...]:
    """All skills of a folder without faults."""
    return tuple(entry_of(tree, skill) for skill in ids_of(tree))


# --- what an agent is shown before it opens anything ---------------------------------------------------------------

_HOW = (
    "You have skills: short documents that say how tasks of one kind are to be done. Read their names and "
    "descriptions. If one fits the task, open it with the tool `skill_view` before you answer, and follow it. Open "
    "only what fits."
)


SHOWN_BY_AGENTS = 8_000
"""Characters of names and descriptions after which agents begin to leave some out."""


def listing_of(tree: SkillTree) -> str:
    """The skills by name and description, a line each; those that are always shown need no line."""
    return "\n".join(f"- {each.id}: {each.description}" for each in entries_of(tree) if not each.always)


def index_of(tree: SkillTree) -> str:
    """All that an agent is shown of a folder before it opens anything; nothing of an empty one."""
    listing = listing_of(tree)
    shown = [f"### {each.id}\n{each.body}" for each in entries_of(tree) if each.always]
    return "\n\n".join([*([f"{_HOW}\n\n{listing}"] if listing else []), *shown])


def always_shown(tree: SkillTree) -> tuple[str, ...]:
    """The files that an agent is shown without asking."""
    return tuple(each.path for each in entries_of(tree) if each.always)


# --- what is wrong ---------------------------------------------------------------------------------------------------


def problem_of(tree: SkillTree) -> str:
    """What keeps agents from loading a folder of skills, as a sentence; empty when nothing does."""
    return problem_in(tree, ids_of(tree))


def problem_in(tree: SkillTree, skills: tuple[str, ...]) -> str:
    """What is wrong with those of these skills that are there, and with how many there are."""
    there = ids_of(tree)
    if len(there) > MOST_SKILLS:
        return f"there are {len(there)} skills, and an agent can choose among {MOST_SKILLS} at most"
    for path in sorted(path for path in tree.files if skill_of(path) in skills):
        problem = path_problem(path) or _size_problem(path, tree.files[path])
        if problem:
            return problem
    for path in sorted(tree.assets):
        if skill_of(path) not in there:
            return f"{skill_of(path)} has no {SKILL_FILE}"
    return next((found for skill in there if skill in skills and (found := _skill_problem(tree, skill))), "")


def leads_out(path: str) -> bool:
    """Whether a path does not name a file below its folder."""
    return bool({"", ".", ".."} & {*path.split("/")}) or "\\" in path or "\x00" in path


def path_problem(path: str) -> str:
    """What is wrong with where a file lies; empty when nothing is."""
    if leads_out(path):
        return f"{path!r} is no path below the folder of skills"
    skill, _, file = path.partition("/")
    if not file:
        return f"{path} belongs to no skill: each skill has a folder of its own"
    return "" if is_name(skill) else f"{skill!r} is not a name for a skill: {NAME_RULE}"


def _size_problem(path: str, text: str) -> str:
    if len(text) > MOST_FILE:
        return f"{path} has {len(text):,} characters, and {MOST_FILE:,} are allowed"
    return f"{path} is not text" if "\x00" in text else ""


def _skill_problem(tree: SkillTree, skill: str) -> str:
    """What is wrong with one skill."""
    files = files_of(tree, skill)
    if main_file(skill) not in files:
        return f"{skill} has no {SKILL_FILE}"
    if len(files) > MOST_FILES:
        return f"{skill} has {len(files)} files, and {MOST_FILES} are allowed"
    return head_problem(files[main_file(skill)], skill)


def head_problem(text: str, skill: str) -> str:
    """What is wrong with the frontmatter of a SKILL.md, for a skill of this name."""
    head, path = frontmatter(text), main_file(skill)
    if not head:
        return f"{path} has no frontmatter with a name and a description"
    try:
        said = fields_of(head)
    except ValueError as error:
        return f"{path}: its {error}"
    if said.get("name") != skill:
        return f"{path} says that its name is {said.get('name')!r}, and its folder is called {skill}"
    description = said.get("description")
    if not isinstance(description, str) or not description.strip():
        return f"{path} has no description"
    if len(description) > LONGEST_DESCRIPTION:
        return f"{path}: its description has {len(description):,} characters, and {LONGEST_DESCRIPTION:,} are allowed"
    return ""
