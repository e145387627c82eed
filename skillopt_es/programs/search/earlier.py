"""
What earlier versions of the search took of an answer: their logs say the same when they are read and checked.

Version 1 took claims as they were named. Up to version 2 every edit was appended as it came. Version 3 joined rules by
any word that they had in common, and looked for refused edits before it had placed them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve as replace

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.programs.search.credit import spoken_of
from skillopt_es.programs.search.placing import in_place_of, moved
from skillopt_es.programs.search.refusing import REFUSED_BEFORE, joined, refusal
from skillopt_es.programs.search.state import Tried
from skillopt_es.programs.search.taking import Asked, Taken, speaks_of, with_claims

_FEW = 3  # lines that are there already by chance: headings, short items
_FENCE = re.compile(r"^\s*(?:`{3}|~{3})", re.MULTILINE)


def taken_before(version: int, given: Sequence[Edit], asked: Asked) -> Taken:
    """What a version before the fourth tried of an answer's edits."""
    whys = {
        edit: f"{REFUSED_BEFORE}, word for word"
        if refused_word_for_word(edit, asked.told)
        else refusal(edit, prompt=asked.prompt, skill=asked.skill.text)
        for edit in given
    }
    edits = list[Edit]()
    for edit in (edit for edit, why in whys.items() if not why):
        new = edit if asked.old is None else in_place_of(asked.old.edit, edit)
        for each in moved(new, asked.skill) if version < 3 else _put_in(new, asked):
            claimed = with_claims if version > 1 else with_claims_as_named
            edits.append(claimed(each, asked.failing, asked.tasks))
    refused = {edit.content: why for edit, why in whys.items() if why}
    return Taken(tuple(edits), refused, {edit.content: refused_word_for_word(edit, asked.told) for edit in given})


def refused_word_for_word(edit: Edit, tried: Iterable[Tried]) -> tuple[Tried, ...]:
    """The refused edits with the words, kind and target of an edit, which is not tried then."""
    return tuple(each for each in tried if _same(edit, each.edit))


def _same(one: Edit, other: Edit) -> bool:
    return (one.op, one.file, joined(one.target), joined(one.content)) == (
        other.op,
        other.file,
        joined(other.target),
        joined(other.content),
    )


def with_claims_as_named(edit: Edit, failing: Sequence[str], tasks: Mapping[str, str]) -> Edit:
    """An edit that names no task claims those that it speaks of."""
    if edit.claims:
        return edit
    spoken = speaks_of(edit, failing, tasks)
    return replace(edit, claims=spoken, claims_assumed=bool(spoken))


def _put_in(edit: Edit, asked: Asked) -> tuple[Edit, ...]:
    new = lines_not_there(edit, asked.skill)
    again = moved(new, asked.skill)
    kept = (each.edit for each in asked.kept)
    return again if len(again) > 1 else (before_narrower(new, kept, asked.skill, {**asked.known, **asked.tasks}),)


def lines_not_there(edit: Edit, skill: SkillTree) -> Edit:
    """The edit without lines that the skill has anywhere, where they are most of it."""
    if edit.op != "append" or _FENCE.search(edit.content):
        return edit
    there = set(map(str.strip, skill.files.get(edit.file or skill.main, "").splitlines()))
    lines = edit.content.splitlines()
    new = [line for line in lines if not line.strip() or line.strip() not in there]
    many, left = sum(map(bool, map(str.strip, lines))), sum(map(bool, map(str.strip, new)))
    if not left or many - left < max(_FEW, left):
        return edit
    return replace(edit, content=re.sub(r"\n\s*\n", "\n\n", "\n".join(new)).strip("\n"))


def before_narrower(edit: Edit, kept: Iterable[Edit], skill: SkillTree, tasks: Mapping[str, str]) -> Edit:
    """The edit before the first kept one that speaks of some of its tasks and of no other, by any of its words."""
    if edit.op != "append" or "\n" in edit.content.strip():
        return edit
    text = skill.files.get(edit.file or skill.main, "")
    about = set(spoken_of(edit.content, tasks))
    files = (each for each in kept if (each.file or skill.main) == (edit.file or skill.main))
    spoken = ((each, set(spoken_of(each.content, tasks))) for each in files)
    starts = [f"\n{text}\n".find(f"\n{each.content.strip()}\n") for each, said in spoken if said and said < about]
    anchor = _anchor(text, min((start for start in starts if start >= 0), default=0))
    return replace(edit, op="insert_after", target=anchor) if anchor else edit


def _anchor(text: str, start: int) -> str:
    lines = text[:start].rstrip().splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        anchor = "".join(lines[number:]).strip("\n")
        if anchor.strip() and text.find(anchor) == len("".join(lines[:number])):
            return anchor
    return ""
