"""
What an edit that appends brings, and where: only what is new, rule by rule, and a general rule before its exceptions.

Where two rules speak of one task an agent mostly keeps to the last. A rule for a group that is learned late would thus
undo each exception that was learned before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from attrs import evolve as replace

from skillopt_es.algorithms.search.credit import spoken_of, telling_words
from skillopt_es.algorithms.search.refusing import joined
from skillopt_es.algorithms.search.state import Kept
from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.skill.alignment import align
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.regions import protected_spans
from skillopt_es.skill.rewriting import frontmatter, own_words

_WRAPPED = re.compile(r"\A\s*(`{3,}|~{3,})[^\n]*\n(.*?)\n?[ \t]*\1\s*\Z", re.DOTALL)
_FENCE = re.compile(r"^\s*(?:`{3}|~{3})", re.MULTILINE)
_HEADING = re.compile(r"^\s*(?:#|.*:\**\s*$)")
_WHOLE = re.compile(r"^(?:[-*+•]\s|.*[.!;]\W*$)")  # an item of a list, or a sentence
_NO_RULE = re.compile(r"^(?:\s|#|\d+[.)]|.*:\**\s*$)")


def aimed(edit: Edit, skill: SkillTree) -> Edit:
    """The edit with the line of the skill as its target that has the words of it, where it names none as it stands."""
    text = _text(edit, skill)
    if not edit.target.strip() or edit.target in text:
        return edit
    same = [
        line for line in own_words(text).splitlines() if joined(line).strip() and joined(line) == joined(edit.target)
    ]
    return replace(edit, target=same[0].strip()) if len(same) == 1 else edit


def only_new(edit: Edit, skill: SkillTree) -> Edit | None:
    """The edit without the skill, where it gives that back to add something; None where it adds nothing."""
    there = [line.strip() for line in own_words(_text(edit, skill)).splitlines() if line.strip()]
    if edit.op != "append" or not there:
        return edit
    wrapped = _WRAPPED.match(edit.content)
    lines = own_words(wrapped[2] if wrapped else edit.content).splitlines()
    filled = [number for number, line in enumerate(lines) if line.strip()]
    same = {
        filled[run.new_start + at]
        for run in align("\n".join(there), "\n".join(lines[number].strip() for number in filled))
        for at in range(run.length)
    }
    if 4 * len(same) < 3 * len(there) or _goes_on(lines, filled, same):
        return edit
    new = "\n".join(line for number, line in enumerate(lines) if number not in same)
    if len(_FENCE.findall(new)) % 2:  # a piece of a block
        return edit
    return replace(edit, content=re.sub(r"\n\s*\n", "\n\n", new).strip("\n")) if new.strip() else None


def _goes_on(lines: Sequence[str], filled: Sequence[int], same: set[int]) -> bool:
    """Whether a new heading is followed by lines that are there: then these are said of something else as well."""
    return any(at not in same and after in same and _HEADING.match(lines[at]) for at, after in pairwise(filled))


def rules_in(edit: Edit, failing: Collection[str], tasks: Mapping[str, str]) -> tuple[Edit, ...]:
    """
    Each rule as an edit of its own, where the lines are rules for different failing tasks; else the edit as it is.

    So each gets the credit of its own tasks, and a wrong one takes no other with it. What speaks of no failing task is
    an edit of its own, too.
    """
    lines = [line for line in edit.content.splitlines() if line.strip()]
    about = {line: [item for item in spoken_of(line, tasks) if item in failing] for line in lines}
    rules = [line for line in lines if about[line]]
    spoken = [item for line in rules for item in about[line]]
    several = len(rules) > 1 and len(spoken) == len(set(spoken))
    apart = all(_WHOLE.match(line) and not belongs_to_others(line) for line in lines)
    if edit.op != "append" or not several or not apart or _FENCE.search(edit.content):
        return (edit,)
    rest = "\n".join(line for line in lines if not about[line])
    parts = [replace(edit, content=line, claims=_among(edit.claims, about[line])) for line in rules]
    return (*parts, replace(edit, content=rest, claims=())) if rest else tuple(parts)


def _among(claims: Iterable[str], items: Collection[str]) -> tuple[str, ...]:
    return tuple(item for item in claims if item in items)


def belongs_to_others(line: str) -> bool:
    """Whether a line belongs to what stands around it: a heading, a step, one that is indented."""
    return _NO_RULE.match(line) is not None


def in_place_of(old: Edit, new: Edit) -> Edit:
    """What is appended takes the place of what an older edit brought."""
    return replace(new, op="replace", target=old.content.strip(), file=old.file) if new.op == "append" else new


def put_in(
    edit: Edit, kept: Iterable[Kept], skill: SkillTree, tasks: Mapping[str, str], *, close_gaps: bool
) -> tuple[Edit, ...]:
    """The edit in its place; where it appends what stands in the skill already, that is taken out first."""
    out, *_ = moved(edit, skill)
    if out == edit:
        return (placed(edit, kept, skill, tasks),)
    return out, placed(edit, kept, apply_edits(skill, [out], close_gaps=close_gaps)[0], tasks)


def moved(edit: Edit, skill: SkillTree) -> tuple[Edit, ...]:
    """The edit; where it appends what stands in the skill already, that is taken out first, so that it comes last."""
    content, text = edit.content.strip(), _text(edit, skill)
    if edit.op != "append" or not content or f"\n{content}\n" not in f"\n{text}\n" or text.rstrip().endswith(content):
        return (edit,)
    return replace(edit, op="delete", target=content, content=""), edit


def placed(edit: Edit, kept: Iterable[Kept], skill: SkillTree, tasks: Mapping[str, str]) -> Edit:
    """
    The edit before the first of its exceptions among the kept edits; at the end if it has none.

    What says several things in several lines stays together at the end: it may correct some of them.
    """
    if edit.op != "append" or "\n" in edit.content.strip():
        return edit
    text = _text(edit, skill)
    files = (each for each in kept if (each.edit.file or skill.main) == (edit.file or skill.main))
    starts = (_start(text, each.edit.content.strip()) for each in files if is_exception(each, edit, tasks))
    anchor = _anchor(text, min((start for start in starts if start >= 0), default=0))
    return replace(edit, op="insert_after", target=anchor) if anchor else edit


def is_exception(kept: Kept, edit: Edit, tasks: Mapping[str, str]) -> bool:
    """
    Whether a kept edit is for some of the tasks that an edit is for, and for no other.

    The edit has a word, then, that its own tasks share with those that the kept one has fixed, and the kept one speaks
    of no task without that word. One common word or another joins nearly any two rules.
    """
    spoken = set(spoken_of(kept.edit.content, tasks))
    own = {item for item in kept.items if item in tasks}
    claimed = set(edit.claims) & set(spoken_of(edit.content, tasks))
    if not spoken:
        return False
    return any(spoken < group and own <= group and claimed <= group for group in telling_words(edit.content, tasks))


def _text(edit: Edit, skill: SkillTree) -> str:
    return skill.files.get(edit.file or skill.main, "")


def _start(text: str, content: str) -> int:
    """Where whole lines stand in what edits may change, or -1."""
    return next((at for at in _places(text, content) if at >= _free_from(text, at)), -1) if content else -1


def _places(text: str, content: str) -> Iterator[int]:
    at = f"\n{text}\n".find(f"\n{content}\n")
    while at >= 0:
        yield at
        at = f"\n{text}\n".find(f"\n{content}\n", at + 1)


def _free_from(text: str, place: int) -> int:
    """From where on edits may change what stands before a place; behind it, if that is protected itself."""
    spans = protected_spans(text)
    return max([len(frontmatter(text)), *(span.end for span in spans if span.start <= place)])


def _anchor(text: str, start: int) -> str:
    """The last lines before a place, as many as stand nowhere before it; empty where there is nothing before it."""
    first = _free_from(text, start)
    lines = text[first:start].rstrip().splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        anchor = "".join(lines[number:]).strip("\n")
        if anchor.strip() and text.find(anchor) == first + len("".join(lines[:number])):
            return anchor
    return ""
