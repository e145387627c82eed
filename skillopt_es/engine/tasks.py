"""What a program can ask for next: rollouts, their sum, questions to the optimizer, or a decision. Pure values."""

from __future__ import annotations

from attrs import field, frozen

from skillopt_es.events.places import Place
from skillopt_es.events.values import Purpose, SkillTree, Split


@frozen(kw_only=True)
class Evaluation:
    """
    A skill tried on a list of items, to be added up when all are there, or when it is `stopped`.

    `draw` counts tries of the whole list.
    """

    place: Place = field(converter=Place)
    purpose: Purpose
    split: Split
    items: tuple[str, ...]
    skill: SkillTree
    seed: int
    draw: int = 1
    stopped: bool = False


@frozen(kw_only=True)
class Unit:
    """One item to be tried under one skill; what is drawn for it is drawn from the seed."""

    place: Place = field(converter=Place)
    purpose: Purpose
    item: str
    skill: SkillTree
    seed: int


@frozen
class Rollouts:
    """Units that may all run at once; their results are recorded in this order."""

    units: tuple[Unit, ...]


@frozen
class Questions:
    """Questions to the optimizer that do not depend on each other: jobs whose types the program knows."""

    jobs: tuple[object, ...]


@frozen
class AddUp:
    """Add up a finished evaluation."""

    evaluation: Evaluation


@frozen
class Decide:
    """A decision of the program, by its name."""

    name: str


Task = Rollouts | Questions | AddUp | Decide
