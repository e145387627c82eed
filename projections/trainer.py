"""
The reducer: TrainerState is a pure fold of the events, and nothing else is state.

`evolve` only applies facts; it never decides, measures or reads anything but its arguments. Collections that grow with
the log are ledgers, so that a fold is linear in the number of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import cast

from attrs import evolve as replace

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
    Recorded,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunResumed,
    RunStarted,
    SealedTestOpened,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepImported,
    StepSkipped,
    TextsErased,
    TrainingStopped,
)
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.values import Failed, Measured
from skillopt_es.projections.epoch_events import (
    comparison,
    comparison_extended,
    epoch_completed,
    epoch_planned,
    meta,
    slow_applied,
    slow_proposed,
)
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.retraction import retracted
from skillopt_es.projections.state import (
    Drawn,
    Measurement,
    Partial,
    Rollouts,
    Standing,
    StepState,
    TrainerState,
    is_silent,
    stated_score,
)
from skillopt_es.projections.step_events import (
    appendix_consolidated,
    appendix_extended,
    appendix_written,
    built,
    close_step,
    gated,
    learning_rate,
    merged,
    minibatches,
    patch,
    ranked,
    rewritten,
    skipped,
    step_imported,
)


def _started(state: TrainerState, event: RunStarted) -> TrainerState:
    standing = Standing(skill=event.skill)
    return replace(state, status="running", started=event, current=standing, best=standing)


def _resumed(state: TrainerState, event: RunResumed) -> TrainerState:
    counts = replace(state.counts, resumed=state.counts.resumed + 1)
    overrides = {**state.overrides, **{setting.key: setting.value for setting in event.overrides}}
    resumed = replace(state, status="running", paused=None, counts=counts, overrides=overrides)
    match state.paused:
        case RunPaused(reason="unmeasured"):
            return _to_be_tried_again(resumed, _failed)
        case RunPaused(reason="unanswered"):
            return _to_be_tried_again(resumed, lambda row: _failed(row) or is_silent(row))
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
        looks=state.looks.forked(),
        overrides={**state.overrides, **{setting.key: setting.value for setting in event.overrides}},
        measured=measured,
        current=_revalued(state.current, event.values),
        best=_revalued(state.best, event.values),
    )


def _erased(state: TrainerState, event: TextsErased) -> TrainerState:
    """What happened has happened all the same."""
    return state


def _revalued(standing: Standing | None, values: Mapping[str, float]) -> Standing | None:
    if standing is None or standing.value is None:
        return standing
    return replace(standing, value=values.get(standing.stale_from or standing.skill.hash, standing.value))


def _failed(row: RolloutCompleted) -> bool:
    return isinstance(row.outcome, Failed)


def _to_be_tried_again(state: TrainerState, again: Callable[[RolloutCompleted], bool]) -> TrainerState:
    """Evaluations that are still open forget these; draws that ended early do, too, should they be completed."""
    return replace(
        state,
        rollouts={
            place: done if place in state.scored else _without(done, again) for place, done in state.rollouts.items()
        },
        partial={
            key: replace(begun, rows={item: row for item, row in begun.rows.items() if not again(row)})
            for key, begun in state.partial.items()
        },
    )


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


def _without(done: Rollouts, again: Callable[[RolloutCompleted], bool]) -> Rollouts:
    if not any(again(row) for row in done.values()):
        return done
    kept: Rollouts = Ledger()
    for item, row in done.items():
        if not again(row):
            kept = kept.put(item, row)
    return kept


def _paused(state: TrainerState, event: RunPaused) -> TrainerState:
    return replace(state, status="paused", paused=event)


def _rollout(state: TrainerState, event: RolloutCompleted) -> TrainerState:
    return _rollouts(state, (event,))


def _rollouts(state: TrainerState, events: Sequence[RolloutCompleted]) -> TrainerState:
    """The state after some rollouts in a row: most of a log, so a fold takes them together."""
    done: dict[str, Rollouts] = {}
    for event in events:
        place = done.get(event.place) or state.rollouts.get(event.place) or Ledger()
        done[event.place] = place.put(event.item, event)
    counts = replace(
        state.counts,
        rollouts=state.counts.rollouts + len(events),
        unmeasured=state.counts.unmeasured + sum(not isinstance(event.outcome, Measured) for event in events),
    )
    return replace(state, rollouts={**state.rollouts, **done}, counts=counts)


def _scored(state: TrainerState, event: SkillScored) -> TrainerState:
    state = replace(state, scored={**state.scored, event.place: event})
    if event.purpose == "test":
        looks = state.looks.tested() if event.split == "test" else state.looks
        return replace(state, tests={**state.tests, event.skill: event}, looks=looks)
    known = state.measured.get(event.skill)
    if event.purpose != "selection" or (known is not None and event.draw == 1):
        return state
    begun = state.partial.get((event.skill, event.draw))
    rows = {**(begun.rows if begun is not None else {}), **state.rollouts.get(event.place, {})}
    rollouts = {place: done for place, done in state.rollouts.items() if place != event.place}
    state = _seen(state, known, rows)
    partial = {key: each for key, each in state.partial.items() if key != (event.skill, event.draw)}
    if not event.exact:
        partial[event.skill, event.draw] = Partial(place=event.place, rows=rows)
        return replace(state, partial=partial, rollouts=rollouts)
    items = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    if known is None:
        known = Measurement(score=event.score, value=event.value, place=event.place, items=items)
    else:
        known = _drawn_again(known, event, Drawn(score=event.score, place=event.place, items=items))
    return replace(
        state,
        measured=_put(state.measured, event.skill, known),
        current=_with_score(state.current, event.skill, known),
        best=_with_score(state.best, event.skill, known),
        rollouts=rollouts,
        partial=partial,
    )


def _seen(state: TrainerState, known: Measurement | None, rows: Mapping[str, RolloutCompleted]) -> TrainerState:
    """The state with the items' types, and those that came out otherwise than in the text's first evaluation."""
    new = {item: row.task_type for item, row in rows.items() if item not in state.types}
    if new:
        state = replace(state, types={**state.types, **new})
    if known is None:
        return state
    drawn = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    other = {item for item, outcome in drawn.items() if item in known.items and known.items[item] != outcome}
    return state if other <= state.flipped else replace(state, flipped=state.flipped | other)


def _put(measured: Ledger[str, Measurement], skill: str, known: Measurement) -> Ledger[str, Measurement]:
    """The ledger with a text's measurement; a text that was drawn again, which is seldom, has it written anew."""
    if skill not in measured:
        return measured.put(skill, known)
    anew: Ledger[str, Measurement] = Ledger()
    for name, each in measured.items():
        anew = anew.put(name, known if name == skill else each)
    return anew


def _drawn_again(known: Measurement, event: SkillScored, drawn: Drawn) -> Measurement:
    """A value that was told stays; else it is the mean over all draws."""
    if event.draw == 0:
        return replace(known, told=drawn, value=event.value)
    value = known.value
    if known.told is None and value is not None and event.value is not None:
        value += (event.value - value) / (known.draws + 1)
    return replace(known, further=(*known.further, drawn), value=value)


def _with_score(standing: Standing | None, skill: str, known: Measurement) -> Standing | None:
    if standing is None or standing.stale_from or standing.skill.hash != skill:
        return standing
    if standing.score is not None and known.draws == 1 and known.told is None:
        return standing
    return replace(standing, score=known.stated, value=known.value)


def _promoted(state: TrainerState, event: BestPromoted) -> TrainerState:
    assert state.current is not None
    measured = state.measured[event.skill]
    standing = replace(state.current, score=measured.stated, value=measured.value, stale_from="")
    return replace(state, current=standing, best=standing)  # one text has one score


def _opened(state: TrainerState, event: SealedTestOpened) -> TrainerState:
    return replace(state, looks=state.looks.after(event))


def _stopped(state: TrainerState, event: TrainingStopped) -> TrainerState:
    return replace(state, stopped=event)


def _completed(state: TrainerState, event: RunCompleted) -> TrainerState:
    return replace(state, status="completed", completed=event, rollouts={}, scored={})


def _imported(state: TrainerState, event: RunImported) -> TrainerState:
    return replace(state, imported=event)


def _gap(state: TrainerState, event: GapFound) -> TrainerState:
    """A skill whose origin is not known takes the current place; a step whose end is not known is over."""
    state = replace(state, gaps=(*state.gaps, event))
    if event.skill is not None:
        measured = state.measured.get(event.skill.hash)
        standing = Standing(
            skill=event.skill,
            origin=f"unknown_{event.place}",
            step=state.steps_done if event.step is None else event.step,
            score=stated_score(measured),
            value=measured.value if measured else None,
        )
        state = replace(state, current=standing)
    return state if event.step is None else close_step(state)


_HANDLERS: dict[type[Event], Callable[..., TrainerState]] = {
    RunStarted: _started,
    RunResumed: _resumed,
    RunForked: _forked,
    EvidenceRetracted: retracted,
    TextsErased: _erased,
    RunPaused: _paused,
    EpochPlanned: epoch_planned,
    RolloutCompleted: _rollout,
    SkillScored: _scored,
    MinibatchesPlanned: minibatches,
    PatchProposed: patch,
    AppendixExtended: appendix_extended,
    AppendixConsolidated: appendix_consolidated,
    PatchesMerged: merged,
    LearningRateChosen: learning_rate,
    EditsRanked: ranked,
    SkillRewritten: rewritten,
    CandidateBuilt: built,
    CandidateGated: gated,
    StepSkipped: skipped,
    AppendixWritten: appendix_written,
    ComparisonDrawn: comparison,
    ComparisonExtended: comparison_extended,
    SlowUpdateProposed: slow_proposed,
    SlowUpdateApplied: slow_applied,
    MetaSkillWritten: meta,
    TrainingStopped: _stopped,
    EpochCompleted: epoch_completed,
    BestPromoted: _promoted,
    SealedTestOpened: _opened,
    RunCompleted: _completed,
    RunImported: _imported,
    StepImported: step_imported,
    GapFound: _gap,
}


def evolve(state: TrainerState, event: Event) -> TrainerState:
    """The state after one more event."""
    return _HANDLERS[type(event)](state, event)


def fold(events: Iterable[Event], state: TrainerState | None = None) -> TrainerState:
    """The state after all these events, from nothing or from an earlier state."""
    state = TrainerState() if state is None else state
    for kind, row in groupby(events, key=type):
        if kind is RolloutCompleted:
            state = _rollouts(state, cast("Sequence[RolloutCompleted]", list(row)))
        else:
            for event in row:
                state = evolve(state, event)
    return state


def fold_log(log: Iterable[Recorded], state: TrainerState | None = None) -> tuple[TrainerState, int]:
    """
    The state after all these events of a log, and the number of the last one (0 for none).

    Raises LogDamaged at the first that cannot follow what stands before it.
    """
    seq = 0

    def passing() -> Iterator[Event]:
        nonlocal seq
        for recorded in log:
            seq = recorded.seq
            yield recorded.event

    try:
        return fold(passing(), state), seq
    except (AssertionError, LookupError) as error:
        raise LogDamaged(f"what stands before event {seq} of the log cannot lead to it", seq=seq) from error
