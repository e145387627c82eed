"""What no edit may be: our own prompt, a piece of the question, or what was refused already. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillopt_es.algorithms.search.state import Tried
from skillopt_es.algorithms.search.steps import what_it_does
from skillopt_es.events.values import Edit

_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"^\s*~{4,}", re.MULTILINE)
_OWN_WORDS = 8
"""So many words in a row of a prompt are no chance."""
_HEADING = re.compile(
    r"^\s*#+\s*(?:Current skill|Edits that (?:were refused|helped) before|(?:Successful|Failed) trajectories)",
    re.MULTILINE,
)


def refused_before(edit: Edit, tried: Iterable[Tried]) -> tuple[Tried, ...]:
    """
    The refused edits that did what an edit does, wherever it stands, so that it is not tried; none where it may be.

    One that only the gate refused, in company, may be given once more, and so may one that has fixed a task, perhaps by
    luck, and one for other tasks than before.
    """
    same = [each for each in tried if what_it_does(edit) == what_it_does(each.edit)]
    final = len(same) > 1 or any(each.alone and set(edit.claims) <= set(each.edit.claims) for each in same)
    return tuple(same) if final else ()


def refusal(edit: Edit, *, prompt: str, skill: str) -> str:
    """Why an edit is no rule at all; empty for one that may be."""
    if _FENCE.search(edit.content) or _HEADING.search(edit.content):
        return "it repeats a heading or a fence of the question"
    told = joined(prompt)
    known = joined(skill)
    words = _WORD.findall(edit.content.casefold())
    for start in range(len(words) - _OWN_WORDS + 1):
        run = f" {' '.join(words[start : start + _OWN_WORDS])} "
        if run in told and run not in known:
            return f"it repeats the instructions of the question: “{run.strip()}”"
    return ""


def joined(text: str) -> str:
    """Its words between single spaces, without regard to case and signs."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
