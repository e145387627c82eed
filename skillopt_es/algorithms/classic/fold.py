"""
How events change the state of a classic run: `FACTS` has a function for each. The core changes after them.

Most events of a step only join what is collected of it. A verdict, or what a step is skipped for, closes it: then its
attempts are not needed any more. An epoch's comparison is kept for as long as the epoch is owed something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, get_args

from attrs import evolve as replace

from skillopt_es.algorithms.classic.phases import ended, open_epoch, open_step
from skillopt_es.algorithms.classic.state import (
    Classic,
    ClassicState,
    Comparison,
    EpochState,
    Owed,
    StepState,
    is_train,
    proposals_of,
    step_after,
    updated,
)
from skillopt_es.engine.algorithm import Handler
from skillopt_es.events import catalog as events
from skillopt_es.events.catalog import Event, RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import REFUSED_LEAK, Batch, BufferEntry, FailureCode, Measured, Proposal
from skillopt_es.projections.core import without_items
from skillopt_es.projections.persistent import Ledger

E = TypeVar("E", bound=Event)
V = TypeVar("V")
Fact = Callable[[ClassicState, E], ClassicState]
Collected = (
    events.MinibatchesPlanned
    | events.PatchProposed
    | events.AppendixExtended
    | events.AppendixConsolidated
    | events.PatchesMerged
    | events.LearningRateChosen
    | events.EditsRanked
    | events.SkillRewritten
    | events.StepImported
)


def _of_step(fold: Callable[[ClassicState, StepState, E], ClassicState]) -> Fact[E]:
    """The handler of an event that belongs to the step under way."""
    return lambda state, event: fold(state, open_step(state).step, event)


def _of_epoch(fold: Callable[[ClassicState, EpochState, E], ClassicState]) -> Fact[E]:
    """The handler of an event that belongs to an epoch."""
    return lambda state, event: fold(state, open_epoch(state), event)


def _with_step(state: ClassicState, step: StepState) -> ClassicState:
    return updated(state, replace(state.algorithm, step=step))


def _with_epoch(state: ClassicState, epoch: EpochState) -> ClassicState:
    return updated(state, replace(state.algorithm, epoch=epoch))


# --- a step ----------------------------------------------------------------------------------------------------------


def _collected(state: ClassicState, step: StepState, event: Collected) -> ClassicState:
    """What joins the step under way."""
    match event:
        case events.MinibatchesPlanned():
            step = replace(step, groups=event.groups)
        case events.PatchProposed():
            step = replace(step, patches=step.patches.put(event.patch, event))
        case events.AppendixExtended():
            step = replace(step, extended=event)
        case events.AppendixConsolidated():
            step = replace(step, consolidated=event)
        case events.PatchesMerged():
            step = replace(step, merges=step.merges.put(event.merge, event))
        case events.LearningRateChosen():
            step = replace(step, learning_rate=event)
        case events.EditsRanked():
            # Counted whatever was chosen: a schedule may go by choices, and a step without any has none.
            state = replace(state, counts=replace(state.counts, selections=state.counts.selections + 1))
            step = replace(step, ranked=event)
        case events.SkillRewritten():
            step = replace(step, rewritten=event)
        case events.StepImported():
            step = replace(step, imported=event)
    return _with_step(state, step)


def _appendix_written(state: ClassicState, event: events.AppendixWritten) -> ClassicState:
    """The notes are in the skill."""
    return updated(state, replace(state.algorithm, unwritten=()))


def _gated(state: ClassicState, step: StepState, event: events.CandidateGated) -> ClassicState:
    """The verdict: it closes the step."""
    verdict = event.verdict
    attempt = _attempt(state, step, verdict.action, verdict.current_value, verdict.candidate_value)
    attempt = replace(attempt, bound=not verdict.exact)
    return _close_step(updated(state, replace(state.algorithm, buffer=(*state.algorithm.buffer, attempt))), step)


def _attempt(
    state: ClassicState, step: StepState, action: str, before: float | None, after: float | None
) -> BufferEntry:
    """What the optimizer is told about a step; only what was refused is told as not to be proposed again."""
    refused = action in ("reject", "too_large")
    rows = [row for place, done in state.rollouts.items() if is_train(place, step.number) for row in done.values()]
    failed = _failed(step, rows)
    codes: dict[str, list[str]] = {}
    for row in rows:
        if (row.place, row.item) in failed:
            codes.setdefault(row.failure or "unknown", []).append(row.item)
    rejected: tuple[Proposal, ...] = ()
    rejected_notes: tuple[str, ...] = ()
    if refused and step.ranked is not None:
        by_id = proposals_of(step)
        # What copies an item is not told to later analysts: they would hand it on.
        reports = () if state.built is None else state.built.reports
        copied = {report.edit for report in reports if report.status == REFUSED_LEAK}
        rejected = tuple(by_id[name] for name in step.ranked.chosen if name not in copied)
    if refused and step.extended is not None and step.extended.order == "measured":
        rejected_notes = step.extended.added
    return BufferEntry(
        step=step.number,
        action=action,
        total=len(rows),
        failed=sum(len(items) for items in codes.values()),
        codes=tuple(FailureCode(code, tuple(items)) for code, items in codes.items()),
        patterns=tuple(pattern for patch in step.patches.values() for pattern in patch.patterns),
        value_before=before,
        value_after=after,
        rejected=rejected,
        rejected_notes=rejected_notes,
    )


def _failed(step: StepState, rows: Iterable[RolloutCompleted]) -> set[tuple[str, str]]:
    """The rollouts that analysts saw as failures; of an imported step as recorded there, else all that are no pass."""
    if step.imported is None:
        return {(group.place, item) for group in step.planned if group.kind == "failure" for item in group.items}
    known = step.imported.failed
    if known is not None:
        return {(row.place, row.item) for row in rows if row.item in known}
    return {(row.place, row.item) for row in rows if isinstance(row.outcome, Measured) and not row.outcome.passed}


def _skipped(state: ClassicState, step: StepState, event: events.StepSkipped) -> ClassicState:
    """The step ends without a candidate."""
    if event.reason == "too_large":
        attempt = _attempt(state, step, event.reason, None, None)
        state = updated(state, replace(state.algorithm, buffer=(*state.algorithm.buffer, attempt)))
    return _close_step(state, step)


def _gap(state: ClassicState, event: events.GapFound) -> ClassicState:
    """A step whose end is not known is over."""
    return state if event.step is None else _close_step(state, open_step(state).step)


def _close_step(state: ClassicState, step: StepState) -> ClassicState:
    """The state after a step: its results are not needed any more."""
    after_the_verdict = step.extended is not None and step.extended.order == "after_verdict"
    state = updated(
        state,
        replace(
            state.algorithm,
            unwritten=step.notes if after_the_verdict else (),
            step=step_after(state, open_epoch(state), step.number + 1),
        ),
    )
    return replace(
        state,
        rollouts=_outside_step(state.rollouts, step.number),
        scored=_outside_step(state.scored, step.number),
    )


def _resumed(state: ClassicState, event: events.RunResumed) -> ClassicState:
    """The open step forgets what could not be asked; single analysts only when nothing was built without them yet."""
    step = state.algorithm.step
    if step is None or state.paused is None or state.paused.reason != "optimizer":
        return state
    if all(patch.result == "failed" for patch in step.patches.values()):
        return _with_step(state, replace(step, patches=Ledger()))
    merges: Ledger[str, events.PatchesMerged] = Ledger()
    for name, merge in step.merges.items():
        if not merge.failed:
            merges = merges.put(name, merge)
    rate, ranked, rewritten = step.learning_rate, step.ranked, step.rewritten
    step = replace(
        step,
        merges=merges,
        learning_rate=None if rate is not None and rate.result == "failed" else rate,
        ranked=None if ranked is not None and ranked.failed else ranked,
        rewritten=None if rewritten is not None and rewritten.result == "failed" else rewritten,
    )
    return _with_step(state, step)


# --- an epoch --------------------------------------------------------------------------------------------------------


def _epoch_planned(state: ClassicState, event: events.EpochPlanned) -> ClassicState:
    """An epoch begins, with an empty step buffer but for what the first one takes over."""
    epoch = EpochState(
        number=event.epoch, batches=event.batches, meta_skill=event.meta_skill, first_skill=state.current.skill
    )
    step = step_after(state, epoch, state.steps_done + 1)
    tried = () if state.algorithm.epochs_done else state.algorithm.buffer  # the first may have some of an earlier run
    return updated(state, replace(state.algorithm, epoch=epoch, buffer=tried, step=step))


def _owed(state: ClassicState, epoch: int) -> Owed | None:
    """What the epoch of this number is owed; None for the open one."""
    owed = state.algorithm.owed
    return owed if owed is not None and epoch == owed.epoch.number else None


def _comparison(state: ClassicState, epoch: EpochState, event: events.ComparisonDrawn) -> ClassicState:
    """The tasks to compare are drawn."""
    drawn = Comparison(items=event.items, last=state.current.skill, one_text=event.previous == event.current)
    return _with_epoch(state, replace(epoch, comparison=drawn))


def _comparison_extended(state: ClassicState, epoch: EpochState, event: events.ComparisonExtended) -> ClassicState:
    """More tasks to compare."""
    before = ended(epoch).comparison
    drawn = replace(before, items=before.items + event.items)
    return _with_epoch(state, replace(epoch, comparison=drawn))


def _slow_proposed(state: ClassicState, epoch: EpochState, event: events.SlowUpdateProposed) -> ClassicState:
    """Guidance, or why there is none."""
    owed = _owed(state, event.epoch)
    if owed is None:
        return _with_epoch(state, replace(epoch, proposed=event))
    late = replace(owed.epoch, proposed=event if event.result == "guidance" else None)
    return updated(state, replace(state.algorithm, owed=replace(owed, epoch=late, slow_asked=state.steps_done)))


def _slow_applied(state: ClassicState, epoch: EpochState, event: events.SlowUpdateApplied) -> ClassicState:
    """What became of the guidance."""
    owed = _owed(state, event.epoch)
    if owed is None:
        return _with_epoch(state, replace(epoch, applied=event))
    return _settled(state, replace(owed, slow=False))


def _meta(state: ClassicState, epoch: EpochState, event: events.MetaSkillWritten) -> ClassicState:
    """The optimizer's meta skill, or why there is none."""
    owed, written = _owed(state, event.epoch), event.result == "written"
    content = event.content if written else state.algorithm.meta_skill
    if owed is None:
        return updated(state, replace(state.algorithm, epoch=replace(epoch, meta=event), meta_skill=content))
    if not written:
        return updated(state, replace(state.algorithm, owed=replace(owed, meta_skill_asked=state.steps_done)))
    # It comes late, so it is in force for what is left of the epoch that should have had it.
    state = updated(state, replace(state.algorithm, epoch=replace(epoch, meta_skill=content), meta_skill=content))
    return _settled(state, replace(owed, meta_skill=False))


def _settled(state: ClassicState, owed: Owed) -> ClassicState:
    """A part of what was owed is there; once all is, the epoch's evidence is not needed any more."""
    if owed.slow or owed.meta_skill:
        return updated(state, replace(state.algorithm, owed=owed))
    gone = Place.of_epoch(owed.epoch.number)
    state = replace(state, rollouts=_outside(state.rollouts, gone), scored=_outside(state.scored, gone))
    return updated(state, replace(state.algorithm, owed=None))


def _epoch_completed(state: ClassicState, epoch: EpochState, event: events.EpochCompleted) -> ClassicState:
    """The epoch is over; what it could not be given is owed."""
    if state.algorithm.owed is not None:  # this epoch's own guidance has come after it
        state = _settled(state, replace(state.algorithm.owed, slow=False, meta_skill=False))
    gone, owed = Place.of_epoch(event.epoch), _owed_by(state, epoch)
    state = updated(state, replace(state.algorithm, epochs_done=event.epoch, step=None, owed=owed))
    return replace(
        state,
        # What is owed still needs the comparison's attempts.
        rollouts=_outside(state.rollouts, gone, but=gone.slow if owed else None),
        scored=_outside(state.scored, gone),
    )


def _owed_by(state: ClassicState, epoch: EpochState) -> Owed | None:
    """What an epoch's end could not be given, if anything; after the last epoch a meta skill would serve nobody."""
    last = state.steps_done == state.started.total_steps
    slow = epoch.proposed is not None and epoch.proposed.result != "guidance"
    meta = epoch.meta is not None and epoch.meta.result in ("unusable", "failed") and not last
    if not (slow or meta):
        return None
    # What failed is not kept: it is asked for anew, as if it had never been.
    return Owed(epoch=replace(epoch, proposed=None), slow=slow, meta_skill=meta)


def _retracted(state: ClassicState, event: events.EvidenceRetracted) -> ClassicState:
    """What is still to be tried in the open epoch is so without the retracted items."""
    epoch, step = state.algorithm.epoch, state.algorithm.step
    if epoch is None:
        return state
    per_epoch = state.started.steps_per_epoch
    first, share = (epoch.number - 1) * per_epoch + 1, len(epoch.batches) // per_epoch
    batches = tuple(
        _without(batch, Place.of_step(epoch.number, first + index // share).in_batch(index % share), event)
        for index, batch in enumerate(epoch.batches)
    )
    epoch = replace(epoch, batches=batches)
    step = None if step is None else step_after(state, epoch, step.number)
    return updated(state, replace(state.algorithm, epoch=epoch, step=step))


def _without(batch: Batch, place: str, event: events.EvidenceRetracted) -> Batch:
    return replace(batch, items=without_items(batch.items, event.items)) if event.place in ("", place) else batch


def _outside_step(places: Mapping[str, V], step: int) -> Mapping[str, V]:
    """What is not of a step."""
    return {place: value for place, value in places.items() if Place(place).step != step}


def _outside(places: Mapping[str, V], gone: Place, *, but: Place | None = None) -> Mapping[str, V]:
    """What lies in other places, or in that part of this one which is kept."""
    return {
        place: value
        for place, value in places.items()
        if not gone.holds(place) or (but is not None and but.holds(place))
    }


FACTS: Mapping[type[Event], Handler[Classic]] = {
    **dict.fromkeys(get_args(Collected), _of_step(_collected)),
    events.AppendixWritten: _appendix_written,
    events.CandidateGated: _of_step(_gated),
    events.StepSkipped: _of_step(_skipped),
    events.GapFound: _gap,
    events.RunResumed: _resumed,
    events.EpochPlanned: _epoch_planned,
    events.ComparisonDrawn: _of_epoch(_comparison),
    events.ComparisonExtended: _of_epoch(_comparison_extended),
    events.SlowUpdateProposed: _of_epoch(_slow_proposed),
    events.SlowUpdateApplied: _of_epoch(_slow_applied),
    events.MetaSkillWritten: _of_epoch(_meta),
    events.EpochCompleted: _of_epoch(_epoch_completed),
    events.EvidenceRetracted: _retracted,
}
