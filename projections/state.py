"""What the trainer knows at one moment: values, and plain questions about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    CandidateBuilt,
    ComparisonDrawn,
    EditsRanked,
    GapFound,
    LearningRateChosen,
    MetaSkillWritten,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunStarted,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepImported,
    TrainingStopped,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch, FailurePattern, Json, Measured, Minibatch, Proposal, Score, SkillTree
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.seal import Looks

Rollouts = Ledger[str, RolloutCompleted]


@frozen(kw_only=True)
class Standing:
    """
    A skill that holds a place (current or best), with the score it was measured at, if it was.

    `stale_from` is the skill that was measured at that score, where it is another one.
    """

    skill: SkillTree
    score: Score | None = None
    value: float | None = None
    origin: str = "initial_skill"
    step: int = 0
    stale_from: str = ""


@frozen(kw_only=True)
class Drawn:
    """One more selection evaluation of a skill that was measured before."""

    score: Score
    place: str
    items: Mapping[str, Measured]


@frozen(kw_only=True)
class Measurement:
    """
    The selection evaluations of one skill: the first with its score and each item's own, and the `further` ones.

    `value` is what the stated score counts. `told` is an evaluation that decided nothing.
    """

    score: Score
    value: float | None
    place: str
    items: Mapping[str, Measured]
    further: tuple[Drawn, ...] = ()
    told: Drawn | None = None

    @property
    def draws(self) -> int:
        """How many evaluations the gate may look at."""
        return 1 + len(self.further)

    @property
    def stated(self) -> Score:
        """The skill's score: of the evaluation that decided nothing, else the mean over all of them."""
        if self.told is not None:
            return self.told.score
        if not self.further:
            return self.score
        scores = [self.score, *(drawn.score for drawn in self.further)]
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
class Attempt:
    """One entry of the step buffer: what a step tried and what came of it; `bound`: the value after is a bound."""

    step: int
    action: str
    total: int
    failed: int
    codes: tuple[tuple[str, tuple[str, ...]], ...]
    patterns: tuple[FailurePattern, ...]
    value_before: float | None
    value_after: float | None
    rejected: tuple[Proposal, ...] = ()
    rejected_notes: tuple[str, ...] = ()
    bound: bool = False


@frozen(kw_only=True)
class StepState:
    """The open step: what has been collected of it so far."""

    number: int
    batches: tuple[Batch, ...]
    groups: tuple[Minibatch, ...] | None = None
    patches: Ledger[str, PatchProposed] = field(factory=Ledger)
    extended: AppendixExtended | None = None
    consolidated: AppendixConsolidated | None = None
    merges: Ledger[str, PatchesMerged] = field(factory=Ledger)
    learning_rate: LearningRateChosen | None = None
    ranked: EditsRanked | None = None
    rewritten: SkillRewritten | None = None
    built: CandidateBuilt | None = None
    imported: StepImported | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The whole appendix that the step leads to; empty when it adds no note."""
        if self.extended is None or not self.extended.added:
            return ()
        return self.extended.notes if self.consolidated is None else self.consolidated.notes


@frozen(kw_only=True)
class EpochState:
    """The open epoch: its plan, where it began, what its steps came to, and how far its end-of-epoch work is."""

    number: int
    batches: tuple[Batch, ...]
    meta_skill: str
    first_skill: SkillTree
    last_skill: SkillTree | None = None
    comparison: ComparisonDrawn | None = None
    proposed: SlowUpdateProposed | None = None
    applied: SlowUpdateApplied | None = None
    meta: MetaSkillWritten | None = None


@frozen(kw_only=True)
class Owed:
    """A finished epoch that has no guidance or memory, and after which step each was asked for again last."""

    epoch: EpochState
    slow: bool
    memory: bool
    slow_asked: int | None = None
    memory_asked: int | None = None


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


@frozen(kw_only=True)
class TrainerState:
    """
    Everything the trainer knows; equal for equal events.

    `types` has the type of each validation item, `flipped` those that ever gave two results under one text.
    """

    status: Literal["new", "running", "paused", "completed"] = "new"
    started: RunStarted | None = None
    paused: RunPaused | None = None
    overrides: Mapping[str, Json] = field(factory=dict)
    completed: RunCompleted | None = None
    stopped: TrainingStopped | None = None
    current: Standing | None = None
    best: Standing | None = None
    epoch: EpochState | None = None
    owed: Owed | None = None
    step: StepState | None = None
    unwritten: tuple[str, ...] = ()
    epochs_done: int = 0
    steps_done: int = 0
    rollouts: Mapping[str, Rollouts] = field(factory=dict)
    scored: Mapping[str, SkillScored] = field(factory=dict)
    measured: Ledger[str, Measurement] = field(factory=Ledger)
    types: Mapping[str, str] = field(factory=dict)
    flipped: frozenset[str] = frozenset()
    partial: Mapping[tuple[str, int], Partial] = field(factory=dict)
    tests: Mapping[str, SkillScored] = field(factory=dict)
    looks: Looks = field(factory=Looks)
    buffer: tuple[Attempt, ...] = ()
    memory: str = ""
    counts: Counts = field(factory=Counts)
    imported: RunImported | None = None
    forked: RunForked | None = None
    gaps: tuple[GapFound, ...] = ()


def unanswered(step: StepState) -> list[str]:
    """The questions after the analysts' for which the optimizer could not be reached, each with the reason."""
    found = [f"{merge.merge}: {merge.failed}" for merge in step.merges.values() if merge.failed]
    if step.learning_rate is not None and step.learning_rate.result == "failed":
        found.append(f"the learning rate of step {step.number}: {step.learning_rate.note}")
    if step.ranked is not None and step.ranked.failed:
        found.append(f"the ranking of step {step.number}: {step.ranked.failed}")
    if step.rewritten is not None and step.rewritten.result == "failed":
        found.append(f"the rewrite of step {step.number}: {step.rewritten.note}")
    return found


def is_silent(row: RolloutCompleted) -> bool:
    """Whether a model said nothing at all, or not in time: a result of 0, unless nearly all its items are like that."""
    return isinstance(row.outcome, Measured) and not row.trajectory and row.failure in {"no_answer", "timeout"}


def step_after(state: TrainerState, epoch: EpochState, number: int) -> StepState | None:
    assert state.started is not None
    per_epoch = state.started.steps_per_epoch
    index = number - 1 - (epoch.number - 1) * per_epoch
    if index >= per_epoch:
        return None
    share = len(epoch.batches) // per_epoch
    return StepState(number=number, batches=epoch.batches[index * share : (index + 1) * share])


def is_train(place: str, step: int) -> bool:
    """Whether a place holds the training rollouts of a step."""
    read = Place(place)
    return read.step == step and read.batch is not None


def proposals_of(step: StepState) -> Mapping[str, Proposal]:
    """Every edit, suggestion or draft that a step has seen, by id."""
    sources: tuple[PatchProposed | PatchesMerged, ...] = (*step.patches.values(), *step.merges.values())
    return {proposal.id: proposal for source in sources for proposal in proposals_in(source)}


def proposals_in(made: PatchProposed | PatchesMerged) -> tuple[Proposal, ...]:
    """What an analyst or a merge came to, whichever update mode it was made in."""
    return made.edits or made.suggestions or made.drafts


V = TypeVar("V")


def outside_step(places: Mapping[str, V], step: int) -> Mapping[str, V]:
    return {place: value for place, value in places.items() if Place(place).step != step}


def at_owed_epoch(state: TrainerState) -> TrainerState:
    """The state as questions about the owed epoch see it."""
    assert state.owed is not None
    return replace(state, epoch=state.owed.epoch)


def outside(places: Mapping[str, V], gone: Place, *, but: Place | None = None) -> Mapping[str, V]:
    """What lies in other places, or in that part of this one which is kept."""
    return {
        place: value
        for place, value in places.items()
        if not gone.holds(place) or (but is not None and but.holds(place))
    }


def open_step(state: TrainerState) -> tuple[StepState, Place]:
    """The step under way, and its place in the log."""
    assert state.step is not None
    assert state.epoch is not None
    return state.step, Place.of_step(state.epoch.number, state.step.number)
