"""
What only this algorithm knows: attempts that wait for others like them, refused updates, and what skills were good for.

Attempts are known by where they were made; their texts are in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from attrs import field, frozen

from skillopt_es.events.catalog import (
    CandidateBuilt,
    EditsRanked,
    EpochPlanned,
    PatchProposed,
    RolloutCompleted,
    RunStarted,
)
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.places import Place
from skillopt_es.events.values import Attempt, Edit, Json, Measured, Minibatch, Tries
from skillopt_es.projections.core import without_items
from skillopt_es.projections.state import AnyState, RunState
from skillopt_es.skill.folders import skill_of, skills_in

Key = tuple[str, ...]
"""The skills that an attempt opened, by name; none is a key, too."""

WHOLE: Key = ("*",)
"""Whose refused updates are remembered for the folder as a whole; no skill can have that name."""


@frozen(kw_only=True)
class Waiting:
    """An attempt that no question has shown yet, what it opened, and its result."""

    attempt: Attempt
    key: Key
    outcome: Measured


@frozen(kw_only=True)
class Refused:
    """An edit that did not get into the folder, at which step, and why."""

    step: int
    edit: Edit
    why: str


@frozen(kw_only=True)
class Sighting:
    """One training attempt of the epoch: its kind of task, what it opened, and its result."""

    attempt: Attempt
    kind: str
    key: Key
    outcome: Measured


@frozen(kw_only=True)
class Outcome:
    """What became of a step's edits, told to whoever manages the folder."""

    step: int
    taken: bool
    edits: tuple[Edit, ...]


@frozen(kw_only=True)
class Gone:
    """A skill that was retired: when, and its files, so that it can come back."""

    step: int
    files: Mapping[str, str]


@frozen(kw_only=True)
class Skills:
    """
    The open step, and what all steps so far have found out.

    `trials` counts the training attempts in which a skill could have been opened, `quiet` the epochs in a row in which
    it was not. `doomed` has the step at which a skill was first proposed to be retired, `returns` how often the
    question about an attempt came to nothing. `views` has what each validation item opened, by the hash of the folder.
    What some items came to at a place is no evidence: there they are `barred`, and are not tried.
    """

    epoch: EpochPlanned | None = None
    groups: tuple[Minibatch, ...] | None = None
    patches: Mapping[str, PatchProposed] = field(factory=dict)
    ranked: EditsRanked | None = None
    triggers: tuple[Tries, ...] = ()
    parts: tuple[Tries, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    refused: Mapping[Key, tuple[Refused, ...]] = field(factory=dict)
    sightings: tuple[Sighting, ...] = ()
    history: tuple[Outcome, ...] = ()
    trials: Mapping[str, int] = field(factory=dict)
    quiet: Mapping[str, int] = field(factory=dict)
    doomed: Mapping[str, int] = field(factory=dict)
    gone: Mapping[str, Gone] = field(factory=dict)
    returns: Mapping[Attempt, int] = field(factory=dict)
    views: Mapping[str, Mapping[str, Key]] = field(factory=dict)
    barred: Mapping[str, tuple[str, ...]] = field(factory=dict)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that was proposed in the open step, group by group."""
        proposed = (self.patches[group.id] for group in self.groups or () if group.id in self.patches)
        return tuple(edit for patch in proposed for edit in patch.edits)

    def group_of(self, edit: Edit) -> Minibatch:
        """The group whose question an edit answers."""
        return next(group for group in self.groups or () if group.id in edit.origins)


SkillsState = RunState[Skills]
"""A run that is trained by this algorithm."""


def is_skills(state: AnyState) -> TypeGuard[SkillsState]:
    """Whether a run is trained by this algorithm."""
    return isinstance(state.algorithm, Skills)


def initial(started: RunStarted) -> Skills:
    """Nothing is known yet."""
    return Skills()


# --- where a run stands ----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Where:
    """A step by its number, the epoch that it is of, and its index there; the last one manages the whole folder."""

    number: int
    epoch: int
    index: int
    managing: bool

    @property
    def place(self) -> Place:
        """Where it is recorded."""
        return Place.of_step(self.epoch, self.number)


def where_of(state: SkillsState) -> Where:
    """The step that is under way, or comes next."""
    number, steps = state.steps_done + 1, state.started.steps_per_epoch
    epoch, index = divmod(number - 1, steps)
    return Where(number=number, epoch=epoch + 1, index=index, managing=index == steps - 1)


def place_of(state: SkillsState) -> Place:
    """Where the open step's candidate is judged: what stayed of a refused one has a place of its own."""
    place = where_of(state).place
    return place if state.algorithm.ranked is None else place / "kept"


def begun(state: SkillsState) -> bool:
    """Whether anything of the step has been recorded."""
    place = where_of(state).place
    return (
        state.algorithm.groups is not None or state.built is not None or any(place.holds(at) for at in state.rollouts)
    )


def tried_at(state: SkillsState, place: str, items: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some items that are tried at a place: what they come to is evidence there."""
    return without_items(items, state.algorithm.barred.get(place, ()))


def ring_of(state: SkillsState) -> int:
    """How many refused updates are remembered for each set of skills."""
    size = _setting(state, "max_rejected_update_buffer_size")
    if not isinstance(size, int):
        raise LogDamaged("skills.max_rejected_update_buffer_size is not recorded")
    return size


def grouped_by(state: SkillsState, row: RolloutCompleted) -> Key:
    """The skills by which an attempt is grouped with others: those it opened, and perhaps those it was shown always."""
    also = row.injected if _setting(state, "always_in_key") is True else ()
    return skills_in((*row.viewed, *also))


def _setting(state: SkillsState, name: str) -> Json:
    """A key of `skills`, as it counts now."""
    section = state.started.config.get("skills")
    return state.overrides.get(f"skills.{name}", section.get(name) if isinstance(section, dict) else None)


def said_of(built: CandidateBuilt) -> dict[str, str]:
    """The edits of a candidate that are not in it, and why; of those that are, nothing."""
    return {
        report.edit: "" if report.applied else report.note or report.status.replace("_", " ")
        for report in built.reports
    }


def applied_edits(edits: tuple[Edit, ...], built: CandidateBuilt) -> tuple[Edit, ...]:
    """The edits that are in a candidate, in their order."""
    said = said_of(built)
    return tuple(edit for edit in edits if said.get(edit.id) == "")


def became(edits: tuple[Edit, ...]) -> dict[str, tuple[str, ...]]:
    """What has become of each skill that these edits rename, merge or split."""
    into: dict[str, tuple[str, ...]] = {}
    for edit in edits:
        if edit.op in ("rename", "merge", "split"):
            into |= {old: (*into.get(old, ()), skill_of(edit.file)) for old in edit.target.split()}
    return into
