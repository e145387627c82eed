"""
What an edit that appends brings, and where: only what is new, and a rule for many tasks before those for some of them.

Where two rules speak of one task an agent mostly keeps to the last. A rule for a group that is learned late would thus
undo each exception that was learned before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from attrs import evolve as replace

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.programs.search.credit import spoken_of

_FEW = 3  # lines that are there already by chance: headings, short items
_FENCE = re.compile(r"^\s*(?:`{3}|~{3})", re.MULTILINE)


def only_new(edit: Edit, skill: SkillTree) -> Edit:
    """The edit without what the skill says already, where that is most of it: some optimizers give all of it back."""
    if edit.op != "append" or _FENCE.search(edit.content):  # lines of a block belong together
        return edit
    there = set(map(str.strip, skill.files.get(edit.file or skill.main, "").splitlines()))
    lines = edit.content.splitlines()
    new = [line for line in lines if not line.strip() or line.strip() not in there]
    many, left = sum(map(bool, map(str.strip, lines))), sum(map(bool, map(str.strip, new)))
    if not left or many - left < max(_FEW, left):
        return edit
    return replace(edit, content=re.sub(r"\n\s*\n", "\n\n", "\n".join(new)).strip("\n"))


def placed(edit: Edit, kept: Iterable[Edit], skill: SkillTree, tasks: Mapping[str, str]) -> Edit:
    """
    The edit before the first kept one that speaks of some of its tasks and of no other; at the end if none does.

    What says several things in several lines stays together at the end: it may correct some of them.
    """
    if edit.op != "append" or "\n" in edit.content.strip():
        return edit
    text = skill.files.get(edit.file or skill.main, "")
    about = set(spoken_of(edit.content, tasks))
    files = (each for each in kept if (each.file or skill.main) == (edit.file or skill.main))
    starts = [_start(text, each.content.strip()) for each in files if _narrower(each, about, tasks)]
    anchor = _anchor(text, min((start for start in starts if start >= 0), default=0))
    return replace(edit, op="insert_after", target=anchor) if anchor else edit


def _narrower(edit: Edit, about: set[str], tasks: Mapping[str, str]) -> bool:
    spoken = set(spoken_of(edit.content, tasks))
    return bool(spoken) and spoken < about


def _start(text: str, content: str) -> int:
    """Where whole lines stand in a text, or -1."""
    return f"\n{text}\n".find(f"\n{content}\n") if content else -1


def _anchor(text: str, start: int) -> str:
    """The last lines before a place, as many as stand nowhere before it; empty where there is nothing before it."""
    lines = text[:start].rstrip().splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        anchor = "".join(lines[number:]).strip("\n")
        if anchor.strip() and text.find(anchor) == len("".join(lines[:number])):
            return anchor
    return ""
