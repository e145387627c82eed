"""What only SkillOpt's own way of training knows: its open epoch and step, its meta skill, and what is still owed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    EditsRanked,
    LearningRateChosen,
    MetaSkillWritten,
    PatchesMerged,
    PatchProposed,
    RunStarted,
    SkillRewritten,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepImported,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch, BufferEntry, Learned, Minibatch, Proposal, SkillTree
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.state import AnyState, RunState, proposals_in


@frozen(kw_only=True)
class StepState:
    """A step: what has been collected of it so far."""

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
    imported: StepImported | None = None

    @property
    def planned(self) -> tuple[Minibatch, ...]:
        """The minibatches for analysts that are planned so far."""
        return () if self.groups is None else self.groups

    @property
    def notes(self) -> tuple[str, ...]:
        """The whole appendix that the step leads to; empty when it adds no note."""
        if self.extended is None or not self.extended.added:
            return ()
        return self.extended.notes if self.consolidated is None else self.consolidated.notes


@frozen(kw_only=True)
class Comparison:
    """The items on which an epoch's first skill and its `last` are compared, and whether they are one text."""

    items: tuple[str, ...]
    last: SkillTree
    one_text: bool


@frozen(kw_only=True)
class EpochState:
    """An epoch: its plan, where it began, the results of its steps, and how far its end-of-epoch work is."""

    number: int
    batches: tuple[Batch, ...]
    meta_skill: str
    first_skill: SkillTree
    comparison: Comparison | None = None
    proposed: SlowUpdateProposed | None = None
    applied: SlowUpdateApplied | None = None
    meta: MetaSkillWritten | None = None

    @property
    def candidate(self) -> SkillTree | None:
        """The skill with the epoch's guidance, where there is any."""
        return None if self.proposed is None else self.proposed.candidate


@frozen(kw_only=True)
class OpenStep:
    """The step under way, and the epoch that it is of."""

    epoch: EpochState
    step: StepState

    @property
    def place(self) -> Place:
        """Where the step is recorded."""
        return Place.of_step(self.epoch.number, self.step.number)


@frozen(kw_only=True)
class EndedEpoch:
    """An epoch whose first and last skill are compared."""

    epoch: EpochState
    comparison: Comparison


@frozen(kw_only=True)
class Owed:
    """A finished epoch that has no guidance or meta skill, and after which step each was asked for again last."""

    epoch: EpochState
    slow: bool
    meta_skill: bool
    slow_asked: int | None = None
    meta_skill_asked: int | None = None


@frozen(kw_only=True)
class Classic:
    """The open epoch and step, and what they remember; `unwritten` are notes that follow the last verdict."""

    epoch: EpochState | None = None
    owed: Owed | None = None
    step: StepState | None = None
    unwritten: tuple[str, ...] = ()
    epochs_done: int = 0
    buffer: tuple[BufferEntry, ...] = ()
    meta_skill: str = ""

    def hands_on(self, learned: Learned) -> Learned:
        """What a run that continues this one takes over: the last epoch's tries, and the optimizer's notes."""
        tried = tuple(replace(each, before=True) for each in self.buffer)
        return replace(learned, meta_skill=self.meta_skill, tried=tried)


ClassicState = RunState[Classic]
"""A run that is trained in SkillOpt's own way."""


def initial(started: RunStarted) -> Classic:
    """Before the first epoch: with what was learned in the run that this one continues, if it continues one."""
    learned = started.learned
    return Classic() if learned is None else Classic(buffer=learned.tried, meta_skill=learned.meta_skill)


def is_classic(state: AnyState) -> TypeGuard[ClassicState]:
    """Whether a run is trained in SkillOpt's own way."""
    return isinstance(state.algorithm, Classic)


def classic(state: AnyState) -> ClassicState:
    """The state of a run that must be classic; raises ConfigError for one that is trained in another way."""
    if is_classic(state):
        return state
    raise ConfigError(
        f"this run is trained by the algorithm {state.started.algorithm}, and only runs of `classic` have epochs",
        hint="`skillopt-es status`, `log` and `lineage` read the runs of any algorithm",
    )


def updated(state: ClassicState, algorithm: Classic) -> ClassicState:
    """The state with another part of the algorithm's own."""
    return replace(state, algorithm=algorithm)


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


def step_after(state: ClassicState, epoch: EpochState, number: int) -> StepState | None:
    """The step of this number, nothing of it done; None where the epoch has no such step."""
    per_epoch = state.started.steps_per_epoch
    index = number - 1 - (epoch.number - 1) * per_epoch
    if index >= per_epoch:
        return None
    # An epoch's batches are one list, of which each step has its share.
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


def opened(state: ClassicState) -> OpenStep | None:
    """The step under way; None between two steps."""
    epoch, step = state.algorithm.epoch, state.algorithm.step
    return None if epoch is None or step is None else OpenStep(epoch=epoch, step=step)


def under_way(state: ClassicState) -> str:
    """What a run has begun and not finished at some moment; empty between two steps, and at an epoch's ends."""
    step, epoch, owed = state.algorithm.step, state.algorithm.epoch, state.algorithm.owed
    late = None if owed is None else Place.of_epoch(owed.epoch.number).slow
    places = [Place(place) for place in state.rollouts if late is None or not late.holds(place)]
    if step is not None and (step.groups is not None or any(place.step == step.number for place in places)):
        return f"step {step.number} is"
    if owed is not None and owed.epoch.proposed is not None:
        return f"the guidance of epoch {owed.epoch.number} is"
    if epoch is not None and state.algorithm.epochs_done < epoch.number:
        parts = (epoch.comparison, epoch.proposed, epoch.applied, epoch.meta)
        if any(part is not None for part in parts):
            return f"the end of epoch {epoch.number} is"
    return f"the evaluation at {places[0]} is" if places else ""
