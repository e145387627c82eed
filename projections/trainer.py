"""
The reducer: TrainerState is a pure fold of the events, and nothing else is state.

`evolve` only applies facts; it never decides, measures or reads anything but its arguments. Collections that grow with
the log are ledgers, so that a fold is linear in the number of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    ComparisonDrawn,
    ComparisonExtended,
    EditsRanked,
    EpochCompleted,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    GapFound,
    LearningRateChosen,
    MetaSkillWritten,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunResumed,
    RunStarted,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepImported,
    StepSkipped,
    TextsErased,
)
from skillopt_es.events.values import (
    REFUSED_LEAK,
    Batch,
    Failed,
    FailurePattern,
    Json,
    Measured,
    Minibatch,
    Proposal,
    Score,
    SkillTree,
)
from skillopt_es.projections.persistent import Ledger

E = TypeVar("E", bound=Event)
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
class Measurement:
    """A whole selection evaluation of one skill: its score and each item's own."""

    score: Score
    value: float | None
    place: str
    items: Mapping[str, Measured]


@frozen(kw_only=True)
class Attempt:
    """One entry of the step buffer: what a step tried and what came of it."""

    step: int
    action: str
    total: int
    failed: int
    codes: tuple[tuple[str, tuple[str, ...]], ...]
    patterns: tuple[FailurePattern, ...]
    value_before: float | None
    value_after: float
    rejected: tuple[Proposal, ...] = ()
    rejected_notes: tuple[str, ...] = ()


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
    skipped: int = 0
    selections: int = 0
    rollouts: int = 0
    unmeasured: int = 0
    resumed: int = 0


@frozen(kw_only=True)
class TrainerState:
    """Everything the trainer knows; equal for equal events."""

    status: Literal["new", "running", "paused", "completed"] = "new"
    started: RunStarted | None = None
    paused: RunPaused | None = None
    overrides: Mapping[str, Json] = field(factory=dict)
    completed: RunCompleted | None = None
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
    tests: Mapping[str, SkillScored] = field(factory=dict)
    buffer: tuple[Attempt, ...] = ()
    memory: str = ""
    counts: Counts = field(factory=Counts)
    imported: RunImported | None = None
    forked: RunForked | None = None
    gaps: tuple[GapFound, ...] = ()


def _started(state: TrainerState, event: RunStarted) -> TrainerState:
    standing = Standing(skill=event.skill)
    return replace(state, status="running", started=event, current=standing, best=standing)


def _resumed(state: TrainerState, event: RunResumed) -> TrainerState:
    counts = replace(state.counts, resumed=state.counts.resumed + 1)
    overrides = {**state.overrides, **{setting.key: setting.value for setting in event.overrides}}
    resumed = replace(state, status="running", paused=None, counts=counts, overrides=overrides)
    match state.paused:
        case RunPaused(reason="unmeasured"):
            return replace(resumed, rollouts=_to_be_tried_again(state))
        case RunPaused(reason="optimizer"):
            return replace(resumed, step=_to_be_asked_again(state.step))
        case _:
            return resumed


def _forked(state: TrainerState, event: RunForked) -> TrainerState:
    """What was measured keeps its scores; what they count may change."""
    measured = state.measured
    if event.values:
        measured = Ledger()
        for skill, found in state.measured.items():
            measured = measured.put(skill, replace(found, value=event.values.get(skill, found.value)))
    return replace(
        state,
        forked=event,
        overrides={**state.overrides, **{setting.key: setting.value for setting in event.overrides}},
        measured=measured,
        current=_revalued(state.current, event.values),
        best=_revalued(state.best, event.values),
    )


def _retracted(state: TrainerState, event: EvidenceRetracted) -> TrainerState:
    """What is still to be drawn and tried is so without the retracted items."""
    assert state.started is not None
    splits = state.started.splits
    if not event.place:
        splits = replace(
            splits,
            train=_but(splits.train, event.items),
            val=_but(splits.val, event.items),
            test=_but(splits.test, event.items),
        )
    started = replace(state.started, splits=splits)
    if state.epoch is None:
        return replace(state, started=started)
    first = (state.epoch.number - 1) * started.steps_per_epoch + 1
    share = len(state.epoch.batches) // started.steps_per_epoch
    batches = tuple(
        _without_items(batch, f"e{state.epoch.number}/s{first + index // share}/b{index % share}", event)
        for index, batch in enumerate(state.epoch.batches)
    )
    epoch = replace(state.epoch, batches=batches)
    step = None if state.step is None else _next_step(state, epoch, state.step.number)
    return replace(state, started=started, epoch=epoch, step=step)


def _without_items(batch: Batch, place: str, event: EvidenceRetracted) -> Batch:
    return replace(batch, items=_but(batch.items, event.items)) if event.place in ("", place) else batch


def _but(items: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in items if item not in gone)


def _erased(state: TrainerState, event: TextsErased) -> TrainerState:
    """What happened has happened all the same."""
    return state


def _revalued(standing: Standing | None, values: Mapping[str, float]) -> Standing | None:
    if standing is None or standing.value is None:
        return standing
    return replace(standing, value=values.get(standing.stale_from or standing.skill.hash, standing.value))


def _to_be_tried_again(state: TrainerState) -> Mapping[str, Rollouts]:
    """Evaluations that are still open forget what the world did not answer."""
    return {place: done if place in state.scored else _without_failed(done) for place, done in state.rollouts.items()}


def _to_be_asked_again(step: StepState | None) -> StepState | None:
    """The open step forgets what could not be asked; single analysts only when nothing was built without them yet."""
    if step is None:
        return None
    if all(patch.result == "failed" for patch in step.patches.values()):
        return replace(step, patches=Ledger())
    merges: Ledger[str, PatchesMerged] = Ledger()
    for name, merge in step.merges.items():
        if not merge.failed:
            merges = merges.put(name, merge)
    rate, ranked, rewritten = step.learning_rate, step.ranked, step.rewritten
    return replace(
        step,
        merges=merges,
        learning_rate=None if rate is not None and rate.result == "failed" else rate,
        ranked=None if ranked is not None and ranked.failed else ranked,
        rewritten=None if rewritten is not None and rewritten.result == "failed" else rewritten,
    )


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


def _without_failed(done: Rollouts) -> Rollouts:
    """The rollouts that the world answered."""
    if not any(isinstance(row.outcome, Failed) for row in done.values()):
        return done
    kept: Rollouts = Ledger()
    for item, row in done.items():
        if not isinstance(row.outcome, Failed):
            kept = kept.put(item, row)
    return kept


def _paused(state: TrainerState, event: RunPaused) -> TrainerState:
    return replace(state, status="paused", paused=event)


def _epoch_planned(state: TrainerState, event: EpochPlanned) -> TrainerState:
    assert state.current is not None
    epoch = EpochState(
        number=event.epoch, batches=event.batches, meta_skill=event.meta_skill, first_skill=state.current.skill
    )
    return replace(state, epoch=epoch, buffer=(), step=_next_step(state, epoch, state.steps_done + 1))


def _next_step(state: TrainerState, epoch: EpochState, number: int) -> StepState | None:
    assert state.started is not None
    per_epoch = state.started.steps_per_epoch
    index = number - 1 - (epoch.number - 1) * per_epoch
    if index >= per_epoch:
        return None
    share = len(epoch.batches) // per_epoch
    return StepState(number=number, batches=epoch.batches[index * share : (index + 1) * share])


def _rollout(state: TrainerState, event: RolloutCompleted) -> TrainerState:
    done: Rollouts = state.rollouts.get(event.place) or Ledger()
    counts = replace(
        state.counts,
        rollouts=state.counts.rollouts + 1,
        unmeasured=state.counts.unmeasured + (not isinstance(event.outcome, Measured)),
    )
    return replace(state, rollouts={**state.rollouts, event.place: done.put(event.item, event)}, counts=counts)


def _scored(state: TrainerState, event: SkillScored) -> TrainerState:
    state = replace(state, scored={**state.scored, event.place: event})
    if event.purpose == "test":
        return replace(state, tests={**state.tests, event.skill: event})
    if event.purpose != "selection" or event.skill in state.measured:
        return state
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(event.place, {})
    items = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    measurement = Measurement(score=event.score, value=event.value, place=event.place, items=items)
    return replace(
        state,
        measured=state.measured.put(event.skill, measurement),
        current=_with_score(state.current, event),
        best=_with_score(state.best, event),
        rollouts={place: done for place, done in state.rollouts.items() if place != event.place},
    )


def _with_score(standing: Standing | None, event: SkillScored) -> Standing | None:
    if standing is None or standing.score is not None or standing.skill.hash != event.skill:
        return standing
    return replace(standing, score=event.score, value=event.value)


def _with_step(state: TrainerState, step: StepState) -> TrainerState:
    return replace(state, step=step)


def _minibatches(state: TrainerState, event: MinibatchesPlanned) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, groups=event.groups))


def _patch(state: TrainerState, event: PatchProposed) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, patches=state.step.patches.put(event.patch, event)))


def _appendix_extended(state: TrainerState, event: AppendixExtended) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, extended=event))


def _appendix_consolidated(state: TrainerState, event: AppendixConsolidated) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, consolidated=event))


def _appendix_written(state: TrainerState, event: AppendixWritten) -> TrainerState:
    """The score of the text before it is not its own: it has one when that very text was measured."""
    assert state.current is not None
    if event.skill.hash == state.current.skill.hash:
        return replace(state, unwritten=())
    measured = state.current if event.stale_from else state.measured.get(event.skill.hash)
    standing = Standing(
        skill=event.skill,
        origin=f"appendix_step_{event.step:04d}",
        step=event.step,
        score=measured.score if measured else None,
        value=measured.value if measured else None,
        stale_from=event.stale_from,
    )
    return replace(state, current=standing, unwritten=())


def _merged(state: TrainerState, event: PatchesMerged) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, merges=state.step.merges.put(event.merge, event)))


def _learning_rate(state: TrainerState, event: LearningRateChosen) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, learning_rate=event))


def _ranked(state: TrainerState, event: EditsRanked) -> TrainerState:
    assert state.step is not None
    counts = replace(state.counts, selections=state.counts.selections + 1)
    return replace(state, step=replace(state.step, ranked=event), counts=counts)


def _rewritten(state: TrainerState, event: SkillRewritten) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, rewritten=event))


def _built(state: TrainerState, event: CandidateBuilt) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, built=event))


def _gated(state: TrainerState, event: CandidateGated) -> TrainerState:
    assert state.step is not None
    taken = event.action != "reject"
    candidate = _candidate(state, state.step, event) if taken else state.current
    new_best = event.action == "accept_new_best" or (
        event.action == "force_accept" and (event.best_value is None or event.candidate_value > event.best_value)
    )
    counts = replace(state.counts, accepted=state.counts.accepted + taken, rejected=state.counts.rejected + (not taken))
    state = replace(
        state,
        current=candidate,
        best=candidate if new_best else state.best,
        buffer=(*state.buffer, _attempt(state, state.step, event)),
        counts=counts,
    )
    return _close_step(state)


def _candidate(state: TrainerState, step: StepState, event: CandidateGated) -> Standing:
    """The place that an accepted candidate takes."""
    assert step.built is not None
    skill, measured = step.built.candidate, state.measured[event.candidate]
    origin = f"step_{event.step:04d}"
    return Standing(skill=skill, score=measured.score, value=measured.value, origin=origin, step=event.step)


def _attempt(state: TrainerState, step: StepState, event: CandidateGated) -> Attempt:
    rows = [row for place, done in state.rollouts.items() if is_train(place, step.number) for row in done.values()]
    failed = _failed(step, rows)
    codes: dict[str, list[str]] = {}
    for row in rows:
        if (row.place, row.item) in failed:
            codes.setdefault(row.failure or "unknown", []).append(row.item)
    rejected: tuple[Proposal, ...] = ()
    rejected_notes: tuple[str, ...] = ()
    if event.action == "reject" and step.ranked is not None:
        by_id = proposals_of(step)
        # What copies an item is not told to later analysts: they would hand it on.
        refused = {report.edit for report in step.built.reports if report.status == REFUSED_LEAK} if step.built else ()
        rejected = tuple(by_id[name] for name in step.ranked.chosen if name not in refused)
    if event.action == "reject" and step.extended is not None and step.extended.order == "measured":
        rejected_notes = step.extended.added
    return Attempt(
        step=step.number,
        action=event.action,
        total=len(rows),
        failed=sum(len(items) for items in codes.values()),
        codes=tuple((code, tuple(items)) for code, items in codes.items()),
        patterns=tuple(pattern for patch in step.patches.values() for pattern in patch.patterns),
        value_before=event.current_value,
        value_after=event.candidate_value,
        rejected=rejected,
        rejected_notes=rejected_notes,
    )


def _failed(step: StepState, rows: Iterable[RolloutCompleted]) -> set[tuple[str, str]]:
    """The rollouts that analysts saw as failures; of an imported step as recorded there, else all that are no pass."""
    if step.imported is None:
        return {(group.place, item) for group in step.groups or () if group.kind == "failure" for item in group.items}
    known = step.imported.failed
    if known is not None:
        return {(row.place, row.item) for row in rows if row.item in known}
    return {(row.place, row.item) for row in rows if isinstance(row.outcome, Measured) and not row.outcome.passed}


def is_train(place: str, step: int) -> bool:
    """Whether a place holds the training rollouts of a step."""
    parts = place.split("/")
    return len(parts) == 3 and parts[1] == f"s{step}" and parts[2].startswith("b")


def proposals_of(step: StepState) -> Mapping[str, Proposal]:
    """Every edit, suggestion or draft that a step has seen, by id."""
    sources: tuple[PatchProposed | PatchesMerged, ...] = (*step.patches.values(), *step.merges.values())
    return {proposal.id: proposal for source in sources for proposal in proposals_in(source)}


def proposals_in(made: PatchProposed | PatchesMerged) -> tuple[Proposal, ...]:
    """What an analyst or a merge came to, whichever update mode it was made in."""
    return made.edits or made.suggestions or made.drafts


def _skipped(state: TrainerState, event: StepSkipped) -> TrainerState:
    return _close_step(replace(state, counts=replace(state.counts, skipped=state.counts.skipped + 1)))


def _close_step(state: TrainerState) -> TrainerState:
    assert state.step is not None
    assert state.epoch is not None
    number = state.step.number
    after_the_verdict = state.step.extended is not None and state.step.extended.order == "upstream"
    return replace(
        state,
        steps_done=number,
        unwritten=state.step.notes if after_the_verdict else (),
        rollouts=_outside_step(state.rollouts, number),
        scored=_outside_step(state.scored, number),
        step=_next_step(state, state.epoch, number + 1),
    )


V = TypeVar("V")


def _outside_step(places: Mapping[str, V], step: int) -> Mapping[str, V]:
    return {place: value for place, value in places.items() if f"/s{step}/" not in place}


def _with_epoch(state: TrainerState, epoch: EpochState) -> TrainerState:
    return replace(state, epoch=epoch)


def _comparison(state: TrainerState, event: ComparisonDrawn) -> TrainerState:
    assert state.epoch is not None
    assert state.current is not None
    return _with_epoch(state, replace(state.epoch, comparison=event, last_skill=state.current.skill))


def _comparison_extended(state: TrainerState, event: ComparisonExtended) -> TrainerState:
    assert state.epoch is not None
    assert state.epoch.comparison is not None
    drawn = state.epoch.comparison
    return _with_epoch(state, replace(state.epoch, comparison=replace(drawn, items=drawn.items + event.items)))


def _slow_proposed(state: TrainerState, event: SlowUpdateProposed) -> TrainerState:
    assert state.epoch is not None
    if state.owed is not None and event.epoch == state.owed.epoch.number:
        proposed = event if event.result == "guidance" else None
        epoch = replace(state.owed.epoch, proposed=proposed)
        return replace(state, owed=replace(state.owed, epoch=epoch, slow_asked=state.steps_done))
    return _with_epoch(state, replace(state.epoch, proposed=event))


def _slow_applied(state: TrainerState, event: SlowUpdateApplied) -> TrainerState:
    if state.owed is not None and event.epoch == state.owed.epoch.number:
        state = _settled(state, replace(state.owed, slow=False))
    else:
        assert state.epoch is not None
        state = _with_epoch(state, replace(state.epoch, applied=event))
    assert state.current is not None
    if event.skill.hash == state.current.skill.hash:
        return state
    kind = "slow_update_placeholder" if event.action == "placeholder" else "slow_update"
    kept = event.stale_from and event.action in ("placeholder", "force_accept")
    measured = state.current if kept else state.measured.get(event.skill.hash)
    standing = Standing(
        skill=event.skill,
        origin=f"{kind}_epoch_{event.epoch:02d}",
        step=state.steps_done,
        score=measured.score if measured else None,
        value=measured.value if measured else None,
        stale_from=event.stale_from if kept else "",
    )
    best = standing if event.action == "accept_new_best" else state.best
    return replace(state, current=standing, best=best)


def _meta(state: TrainerState, event: MetaSkillWritten) -> TrainerState:
    assert state.epoch is not None
    written = event.result == "written"
    memory = event.content if written else state.memory
    if state.owed is None or event.epoch != state.owed.epoch.number:
        return replace(state, epoch=replace(state.epoch, meta=event), memory=memory)
    if not written:
        return replace(state, owed=replace(state.owed, memory_asked=state.steps_done))
    # It comes late, so it is in force for what is left of the epoch that should have had it.
    epoch = replace(state.epoch, meta_skill=memory)
    return _settled(replace(state, epoch=epoch, memory=memory), replace(state.owed, memory=False))


def _settled(state: TrainerState, owed: Owed) -> TrainerState:
    """A part of what was owed is there; once all is, the epoch's evidence is not needed any more."""
    if owed.slow or owed.memory:
        return replace(state, owed=owed)
    prefix = f"e{owed.epoch.number}/"
    return replace(state, owed=None, rollouts=_without(state.rollouts, prefix), scored=_without(state.scored, prefix))


def at_owed_epoch(state: TrainerState) -> TrainerState:
    """The state as questions about the owed epoch see it."""
    assert state.owed is not None
    return replace(state, epoch=state.owed.epoch)


def _without(places: Mapping[str, V], prefix: str, *, but: str = "") -> Mapping[str, V]:
    return {
        place: value
        for place, value in places.items()
        if not place.startswith(prefix) or (but and place.startswith(but))
    }


def _epoch_completed(state: TrainerState, event: EpochCompleted) -> TrainerState:
    if state.owed is not None:  # this epoch's own advice has come after it
        state = _settled(state, replace(state.owed, slow=False, memory=False))
    assert state.epoch is not None
    prefix, owed = f"e{event.epoch}/", _owed_by(state, state.epoch)
    return replace(
        state,
        epochs_done=event.epoch,
        step=None,
        owed=owed,
        rollouts=_without(state.rollouts, prefix, but=f"{prefix}slow/" if owed else ""),
        scored=_without(state.scored, prefix),
    )


def _owed_by(state: TrainerState, epoch: EpochState) -> Owed | None:
    """What an epoch's end could not be given, if anything; after the last epoch a memory would serve nobody."""
    assert state.started is not None
    last = state.steps_done == state.started.total_steps
    slow = epoch.proposed is not None and epoch.proposed.result != "guidance"
    memory = epoch.meta is not None and epoch.meta.result in ("unusable", "failed") and not last
    if not (slow or memory):
        return None
    return Owed(epoch=replace(epoch, proposed=None), slow=slow, memory=memory)


def _promoted(state: TrainerState, event: BestPromoted) -> TrainerState:
    assert state.current is not None
    measured = state.measured[event.skill]
    standing = replace(state.current, score=measured.score, value=measured.value, stale_from="")
    return replace(state, current=standing, best=standing)  # one text has one score


def _completed(state: TrainerState, event: RunCompleted) -> TrainerState:
    return replace(state, status="completed", completed=event, rollouts={}, scored={})


def _imported(state: TrainerState, event: RunImported) -> TrainerState:
    return replace(state, imported=event)


def _step_imported(state: TrainerState, event: StepImported) -> TrainerState:
    assert state.step is not None
    return _with_step(state, replace(state.step, imported=event))


def _gap(state: TrainerState, event: GapFound) -> TrainerState:
    """A skill whose origin is not known takes the current place; a step whose end is not known is over."""
    state = replace(state, gaps=(*state.gaps, event))
    if event.skill is not None:
        measured = state.measured.get(event.skill.hash)
        standing = Standing(
            skill=event.skill,
            origin=f"unknown_{event.place}",
            step=state.steps_done if event.step is None else event.step,
            score=measured.score if measured else None,
            value=measured.value if measured else None,
        )
        state = replace(state, current=standing)
    return state if event.step is None else _close_step(state)


_HANDLERS: dict[type[Event], Callable[..., TrainerState]] = {
    RunStarted: _started,
    RunResumed: _resumed,
    RunForked: _forked,
    EvidenceRetracted: _retracted,
    TextsErased: _erased,
    RunPaused: _paused,
    EpochPlanned: _epoch_planned,
    RolloutCompleted: _rollout,
    SkillScored: _scored,
    MinibatchesPlanned: _minibatches,
    PatchProposed: _patch,
    AppendixExtended: _appendix_extended,
    AppendixConsolidated: _appendix_consolidated,
    PatchesMerged: _merged,
    LearningRateChosen: _learning_rate,
    EditsRanked: _ranked,
    SkillRewritten: _rewritten,
    CandidateBuilt: _built,
    CandidateGated: _gated,
    StepSkipped: _skipped,
    AppendixWritten: _appendix_written,
    ComparisonDrawn: _comparison,
    ComparisonExtended: _comparison_extended,
    SlowUpdateProposed: _slow_proposed,
    SlowUpdateApplied: _slow_applied,
    MetaSkillWritten: _meta,
    EpochCompleted: _epoch_completed,
    BestPromoted: _promoted,
    RunCompleted: _completed,
    RunImported: _imported,
    StepImported: _step_imported,
    GapFound: _gap,
}


def evolve(state: TrainerState, event: Event) -> TrainerState:
    """The state after one more event."""
    return _HANDLERS[type(event)](state, event)


def fold(events: Iterable[Event], state: TrainerState | None = None) -> TrainerState:
    """The state after all these events, from nothing or from an earlier state."""
    state = TrainerState() if state is None else state
    for event in events:
        state = evolve(state, event)
    return state
