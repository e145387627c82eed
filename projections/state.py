"""
What is known of a run at one moment: values, and plain questions about them.

The core is what any way of training has: who writes, what was tried and measured, and which skill holds which place.
What only one way of training needs is the `algorithm` part, which that algorithm's own code folds and reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, Literal, TypeVar

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.events.catalog import (
    CandidateBuilt,
    CertificateWagered,
    GapFound,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunStarted,
    SkillScored,
    TrainingStopped,
)
from skillopt_es.events.values import Json, Measured, Proposal, Score, SkillTree
from skillopt_es.projections.exposure import Exposure
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.seal import Looks

RolloutsByItem = Ledger[str, RolloutCompleted]


Kind = Literal["initial_skill", "step", "slow_update", "slow_update_placeholder", "appendix", "struck", "unknown"]


@frozen(kw_only=True)
class Origin:
    """What put a text into its place, and at which step, epoch or place of the run."""

    kind: Kind
    step: int = 0
    epoch: int = 0
    place: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "initial_skill":
                return self.kind
            case "step":
                return f"step_{self.step:04d}"
            case "appendix":
                return f"appendix_step_{self.step:04d}"
            case "struck":
                return f"struck_after_step_{self.step:04d}"
            case "unknown":
                return f"unknown_{self.place}"
            case _:
                return f"{self.kind}_epoch_{self.epoch:02d}"


@frozen(kw_only=True)
class Standing:
    """
    A skill that holds a place (current or best), with the score it was measured at, if it was.

    `stale_from` is the skill that was measured at that score, where it is another one.
    """

    skill: SkillTree
    score: Score | None = None
    value: float | None = None
    origin: Origin = Origin(kind="initial_skill")
    step: int = 0
    stale_from: str = ""


@frozen(kw_only=True)
class Drawn:
    """
    One evaluation of a skill on the validation items: its score, and each item's own.

    Where it was `in_part`, what was not drawn again counts as it did in the skill's first evaluation.
    """

    score: Score
    place: str
    items: Mapping[str, Measured]
    in_part: bool = False

    def without(self, items: Collection[str]) -> Drawn:
        """The same over the other items."""
        left = {item: outcome for item, outcome in self.items.items() if item not in items}
        if len(left) == len(self.items):
            return self
        if not left:
            raise OutOfPlace("nothing would be left of an evaluation without these items")
        hard = sum(outcome.hard for outcome in left.values()) / len(left)
        soft = sum(outcome.soft for outcome in left.values()) / len(left)
        return replace(self, score=replace(self.score, hard=hard, soft=soft, measured=len(left)), items=left)


@frozen(kw_only=True)
class Measurement:
    """
    The evaluations of one skill that the gate may look at, the first one first.

    `value` is what the stated score counts. `fresh` is one more evaluation, which decided nothing, made to be reported.
    """

    drawn: tuple[Drawn, ...]
    value: float | None
    fresh: Drawn | None = None

    def without(self, items: Collection[str], value: float | None) -> Measurement:
        """The same without what was measured of some items; `value` is what is left counts."""
        drawn = tuple(each.without(items) for each in self.drawn)
        fresh = None if self.fresh is None else self.fresh.without(items)
        return Measurement(drawn=drawn, value=value, fresh=fresh)

    @property
    def score(self) -> Score:
        """The first evaluation's score."""
        return self.drawn[0].score

    @property
    def place(self) -> str:
        """Where the skill was first measured."""
        return self.drawn[0].place

    @property
    def items(self) -> Mapping[str, Measured]:
        """The first evaluation's items."""
        return self.drawn[0].items

    @property
    def draws(self) -> int:
        """How many evaluations the gate may look at."""
        return len(self.drawn)

    @property
    def stated(self) -> Score:
        """The skill's score: of the evaluation that decided nothing, else the mean over all of them."""
        if self.fresh is not None:
            return self.fresh.score
        if self.draws == 1:
            return self.score
        scores = [drawn.score for drawn in self.drawn]
        return replace(
            self.score,
            hard=sum(score.hard for score in scores) / len(scores),
            soft=sum(score.soft for score in scores) / len(scores),
        )


@frozen(kw_only=True)
class Partial:
    """A draw that ended early, because its text could not win any more: where that was, and what was run of it."""

    place: str
    rows: Mapping[str, RolloutCompleted]


def stated_score(known: Standing | Measurement | None) -> Score | None:
    """The score of a text that holds a place or was measured; None for one that was not."""
    return known.stated if isinstance(known, Measurement) else known.score if known is not None else None


@frozen(kw_only=True)
class Steering:
    """
    What people have ordered, by the names of their orders: hints, pinned lines, that training is to end.

    `by_hand` is what becomes of a candidate (by hash), whatever the rule says of it.
    """

    orders: frozenset[str] = frozenset()
    hints: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    stop: bool = False
    by_hand: Mapping[str, Literal["take", "refuse"]] = field(factory=dict)


@frozen(kw_only=True)
class Counts:
    """How often what happened."""

    accepted: int = 0
    rejected: int = 0
    indecisive: int = 0
    skipped: int = 0
    selections: int = 0
    rollouts: int = 0
    unmeasured: int = 0
    resumed: int = 0


S_co = TypeVar("S_co", covariant=True)


@frozen(kw_only=True)
class RunState(Generic[S_co]):
    """
    Everything that is known of a run that has begun; equal for equal events. Before its first event there is no state.

    `current` is the skill that training goes on from, `best` the one that the run is to deliver, `certified` the one of
    which it is certain enough that it beats the certified one before. `built` is the candidate that waits for its
    verdict. `types` has the type of each validation item, `flipped` those that ever gave two results under one text,
    `repeated` how often one was tried again; `misjudged` how many replies of the judge were of no use, by the slot of
    the attempt that they are about. `exposure` says what training
    items have met, `wagers` what was bet on the certificate. `algorithm` is what only its way of training knows.
    """

    started: RunStarted
    current: Standing
    best: Standing
    certified: Standing
    algorithm: S_co
    status: Literal["running", "paused", "completed"] = "running"
    paused: RunPaused | None = None
    overrides: Mapping[str, Json] = field(factory=dict)
    completed: RunCompleted | None = None
    stopped: TrainingStopped | None = None
    built: CandidateBuilt | None = None
    steps_done: int = 0
    rollouts: Mapping[str, RolloutsByItem] = field(factory=dict)
    scored: Mapping[str, SkillScored] = field(factory=dict)
    measured: Ledger[str, Measurement] = field(factory=Ledger)
    types: Mapping[str, str] = field(factory=dict)
    flipped: frozenset[str] = frozenset()
    repeated: int = 0
    misjudged: Mapping[str, int] = field(factory=dict)
    partial: Mapping[tuple[str, int], Partial] = field(factory=dict)
    tests: Mapping[str, SkillScored] = field(factory=dict)
    looks: Looks = field(factory=Looks)
    exposure: Exposure = field(factory=Exposure)
    wagers: tuple[CertificateWagered, ...] = ()
    counts: Counts = field(factory=Counts)
    steering: Steering = field(factory=Steering)
    imported: RunImported | None = None
    forked: RunForked | None = None
    gaps: tuple[GapFound, ...] = ()

    @property
    def standings(self) -> Mapping[str, Standing]:
        """The skill in each place that a skill can hold."""
        return {"current": self.current, "best": self.best, "certified": self.certified}


class OutOfPlace(LookupError):
    """An event, or a decision, for which nothing that is recorded before it has made the way."""


V = TypeVar("V")


def there(found: V | None, what: str) -> V:
    """What there is in one phase of a run alone, at the border of that phase; raises OutOfPlace in any other."""
    if found is None:
        raise OutOfPlace(f"there is no {what}")
    return found


AnyState = RunState[object]
"""A run of whatever algorithm, as those see it who read its core alone."""


ENOUGH_REPEATS = 24
"""Results that came out the same twice, none otherwise, after which a target is taken for one that never varies."""


def never_varies(again: int, varied: int) -> bool:
    """Whether so many results that were tried again, of which so many came out otherwise, tell that none is luck."""
    return not varied and again >= ENOUGH_REPEATS


def is_silent(row: RolloutCompleted) -> bool:
    """Whether a model said nothing at all, or not in time: a result of 0, unless nearly all its items are like that."""
    return isinstance(row.outcome, Measured) and not row.trajectory and row.failure in {"no_answer", "timeout"}


def proposals_in(made: PatchProposed | PatchesMerged) -> tuple[Proposal, ...]:
    """The proposals of an analyst or a merge, whichever update mode it was made in."""
    return made.edits or made.suggestions or made.drafts
