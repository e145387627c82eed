"""The open step of a search: what has been collected of it, and its changes in the order in which they are applied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.events.catalog import CandidateBuilt, EditsRanked, PatchProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch, Credit, Edit, Minibatch, Tries

_ALL = 1_000_000  # tasks that an edit is for that names none


@frozen(kw_only=True)
class Saved:
    """An edit that had earned its credit, and was refused with others at the gate: it is tried again without them."""

    edit: Edit
    items: tuple[str, ...]
    place: Place


_ADDING = ("append", "insert_after")
_SIGNS = re.compile(r"^\s*(?:[-*+•]\s+)?|[\s.]+$")


def what_it_does(edit: Edit) -> tuple[str, ...]:
    """What an edit does, wherever it puts it: whoever does the same says it again, whatever the list's signs."""
    adds = edit.op in _ADDING
    said = " ".join(_SIGNS.sub("", edit.content).split())
    return ("add" if adds else edit.op, edit.file, "" if adds else edit.target.strip(), said)


Change = tuple[Edit, ...]
"""What is tried together: one edit, but for a line that is moved, which is taken out and put back."""


def _each_behind_the_one_before(changes: list[Change]) -> list[Change]:
    """The changes so that those for one place come to stand in their order: each is put right behind the same lines."""
    behind: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        if change[-1].op == "insert_after":
            behind.setdefault((change[-1].file, change[-1].target), []).append(change)
    return [behind[each[-1].file, each[-1].target].pop() if each[-1].op == "insert_after" else each for each in changes]


@frozen(kw_only=True)
class OpenStep:
    """
    What has been collected of the step that is under way.

    `rounds` are the groups of each round of questions; `alone` has the text with each change alone, in their order.
    """

    number: int
    batch: Batch
    rounds: tuple[tuple[Minibatch, ...], ...] = ()
    patches: Mapping[str, PatchProposed] = field(factory=dict)
    alone: tuple[CandidateBuilt, ...] = ()
    tries: tuple[Tries, ...] = ()
    recalled: tuple[Saved, ...] = ()
    ranked: EditsRanked | None = None

    @property
    def chosen(self) -> tuple[str, ...]:
        """What the screen has kept, by name; nothing before it."""
        return () if self.ranked is None else self.ranked.chosen

    @property
    def credits(self) -> tuple[Credit, ...]:
        """What each edit has earned; nothing before the screen."""
        return () if self.ranked is None else self.ranked.credits

    @property
    def place(self) -> Place:
        """Where it is recorded; an epoch has one step."""
        return Place.of_step(self.number, self.number)

    @property
    def groups(self) -> tuple[Minibatch, ...]:
        """What has been asked about so far."""
        return tuple(group for groups in self.rounds for group in groups)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """All that was proposed, round by round; once there, a change keeps its number. Said again, it claims more."""
        said: dict[object, Change] = {}
        for change in (change for groups in self.rounds for change in self._changes_of(groups)):
            what = tuple(map(what_it_does, change))
            first = said.get(what, change)
            claims = dict.fromkeys((*first[-1].claims, *change[-1].claims))
            said[what] = (*first[:-1], replace(first[-1], claims=tuple(claims)))
        return tuple(said.values())

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """All that was proposed, in the order in which it is applied."""
        return self.in_order(range(len(self.changes)))

    def in_order(self, changes: Iterable[int]) -> tuple[Edit, ...]:
        """
        The edits of these changes in the order in which they are applied: round by round, those for many tasks first.

        Where two rules speak of one task an agent mostly keeps to the last, which thus is the one for that task. What a
        later round has brought was asked for because the earlier ones had left its tasks failing.
        """

        def order(index: int) -> tuple[int, int]:
            return self.round_of(index), -(len(self.changes[index][-1].claims) or _ALL)

        found = _each_behind_the_one_before([self.changes[index] for index in sorted(changes, key=order)])
        return tuple(edit for change in found for edit in change)

    def round_of(self, index: int) -> int:
        """In which round of questions, counted from 0, a change was proposed."""
        group = self.group_of(self.changes[index])
        return next(number for number, groups in enumerate(self.rounds) if group in groups)

    def group_of(self, change: Change) -> Minibatch:
        """What a change was proposed for."""
        return next(group for group in self.groups if group.id in change[-1].origins)

    def beside(self, group: Minibatch) -> tuple[Minibatch, ...]:
        """Solved tasks that are shown beside a group's failing ones: they follow it."""
        at = self.groups.index(group) + 1
        until = next((n for n in range(at, len(self.groups)) if self.groups[n].kind != "success"), len(self.groups))
        return self.groups[at:until]

    @property
    def asked(self) -> tuple[Minibatch, ...]:
        """What somebody answers: the groups that edits come of."""
        return tuple(group for group in self.groups if group.kind != "success")

    def _changes_of(self, groups: tuple[Minibatch, ...]) -> tuple[Change, ...]:
        edits = [edit for group in groups for edit in self._of(group)]
        out = {edit.target: edit for edit in edits if edit.op == "delete"}
        adding = [edit for edit in edits if edit.op in _ADDING]
        back = {edit.content.strip() for edit in adding} & set(out)
        first = [edit for edit in edits if not (edit.op == "delete" and edit.target in back)]
        return tuple(
            (out[edit.content.strip()], edit) if edit in adding and edit.content.strip() in back else (edit,)
            for edit in first
        )

    @property
    def together(self) -> Place:
        """Where all kept changes are tried."""
        return self.place / "screen" / "together"

    def screen(self, index: int) -> Place:
        """Where a change is tried alone."""
        return self.place / "screen" / f"edit-{index + 1}"

    def _of(self, group: Minibatch) -> tuple[Edit, ...]:
        return self.patches[group.id].edits if group.id in self.patches else ()
