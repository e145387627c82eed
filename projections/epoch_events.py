"""How the events around steps change the state: an epoch's plan, its comparison, guidance, memory, and its end."""

from __future__ import annotations

from attrs import evolve as replace

from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    EpochCompleted,
    EpochPlanned,
    MetaSkillWritten,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.projections.state import (
    EpochState,
    Owed,
    Standing,
    TrainerState,
    outside,
    stated_score,
    step_after,
)


def epoch_planned(state: TrainerState, event: EpochPlanned) -> TrainerState:
    """An epoch begins, with an empty step buffer."""
    assert state.current is not None
    epoch = EpochState(
        number=event.epoch, batches=event.batches, meta_skill=event.meta_skill, first_skill=state.current.skill
    )
    return replace(state, epoch=epoch, buffer=(), step=step_after(state, epoch, state.steps_done + 1))


def _with_epoch(state: TrainerState, epoch: EpochState) -> TrainerState:
    return replace(state, epoch=epoch)


def comparison(state: TrainerState, event: ComparisonDrawn) -> TrainerState:
    """The tasks to compare are drawn."""
    assert state.epoch is not None
    assert state.current is not None
    return _with_epoch(state, replace(state.epoch, comparison=event, last_skill=state.current.skill))


def comparison_extended(state: TrainerState, event: ComparisonExtended) -> TrainerState:
    """More tasks to compare."""
    assert state.epoch is not None
    assert state.epoch.comparison is not None
    drawn = state.epoch.comparison
    return _with_epoch(state, replace(state.epoch, comparison=replace(drawn, items=drawn.items + event.items)))


def slow_proposed(state: TrainerState, event: SlowUpdateProposed) -> TrainerState:
    """Guidance, or why there is none."""
    assert state.epoch is not None
    if state.owed is not None and event.epoch == state.owed.epoch.number:
        proposed = event if event.result == "guidance" else None
        epoch = replace(state.owed.epoch, proposed=proposed)
        return replace(state, owed=replace(state.owed, epoch=epoch, slow_asked=state.steps_done))
    return _with_epoch(state, replace(state.epoch, proposed=event))


def slow_applied(state: TrainerState, event: SlowUpdateApplied) -> TrainerState:
    """What became of the guidance."""
    if state.owed is not None and event.epoch == state.owed.epoch.number:
        state = _settled(state, replace(state.owed, slow=False))
    else:
        assert state.epoch is not None
        state = _with_epoch(state, replace(state.epoch, applied=event))
    assert state.current is not None
    if event.skill.hash == state.current.skill.hash:
        return state
    verdict = event.verdict
    kind = "slow_update_placeholder" if verdict.action == "placeholder" else "slow_update"
    kept = verdict.stale_from and verdict.action in ("placeholder", "force_accept")
    measured = state.current if kept else state.measured.get(event.skill.hash)
    standing = Standing(
        skill=event.skill,
        origin=f"{kind}_epoch_{event.epoch:02d}",
        step=state.steps_done,
        score=stated_score(measured),
        value=measured.value if measured else None,
        stale_from=verdict.stale_from if kept else "",
    )
    return replace(state, current=standing, best=standing if verdict.new_best else state.best)


def meta(state: TrainerState, event: MetaSkillWritten) -> TrainerState:
    """The optimizer's memory, or why there is none."""
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
    gone = Place.of_epoch(owed.epoch.number)
    return replace(state, owed=None, rollouts=outside(state.rollouts, gone), scored=outside(state.scored, gone))


def epoch_completed(state: TrainerState, event: EpochCompleted) -> TrainerState:
    """The epoch is over; what it could not be given is owed."""
    if state.owed is not None:  # this epoch's own advice has come after it
        state = _settled(state, replace(state.owed, slow=False, memory=False))
    assert state.epoch is not None
    gone, owed = Place.of_epoch(event.epoch), _owed_by(state, state.epoch)
    return replace(
        state,
        epochs_done=event.epoch,
        step=None,
        owed=owed,
        rollouts=outside(state.rollouts, gone, but=gone.slow if owed else None),
        scored=outside(state.scored, gone),
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
