"""The questions that classic training asks the optimizer. Pure values."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from skillopt_es.events.values import Minibatch, PatchSource


@frozen
class AnalyseJob:
    """One analyst on one minibatch."""

    group: Minibatch


@frozen(kw_only=True)
class ConsolidateJob:
    """Saying the same as these reminder notes in fewer."""

    slot: str
    notes: tuple[str, ...]


@frozen(kw_only=True)
class MergeJob:
    """Several patches (or merges) into one."""

    merge: str
    group: Literal[PatchSource, "final"]
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
    """The optimizer's meta skill; `after` is the step after which it is asked for again."""

    epoch: int
    after: int | None = None


Job = AnalyseJob | ConsolidateJob | MergeJob | LearningRateJob | RankJob | RewriteJob | SlowUpdateJob | MetaSkillJob
