"""What an agent is told: how to work, and the conversation as one text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from skillopt_es.adapters.harnesses.agent import Access
from skillopt_es.ports import Message, MessageRole

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
