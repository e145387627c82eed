"""
What each skill of a folder was good for: who opened it, what came of it, how long it is, and its changes.

Told apart are routing (whether the right skill was opened), content (what came of opening it) and context (how much is
listed). From training attempts alone, so that nothing that judged is looked at for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    RunStarted,
    StepSkipped,
    names_of,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Measured, SkillTree
from skillopt_es.skill.folders import EMPTY, entry_of, files_of, ids_of, skill_of, skills_in

TYPES = names_of((RunStarted, RolloutCompleted, PatchProposed, CandidateBuilt, CandidateGated, StepSkipped))
"""The events that the table is made of."""

Key = tuple[str, ...]


@frozen(kw_only=True)
class Tally:
    """How many attempts there were, and how many of them passed."""

    attempts: int = 0
    passed: int = 0

    def plus(self, passed: bool) -> Tally:
        """With one attempt more."""
        return Tally(attempts=self.attempts + 1, passed=self.passed + passed)

    @property
    def rate(self) -> float | None:
        """The share that passed; None where there was none."""
        return self.passed / self.attempts if self.attempts else None


@frozen(kw_only=True)
class SkillRow:
    """
    One skill. `home` are the kinds of task of which at least half opened it.

    `opened` counts the attempts that opened it, `alone` those that opened nothing else, `elsewhere` those that opened
    it and are not of its home kinds; `missed` are attempts of its home kinds that did not open it.
    """

    name: str
    there: bool
    home: tuple[str, ...]
    opened: Tally
    alone: Tally
    elsewhere: Tally
    missed: Tally
    listed: int
    characters: int
    taken: int
    refused: int
    since: int
    came_from: tuple[str, ...]

    @property
    def precision(self) -> float | None:
        """The share of those that opened it that it is for; None where nobody opened it."""
        return 1 - self.elsewhere.attempts / self.opened.attempts if self.opened.attempts else None

    @property
    def recall(self) -> float | None:
        """The share of those that it is for that opened it; None where it is for nobody."""
        meant = self.opened.attempts - self.elsewhere.attempts + self.missed.attempts
        return (self.opened.attempts - self.elsewhere.attempts) / meant if meant else None


@frozen(kw_only=True)
class SkillTable:
    """The skills of a run, those that are there first, and for each kind of task how often it opened which of them."""

    rows: tuple[SkillRow, ...]
    routing: Mapping[str, Mapping[Key, Tally]]
    listed: int


@define
class _Walk:
    """What has been found while the events are read."""

    seen: list[tuple[str, Key, bool, frozenset[str]]] = field(factory=list)
    edits: dict[str, Edit] = field(factory=dict)
    built: CandidateBuilt | None = None
    current: SkillTree = EMPTY
    taken: dict[str, int] = field(factory=dict)
    refused: dict[str, int] = field(factory=dict)
    since: dict[str, int] = field(factory=dict)
    came_from: dict[str, tuple[str, ...]] = field(factory=dict)


def skill_table(records: Iterable[Recorded]) -> SkillTable:
    """The table; from all of a run's events, or those of TYPES."""
    walk = _Walk()
    for recorded in records:
        _step(walk, recorded)
    there = _names(walk.current)
    known = dict.fromkeys((*there, *(name for _, key, _, _ in walk.seen for name in key), *walk.taken))
    routing: dict[str, dict[Key, Tally]] = {}
    for kind, key, passed, _ in walk.seen:
        found = routing.setdefault(kind, {})
        found[key] = found.get(key, Tally()).plus(passed)
    return SkillTable(
        rows=tuple(_row(walk, name, name in there) for name in known),
        routing={kind: dict(sorted(keys.items())) for kind, keys in sorted(routing.items())},
        listed=sum(_listed(walk.current, name) for name in there),
    )


def _step(walk: _Walk, recorded: Recorded) -> None:
    if isinstance(recorded.event, RunStarted):
        walk.current = recorded.event.skill
        walk.since |= dict.fromkeys(_names(walk.current), 0)
    if not walk.current.is_folder:  # a run that trains one skill has no such table
        return
    match recorded.event:
        # What a candidate's trigger set opened is not what the current folder was good for.
        case RolloutCompleted(purpose="train", outcome=Measured() as outcome) as event if _in_batch(event):
            key = skills_in(event.viewed)
            walk.seen.append((event.task_type or "tasks", key, outcome.passed, frozenset(_names(walk.current))))
        case PatchProposed() as event:
            walk.edits |= {edit.id: edit for edit in event.edits}
        case CandidateBuilt() as event:
            walk.built = event
        case CandidateGated(verdict=verdict) if walk.built is not None:
            _judged(walk, walk.built, taken=verdict.taken)
        case StepSkipped() if walk.built is not None:
            _judged(walk, walk.built, taken=False)
        case _:
            pass


def _in_batch(event: RolloutCompleted) -> bool:
    return Place(event.place).batch is not None


def _judged(walk: _Walk, built: CandidateBuilt, *, taken: bool) -> None:
    """What became of a candidate counts for each skill that it changed."""
    applied = [walk.edits[name] for name in built.applied]
    for edit in applied:
        name = skill_of(edit.file)
        counts = walk.taken if taken else walk.refused
        counts[name] = counts.get(name, 0) + 1
        if taken:
            walk.since[name] = built.step
        if taken and edit.op in ("rename", "merge", "split"):
            walk.came_from[name] = tuple(edit.target.split())
    if taken:
        gone = {*_names(walk.current)} - {*_names(built.candidate)}
        walk.since |= dict.fromkeys(gone, built.step)
        walk.current = built.candidate
    walk.built = None


def _names(tree: SkillTree) -> tuple[str, ...]:
    return ids_of(tree) if tree.is_folder else ()


def _listed(tree: SkillTree, name: str) -> int:
    """The characters of its line in the list; one that is always shown has none."""
    entry = entry_of(tree, name)
    return 0 if entry.always else len(f"- {entry.id}: {entry.description}")


def _row(walk: _Walk, name: str, there: bool) -> SkillRow:
    seen = [(kind, key, passed) for kind, key, passed, present in walk.seen if name in present]
    kinds = sorted({kind for kind, _, _ in seen})
    home = tuple(kind for kind in kinds if _share(seen, kind, name) >= 0.5)
    opened = [row for row in seen if name in row[1]]
    return SkillRow(
        name=name,
        there=there,
        home=home,
        opened=_tally(opened),
        alone=_tally(row for row in opened if row[1] == (name,)),
        elsewhere=_tally(row for row in opened if row[0] not in home),
        missed=_tally(row for row in seen if row[0] in home and name not in row[1]),
        listed=_listed(walk.current, name) if there else 0,
        characters=sum(map(len, files_of(walk.current, name).values())) if there else 0,
        taken=walk.taken.get(name, 0),
        refused=walk.refused.get(name, 0),
        since=walk.since.get(name, 0),
        came_from=walk.came_from.get(name, ()),
    )


_Seen = tuple[str, Key, bool]


def _share(seen: Iterable[_Seen], kind: str, name: str) -> float:
    rows = [name in key for each, key, _ in seen if each == kind]
    return sum(rows) / len(rows)


def _tally(rows: Iterable[_Seen]) -> Tally:
    found = Tally()
    for _, _, passed in rows:
        found = found.plus(passed)
    return found
