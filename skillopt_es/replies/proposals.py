"""Proposals as a whole: what can be parsed, yet proposes nothing that can be tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.replies.answers import MergeReply
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.skill.edits import apply_edits

_MISPLACED = ("_missing_target", "_target_not_found")


class WithEdits(Protocol):
    """A reply with edits."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in their order."""
        ...


P = TypeVar("P", bound=WithEdits)


def placed_in(skill: SkillTree, read: Callable[[str], P | Unusable]) -> Callable[[str], P | Unusable]:
    """The reader, for which a reply is unusable when each of its edits has a target that is not in the skill."""

    def read_placed(text: str) -> P | Unusable:
        reply = read(text)
        if isinstance(reply, Unusable) or not reply.edits:
            return reply
        _, reports = apply_edits(skill, reply.edits)
        if not all(report.status.endswith(_MISPLACED) for report in reports):
            return reply
        lost = reply.edits[0]
        return Unusable(
            f"the skill does not contain {lost.target!r}, the `target` of a `{lost.op}`; copy a `target` from the "
            'skill, and give a new rule as an `append` with `target` ""'
        )

    return read_placed


def not_empty(read: Callable[[str], MergeReply | Unusable]) -> Callable[[str], MergeReply | Unusable]:
    """The reader, for which a merge to nothing is unusable: what helps is for the gate to measure."""

    def read_some(text: str) -> MergeReply | Unusable:
        reply = read(text)
        if isinstance(reply, Unusable) or reply.edits or reply.suggestions or reply.drafts:
            return reply
        return Unusable("the list is empty, which would throw every proposal away; combine them")

    return read_some
