"""How the events around steps change the state: an epoch's plan, its comparison, guidance, meta skill, and its end."""

from __future__ import annotations

from attrs import evolve as replace

from skillopt_es.algorithms.classic.phases import ended
from skillopt_es.algorithms.classic.state import (
    ClassicState,
    Comparison,
    EpochState,
    Owed,
    outside,
    step_after,
    updated,
)
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    EpochCompleted,
    EpochPlanned,
    EvidenceRetracted,
    MetaSkillWritten,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch
from skillopt_es.projections.core import without_items


def epoch_planned(state: ClassicState, event: EpochPlanned) -> ClassicState:
    """An epoch begins, with an empty step buffer but for what the first one takes over."""
    epoch = EpochState(
        number=event.epoch, batches=event.batches, meta_skill=event.meta_skill, first_skill=state.current.skill
    )
    step = step_after(state, epoch, state.steps_done + 1)
    tried = () if state.algorithm.epochs_done else state.algorithm.buffer  # the first may have some of an earlier run
    return updated(state, replace(state.algorithm, epoch=epoch, buffer=tried, step=step))


def _with(state: ClassicState, epoch: EpochState) -> ClassicState:
    return updated(state, replace(state.algorithm, epoch=epoch))


def _owed(state: ClassicState, epoch: int) -> Owed | None:
    """What the epoch of this number is owed; None for the open one."""
    owed = state.algorithm.owed
    return owed if owed is not None and epoch == owed.epoch.number else None


def comparison(state: ClassicState, epoch: EpochState, event: ComparisonDrawn) -> ClassicState:
    """The tasks to compare are drawn."""
    drawn = Comparison(items=event.items, last=state.current.skill, one_text=event.previous == event.current)
    return _with(state, replace(epoch, comparison=drawn))


def comparison_extended(state: ClassicState, epoch: EpochState, event: ComparisonExtended) -> ClassicState:
    """More tasks to compare."""
    before = ended(epoch).comparison
    drawn = replace(before, items=before.items + event.items)
    return _with(state, replace(epoch, comparison=drawn))


def slow_proposed(state: ClassicState, epoch: EpochState, event: SlowUpdateProposed) -> ClassicState:
    """Guidance, or why there is none."""
    owed = _owed(state, event.epoch)
    if owed is None:
        return _with(state, replace(epoch, proposed=event))
    late = replace(owed.epoch, proposed=event if event.result == "guidance" else None)
    return updated(state, replace(state.algorithm, owed=replace(owed, epoch=late, slow_asked=state.steps_done)))


def slow_applied(state: ClassicState, epoch: EpochState, event: SlowUpdateApplied) -> ClassicState:
    """What became of the guidance."""
    owed = _owed(state, event.epoch)
    if owed is None:
        return _with(state, replace(epoch, applied=event))
    return _settled(state, replace(owed, slow=False))


def meta(state: ClassicState, epoch: EpochState, event: MetaSkillWritten) -> ClassicState:
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
    state = replace(state, rollouts=outside(state.rollouts, gone), scored=outside(state.scored, gone))
    return updated(state, replace(state.algorithm, owed=None))


def epoch_completed(state: ClassicState, epoch: EpochState, event: EpochCompleted) -> ClassicState:
    """The epoch is over; what it could not be given is owed."""
    if state.algorithm.owed is not None:  # this epoch's own guidance has come after it
        state = _settled(state, replace(state.algorithm.owed, slow=False, meta_skill=False))
    gone, owed = Place.of_epoch(event.epoch), _owed_by(state, epoch)
    state = updated(state, replace(state.algorithm, epochs_done=event.epoch, step=None, owed=owed))
    return replace(
        state,
        # What is owed still needs the comparison's attempts.
        rollouts=outside(state.rollouts, gone, but=gone.slow if owed else None),
        scored=outside(state.scored, gone),
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


def retracted(state: ClassicState, event: EvidenceRetracted) -> ClassicState:
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


def _without(batch: Batch, place: str, event: EvidenceRetracted) -> Batch:
    return replace(batch, items=without_items(batch.items, event.items)) if event.place in ("", place) else batch
