"""What no edit may be: our own prompt, a piece of the question, or what was refused already. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillopt_es.events.values import Edit
from skillopt_es.programs.search.state import Tried

_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"^\s*~{4,}", re.MULTILINE)
_OWN_WORDS = 8
"""So many words in a row of a prompt are no chance."""
_HEADING = re.compile(
    r"^\s*#+\s*(?:Current skill|Edits that (?:were refused|helped) before|(?:Successful|Failed) trajectories)",
    re.MULTILINE,
)


def refusal(edit: Edit, *, prompt: str, skill: str, tried: Iterable[Tried]) -> str:
    """Why an edit is not worth a try; empty for one that is."""
    if any(_same(edit, each.edit) for each in tried):
        return "it was refused before, word for word"
    if _FENCE.search(edit.content) or _HEADING.search(edit.content):
        return "it repeats a heading or a fence of the question"
    told = _joined(prompt)
    known = _joined(skill)
    words = _WORD.findall(edit.content.casefold())
    for start in range(len(words) - _OWN_WORDS + 1):
        run = f" {' '.join(words[start : start + _OWN_WORDS])} "
        if run in told and run not in known:
            return f"it repeats the instructions of the question: “{run.strip()}”"
    return ""


def _same(one: Edit, other: Edit) -> bool:
    return (one.op, one.file, _joined(one.target), _joined(one.content)) == (
        other.op,
        other.file,
        _joined(other.target),
        _joined(other.content),
    )


def _joined(text: str) -> str:
    """Its words between single spaces, without regard to case and signs."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
