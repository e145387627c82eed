"""What a run can do next: the work that an algorithm's `next_work` names, and what it is about."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, field, frozen

from skillopt_es.events.catalog import Event
from skillopt_es.events.places import Place
from skillopt_es.events.values import Purpose, SkillTree, Split
from skillopt_es.projections.state import Standing


@frozen(kw_only=True)
class Evaluation:
    """
    A skill tried on a list of items, to be added up when all are there, or when it is `stopped`.

    Where it is to be told how `near` wrong answers came to right ones, each result says it.
    `draw` counts tries of the whole list. The `carried` items are not tried: they would see what they saw under another
    skill, so they have the results that are `carried_from` that one. One that decides `by_item`, by no mean, goes on
    without a few items that fail for a reason of their own.
    """

    place: Place = field(converter=Place)
    purpose: Purpose
    split: Split
    items: tuple[str, ...]
    skill: SkillTree
    seed: int
    repeat: int = 1
    stopped: bool = False
    carried: tuple[str, ...] = ()
    carried_from: str = ""
    by_item: bool = False
    near: bool = False


@frozen(kw_only=True)
class Unit:
    """
    One item to be tried under one skill; what is drawn for it is drawn from the seed.

    The first `judged` questions to the judge about its answer were of no use, and are not put again.
    """

    place: Place = field(converter=Place)
    purpose: Purpose
    item: str
    skill: SkillTree
    seed: int
    judged: int = 0
    near: bool = False


@frozen
class Rollouts:
    """
    Units that may all run at once; their results are recorded in this order.

    `ahead` is what comes next if these come to nothing: it may be tried beside them.
    """

    units: tuple[Unit, ...]
    ahead: tuple[Unit, ...] = ()


@frozen
class Questions:
    """Questions to the optimizer that do not depend on each other: jobs whose types the algorithm knows."""

    jobs: tuple[object, ...]


@frozen
class AddUp:
    """Add up a finished evaluation."""

    evaluation: Evaluation


@frozen
class Decide:
    """A decision of the algorithm, by its name; one that reads trajectories back waits until they are written."""

    name: str
    reads_back: bool = False


Derived = Questions | AddUp | Decide
"""Work whose events follow from the log and its journal, so that it can be done again at any time."""
Work = Rollouts | Derived


@frozen
class Emission:
    """Events that belong to the log next, with the texts they name."""

    events: Sequence[Event]
    texts: Sequence[str] = ()


@frozen(kw_only=True)
class Told:
    """
    What an algorithm knows beside the verdicts of its run.

    Of so many training results that were tried `again` under one text, so many `varied`; and how many results a verdict
    may still take, where that is limited. A candidate that is as good as the best text takes its place (`ties_lead`)
    only where it has won elsewhere before.
    """

    again: int = 0
    varied: int = 0
    spare: int | None = None
    ties_lead: bool = False


@frozen(kw_only=True)
class Contest:
    """
    A candidate and who it has to beat, on which validation items, and the places of what is drawn of each for this.

    `told` is what the algorithm knows besides.
    """

    candidate: SkillTree
    standing: Standing
    items: tuple[str, ...]
    candidate_place: Place = field(converter=Place)
    current_place: Place = field(converter=Place)
    told: Told = Told()

    @property
    def current(self) -> SkillTree:
        """The text that it has to beat."""
        return self.standing.skill

    def against(self, standing: Standing) -> Contest:
        """The same candidate against the best text; what is drawn of that has a place below this one."""
        return evolve(self, standing=standing, current_place=self.current_place.best)
