"""The open step's candidate, in the state in which it is judged: what is in it, and how the list of skills changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import frozen

from skillopt_es.algorithms.skills.state import Key, Skills, SkillsState, Where, applied_edits, became, where_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.run_config import validation_items
from skillopt_es.events.catalog import CandidateBuilt, RolloutCompleted
from skillopt_es.events.values import Edit, EditReport, SkillTree
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.folders import entries_of

SHOULD, SHOULD_NOT, NONE = "should", "should-not", "none"


@frozen
class Routing:
    """How a candidate changes the list: the skills that are not as they were, those that are new, and what became."""

    old: frozenset[str]
    new: frozenset[str]
    became: Mapping[str, tuple[str, ...]]

    def kind(self, key: Key) -> str:
        """What an attempt that passed with these skills open says of the candidate."""
        if set(key) & self.old:
            return SHOULD
        return SHOULD_NOT if key else NONE

    def right(self, before: Key, after: Key) -> bool:
        """Whether an item that is tried again opens what it should."""
        touched = set(before) & self.old
        if not touched:
            return not set(after) & self.new
        return bool(set(after) & {name for skill in touched for name in self.became.get(skill, (skill,))})


@frozen
class Candidate:
    """A candidate, the state before its verdict, and the config by which it is judged."""

    state: SkillsState
    built: CandidateBuilt
    config: RunConfig

    @property
    def algorithm(self) -> Skills:
        """What is known of the open step, and of those before it."""
        return self.state.algorithm

    @property
    def folders(self) -> tuple[SkillTree, SkillTree]:
        """The current folder, and the candidate's."""
        return self.state.current.skill, self.built.candidate

    @property
    def views(self) -> tuple[Mapping[str, Key], Mapping[str, Key]]:
        """What validation items opened under both, as far as they were tried."""
        before, after = (self.algorithm.views.get(folder.hash, {}) for folder in self.folders)
        return before, after

    @property
    def where(self) -> Where:
        """The open step."""
        return where_of(self.state)

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that are in it, in their order."""
        return applied_edits(self.algorithm.edits, self.built)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The validation items."""
        return validation_items(self.state.started, self.config)

    @cached_property
    def routing(self) -> Routing:
        """What it changes in the list."""
        before, after = map(_listed, self.folders)
        return Routing(
            old=frozenset(skill for skill, said in before.items() if after.get(skill) != said),
            new=frozenset(skill for skill, said in after.items() if before.get(skill) != said),
            became=became(self.edits),
        )

    def made_with(self, edits: Sequence[Edit]) -> tuple[SkillTree, tuple[EditReport, ...]]:
        """The current folder with some of its edits."""
        return apply_edits(self.state.current.skill, edits, close_gaps=self.built.gaps_closed)

    def rows(self, place: str) -> Mapping[str, RolloutCompleted]:
        """What was tried at a place."""
        return self.state.rollouts.get(place, {})


def _listed(tree: SkillTree) -> dict[str, str]:
    return {each.id: each.description for each in entries_of(tree) if not each.always}
