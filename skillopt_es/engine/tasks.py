"""What the planner can ask for next: rollouts, questions to the optimizer, or a decision. Pure values."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from skillopt_es.events.places import Place
from skillopt_es.events.values import Minibatch, Purpose, SkillTree, Split


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
class AnalyseJob:
    """One analyst on one minibatch."""

    group: Minibatch


@frozen(kw_only=True)
class ConsolidateJob:
    """Saying the same in fewer reminder notes."""

    slot: str


@frozen(kw_only=True)
class MergeJob:
    """Several patches (or merges) into one."""

    merge: str
    group: Literal["failure", "success", "final"]
    level: int
    inputs: tuple[str, ...]


@frozen(kw_only=True)
class LearningRateJob:
    """How many edits of the pool to apply."""

    slot: str
    pool: tuple[str, ...]


@frozen(kw_only=True)
class RankJob:
    """Choosing from a pool that is larger than the budget."""

    slot: str
    pool: tuple[str, ...]
    budget: int


@frozen(kw_only=True)
class RewriteJob:
    """The whole skill anew, from the chosen suggestions."""

    slot: str
    chosen: tuple[str, ...]


@frozen
class SlowUpdateJob:
    """Epoch-level guidance; `after` is the step after which it is asked for again."""

    epoch: int
    after: int | None = None


@frozen
class MetaSkillJob:
    """The optimizer's own memory; `after` is the step after which it is asked for again."""

    epoch: int
    after: int | None = None


Job = AnalyseJob | ConsolidateJob | MergeJob | LearningRateJob | RankJob | RewriteJob | SlowUpdateJob | MetaSkillJob


@frozen
class Questions:
    """Questions to the optimizer that do not depend on each other."""

    jobs: tuple[Job, ...]


@frozen
class Score:
    """Add up a finished evaluation."""

    evaluation: Evaluation


@frozen(kw_only=True)
class ChooseFirst:
    """No question is needed, because the pool fits the budget, the budget is 0, or drafts are not ranked."""

    pool: tuple[str, ...]
    budget: int


@frozen
class SkipStep:
    """The step has nothing to apply."""

    reason: Literal[
        "nothing_to_fix",
        "no_usable_patch",
        "no_edit_chosen",
        "no_rewrite",
        "unchanged",
        "too_large",
        "untrusted_only",
    ]


Step = Literal[
    "plan_epoch",
    "plan_minibatches",
    "pause_for_optimizer",
    "extend_appendix",
    "build_candidate",
    "gate_candidate",
    "write_appendix",
    "place_slow_block",
    "skip_first_memory",
    "draw_comparison",
    "extend_comparison",
    "apply_slow_update",
    "apply_late_slow_update",
    "stop_training",
    "complete_epoch",
    "promote_best",
    "open_test",
    "complete_run",
]


@frozen
class Decide:
    """A pure decision on recorded facts."""

    step: Step


Task = Rollouts | Questions | Score | ChooseFirst | SkipStep | Decide
