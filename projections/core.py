"""
The reducer of what every run has: its core is a pure fold of the events, and so is which skill holds which place.

`evolve` only applies facts; it never decides, measures or reads anything but its arguments. Collections that grow with
the log are ledgers, so that a fold is linear in the number of events. What an algorithm folds besides comes after it.

Who takes a place is read from the events here alone (`takes`). Whatever stands for a text, such as its score, its node
in the lineage, or its lines and their makers, moves by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from attrs import evolve as replace

from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    CertificateWagered,
    Event,
    EvidenceRetracted,
    GapFound,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunResumed,
    RunStarted,
    RunSteered,
    SealedTestOpened,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
    TrainingStopped,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import UNREADABLE, Failed, Measured, SkillTree
from skillopt_es.projections.exposure import SHOWING, after_rollouts, after_showing
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.state import (
    Drawn,
    Kind,
    Measurement,
    Origin,
    OutOfPlace,
    Partial,
    RolloutsByItem,
    RunState,
    Standing,
    is_silent,
    stated_score,
    there,
)

S = TypeVar("S")
T = TypeVar("T")


def standing_of(
    skill: SkillTree, measured: Standing | Measurement | None, *, origin: Origin, step: int, stale_from: str = ""
) -> Standing:
    """A place for a skill, with the score of what was measured for it."""
    return Standing(
        skill=skill,
        score=stated_score(measured),
        value=None if measured is None else measured.value,
        origin=origin,
        step=step,
        stale_from=stale_from,
    )


def takes(event: Event) -> tuple[str, ...]:
    """The places that an event gives to its text. A promoted or certified one holds another place already."""
    match event:
        case RunStarted():
            return ("current", "best", "certified")
        case CandidateGated(verdict=verdict) | SlowUpdateApplied(verdict=verdict):
            return (*(("current",) if verdict.taken else ()), *(("best",) if verdict.new_best else ()))
        case AppendixWritten() | GapFound(skill=SkillTree()) | RunSteered(skill=SkillTree()):
            return ("current",)
        case BestPromoted():
            return ("best",)
        case CertificateWagered(moved=True):
            return ("certified",)
        case _:
            return ()


def moved(held: Mapping[str, T], event: Event, text: T) -> dict[str, T]:
    """What holds each place after an event with this text."""
    return {**held, **dict.fromkeys(takes(event), text)}


def beginning(event: RunStarted, algorithm: S) -> RunState[S]:
    """The state of a run after its first event, with what its algorithm knows at first."""
    first = Standing(skill=event.skill)
    return RunState(started=event, current=first, best=first, certified=first, algorithm=algorithm)


def placed(state: RunState[S], event: Event, standing: Standing) -> RunState[S]:
    """The state with this skill in the places that the event gives to it."""
    now = {**state.standings, **dict.fromkeys(takes(event), standing)}
    return replace(state, current=now["current"], best=now["best"], certified=now["certified"])


def _each_standing(state: RunState[S], now: Callable[[Standing], Standing]) -> RunState[S]:
    """The state with each skill that holds a place as it is `now`."""
    return replace(state, current=now(state.current), best=now(state.best), certified=now(state.certified))


def waiting(state: RunState[S]) -> CandidateBuilt:
    """The candidate that waits for its verdict; raises OutOfPlace where none does."""
    return there(state.built, "candidate that waits for a verdict")


def _built(state: RunState[S], event: CandidateBuilt) -> RunState[S]:
    return replace(state, built=event)


def _gated(state: RunState[S], event: CandidateGated) -> RunState[S]:
    """The verdict ends the step."""
    verdict = event.verdict
    counts = replace(
        state.counts,
        accepted=state.counts.accepted + verdict.taken,
        rejected=state.counts.rejected + (verdict.action == "reject"),
        indecisive=state.counts.indecisive + (verdict.action == "indecisive"),
    )
    if verdict.taken:
        # A text that is taken was measured: without a gate, too, or its score would be unknown.
        measured = state.measured[event.candidate]
        origin = Origin(kind="step", step=event.step)
        standing = standing_of(waiting(state).candidate, measured, origin=origin, step=event.step)
        state = placed(state, event, standing)
    return replace(state, counts=counts, built=None, steps_done=event.step)


def _skipped(state: RunState[S], event: StepSkipped) -> RunState[S]:
    counts = replace(state.counts, skipped=state.counts.skipped + 1)
    return replace(state, counts=counts, built=None, steps_done=event.step)


def _guided(state: RunState[S], event: SlowUpdateApplied) -> RunState[S]:
    # The text is as it was, and so are its place and its score.
    if event.skill.hash == state.current.skill.hash:
        return state
    verdict = event.verdict
    kind: Kind = "slow_update_placeholder" if verdict.action == "placeholder" else "slow_update"
    kept = verdict.stale_from and verdict.action in ("placeholder", "force_accept")
    standing = standing_of(
        event.skill,
        state.current if kept else state.measured.get(event.skill.hash),
        origin=Origin(kind=kind, epoch=event.epoch),
        step=state.steps_done,
        stale_from=verdict.stale_from if kept else "",
    )
    return placed(state, event, standing)


def _noted(state: RunState[S], event: AppendixWritten) -> RunState[S]:
    """The score of the text before it is not its own: it has one when that very text was measured."""
    if event.skill.hash == state.current.skill.hash:
        return state
    measured = state.current if event.stale_from else state.measured.get(event.skill.hash)
    origin = Origin(kind="appendix", step=event.step)
    standing = standing_of(event.skill, measured, origin=origin, step=event.step, stale_from=event.stale_from)
    return placed(state, event, standing)


def _promoted(state: RunState[S], event: BestPromoted) -> RunState[S]:
    measured = state.measured[event.skill]
    # Of the current one: promoting changes its rank, not where it comes from.
    standing = replace(state.current, score=measured.stated, value=measured.value, stale_from="")
    return replace(state, current=standing, best=standing)  # one text has one score


def _wagered(state: RunState[S], event: CertificateWagered) -> RunState[S]:
    """The challenger, which holds another place already, is the certified skill if it has won."""
    state = replace(state, wagers=(*state.wagers, event))
    if not event.moved:
        return state
    held = {each.skill.hash: each for each in (state.best, state.current)}
    return placed(state, event, held[event.challenger])


def _gap(state: RunState[S], event: GapFound) -> RunState[S]:
    """A skill whose origin is not known takes the current place; a step whose end is not known is over."""
    state = replace(state, gaps=(*state.gaps, event))
    if event.skill is not None:
        step = state.steps_done if event.step is None else event.step
        measured = state.measured.get(event.skill.hash)
        origin = Origin(kind="unknown", place=event.place)
        state = placed(state, event, standing_of(event.skill, measured, origin=origin, step=step))
    return state if event.step is None else replace(state, built=None, steps_done=event.step)


MOVES: Mapping[type[Event], Callable[..., RunState[Any]]] = {
    CandidateBuilt: _built,
    CandidateGated: _gated,
    StepSkipped: _skipped,
    SlowUpdateApplied: _guided,
    AppendixWritten: _noted,
    BestPromoted: _promoted,
    CertificateWagered: _wagered,
    GapFound: _gap,
}


def _resumed(state: RunState[S], event: RunResumed) -> RunState[S]:
    counts = replace(state.counts, resumed=state.counts.resumed + 1)
    overrides = {**state.overrides, **{setting.key: setting.value for setting in event.overrides}}
    resumed = replace(state, status="running", paused=None, counts=counts, overrides=overrides)
    match state.paused:
        case RunPaused(reason="unmeasured"):
            return _to_be_tried_again(resumed, _failed)
        case RunPaused(reason="unanswered"):
            return _to_be_tried_again(resumed, lambda row: _failed(row) or is_silent(row))
        case _:
            # After any other pause, what was tried counts as it is.
            return resumed


def _forked(state: RunState[S], event: RunForked) -> RunState[S]:
    """What was measured keeps its scores; what they count may change."""
    measured = state.measured
    if event.values:
        measured = Ledger()
        for skill, found in state.measured.items():
            measured = measured.put(skill, replace(found, value=event.values.get(skill, found.value)))
    values = event.values
    state = replace(
        state,
        forked=event,
        looks=state.looks.forked(),
        overrides={**state.overrides, **{setting.key: setting.value for setting in event.overrides}},
        measured=measured,
    )
    return _each_standing(state, lambda each: _revalued(each, values))


def _revalued(standing: Standing, values: Mapping[str, float]) -> Standing:
    if standing.value is None:
        return standing
    # A text that stands on another one's score counts what that one counts.
    return replace(standing, value=values.get(standing.stale_from or standing.skill.hash, standing.value))


def _failed(row: RolloutCompleted) -> bool:
    return isinstance(row.outcome, Failed)


def _misjudged(lost: Iterable[RolloutCompleted]) -> Iterator[tuple[str, int]]:
    """How many questions to the judge were of no use, by attempt: recorded replies stay, so others are asked."""
    for each in lost:
        if each.failure == UNREADABLE:
            for call in each.calls:
                slot = Place(call.slot)
                if slot.question is not None:
                    yield slot.asked_about, slot.question  # in the order in which they were asked


def _to_be_tried_again(state: RunState[S], again: Callable[[RolloutCompleted], bool]) -> RunState[S]:
    """Evaluations that are still open forget these; draws that ended early do, too, should they be completed."""
    here = (row for place, done in state.rollouts.items() if place not in state.scored for row in done.values())
    begun = (row for draw in state.partial.values() for row in draw.rows.values())
    return replace(
        state,
        misjudged={**state.misjudged, **dict(_misjudged(row for row in chain(here, begun) if again(row)))},
        rollouts={
            # A sum that is recorded stays: trying its items again would leave two truths.
            place: done if place in state.scored else _without(done, again)
            for place, done in state.rollouts.items()
        },
        partial={
            key: replace(begun, rows={item: row for item, row in begun.rows.items() if not again(row)})
            for key, begun in state.partial.items()
        },
    )


def _without(done: RolloutsByItem, again: Callable[[RolloutCompleted], bool]) -> RolloutsByItem:
    if not any(again(row) for row in done.values()):
        return done
    kept: RolloutsByItem = Ledger()
    for item, row in done.items():
        if not again(row):
            kept = kept.put(item, row)
    return kept


def _paused(state: RunState[S], event: RunPaused) -> RunState[S]:
    return replace(state, status="paused", paused=event)


def _steered(state: RunState[S], event: RunSteered) -> RunState[S]:
    """An order holds from here on; a line that is struck leaves a text that has no score unless it was measured."""
    before = state.steering
    steering = replace(before, orders=before.orders | {event.name})
    match event.order:
        case "hint":
            steering = replace(steering, hints=(*before.hints, event.text))
        case "pin":
            steering = replace(steering, pins=(*before.pins, event.text))
        case "unpin":
            steering = replace(steering, pins=tuple(pin for pin in before.pins if pin != event.text))
        case "stop":
            steering = replace(steering, stop=True)
        case "take" | "refuse" as hand:
            steering = replace(steering, by_hand={**before.by_hand, event.text: hand})
        case "pause" | "budget" | "strike" | "retract":
            pass
    overrides = {**state.overrides, **{setting.key: setting.value for setting in event.settings}}
    state = replace(state, steering=steering, overrides=overrides)
    if event.skill is None:
        return state
    measured = state.measured.get(event.skill.hash)
    origin = Origin(kind="struck", step=state.steps_done)
    return placed(state, event, standing_of(event.skill, measured, origin=origin, step=state.steps_done))


def with_rollouts(state: RunState[S], events: Sequence[RolloutCompleted]) -> RunState[S]:
    """The state after some rollouts in a row: most of a log, so a fold takes them together."""
    done: dict[str, RolloutsByItem] = {}
    for event in events:
        place = done.get(event.place) or state.rollouts.get(event.place) or Ledger()
        done[event.place] = place.put(event.item, event)
    counts = replace(
        state.counts,
        rollouts=state.counts.rollouts + len(events),
        unmeasured=state.counts.unmeasured + sum(not isinstance(event.outcome, Measured) for event in events),
    )
    exposure = after_rollouts(state.exposure, events)
    return replace(state, rollouts={**state.rollouts, **done}, counts=counts, exposure=exposure)


def _shown(state: RunState[S], event: Event) -> RunState[S]:
    return replace(state, exposure=after_showing(state.exposure, event))


def _scored(state: RunState[S], event: SkillScored) -> RunState[S]:
    state = replace(state, scored={**state.scored, event.place: event})
    if event.purpose == "test":
        looks = state.looks.tested() if event.split == "test" else state.looks
        return replace(state, tests={**state.tests, event.skill: event}, looks=looks)
    known = state.measured.get(event.skill)
    # A text's first evaluation stays, unless it goes on with more items: else only further draws add to it.
    if event.purpose != "selection" or (known is not None and event.repeat == 1 and not event.goes_on):
        return state
    begun = state.partial.get((event.skill, event.repeat))
    rows = {**(begun.rows if begun is not None else {}), **state.rollouts.get(event.place, {})}
    # The measurement has what matters of these rows, and the state stays small.
    rollouts = {place: done for place, done in state.rollouts.items() if place != event.place}
    state = _seen(state, known, rows)
    partial = {key: each for key, each in state.partial.items() if key != (event.skill, event.repeat)}
    if not event.exact:
        partial[event.skill, event.repeat] = Partial(place=event.place, rows=rows)
        return replace(state, partial=partial, rollouts=rollouts)
    items = {item: state.measured[event.carried_from].items[item] for item in event.carried}
    items |= {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    in_part = bool(event.carried) and event.carried_from == event.skill and not event.goes_on
    drawn = Drawn(score=event.score, place=event.place, items=items, in_part=in_part)
    if known is None or event.goes_on:
        now = Measurement(drawn=(drawn,), value=event.value)
    else:
        now = _drawn_again(known, event, drawn)
    state = replace(state, measured=_put(state.measured, event.skill, now), rollouts=rollouts, partial=partial)
    return _each_standing(state, lambda each: _with_score(each, event, now))


def _seen(state: RunState[S], known: Measurement | None, rows: Mapping[str, RolloutCompleted]) -> RunState[S]:
    """The state with the items' types, and those that came out otherwise than in the text's first evaluation."""
    new = {item: row.task_type for item, row in rows.items() if item not in state.types}
    if new:
        state = replace(state, types={**state.types, **new})
    if known is None:
        return state
    again = {
        item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured) and item in known.items
    }
    other = {item for item, outcome in again.items() if known.items[item] != outcome}
    return replace(state, flipped=state.flipped | other, repeated=state.repeated + len(again))


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
    if event.repeat == 0:
        return replace(known, fresh=drawn, value=event.value)
    value = known.value
    if known.fresh is None and value is not None and event.value is not None:
        # The mean over all draws, from the one so far.
        value += (event.value - value) / (known.draws + 1)
    return replace(known, drawn=(*known.drawn, drawn), value=value)


def _with_score(standing: Standing, event: SkillScored, known: Measurement) -> Standing:
    if standing.stale_from or standing.skill.hash != event.skill:
        return standing
    if standing.score is not None and known.draws == 1 and known.fresh is None and not event.goes_on:
        return standing
    return replace(standing, score=known.stated, value=known.value)


def _opened(state: RunState[S], event: SealedTestOpened) -> RunState[S]:
    return replace(state, looks=state.looks.after(event))


def _stopped(state: RunState[S], event: TrainingStopped) -> RunState[S]:
    return replace(state, stopped=event)


def _completed(state: RunState[S], event: RunCompleted) -> RunState[S]:
    return replace(state, status="completed", completed=event, rollouts={}, scored={})


def _imported(state: RunState[S], event: RunImported) -> RunState[S]:
    return replace(state, imported=event)


def _retracted(state: RunState[S], event: EvidenceRetracted) -> RunState[S]:
    """What is still to be drawn and tried is so without the retracted items."""
    # With a place, only what was tried there is no evidence: the items stay in their splits.
    if event.place:
        return state
    splits = state.started.splits
    splits = replace(
        splits,
        train=without_items(splits.train, event.items),
        val=without_items(splits.val, event.items),
        test=without_items(splits.test, event.items),
    )
    gone = frozenset(event.items)
    state = replace(state, started=replace(state.started, splits=splits), flipped=state.flipped - gone)
    return _measured_without(state, gone, {} if event.values is None else event.values)


def _measured_without(state: RunState[S], gone: frozenset[str], values: Mapping[str, float]) -> RunState[S]:
    """What was measured with these items is as if they had not been there; a verdict that was given stays."""
    measured: Ledger[str, Measurement] = Ledger()
    for skill, found in state.measured.items():
        measured = measured.put(skill, found.without(gone, values.get(skill, found.value)))

    def scored(each: Standing) -> Standing:
        known = measured.get(each.stale_from or each.skill.hash)
        score = each.score if known is None or each.score is None else known.stated
        return replace(_revalued(each, values), score=score)

    partial = {
        key: replace(begun, rows={item: row for item, row in begun.rows.items() if item not in gone})
        for key, begun in state.partial.items()
    }
    rollouts = {place: _without(done, lambda row: row.item in gone) for place, done in state.rollouts.items()}
    return _each_standing(replace(state, measured=measured, partial=partial, rollouts=rollouts), scored)


def without_items(items: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    """The items that are still there, in their order."""
    return tuple(item for item in items if item not in gone)


_HANDLERS: Mapping[type[Event], Callable[..., RunState[Any]]] = {
    RunResumed: _resumed,
    RunForked: _forked,
    EvidenceRetracted: _retracted,
    RunPaused: _paused,
    RunSteered: _steered,
    SkillScored: _scored,
    TrainingStopped: _stopped,
    SealedTestOpened: _opened,
    RunCompleted: _completed,
    RunImported: _imported,
    **dict.fromkeys(SHOWING, _shown),
    **MOVES,
}


def evolve(state: RunState[S], event: Event) -> RunState[S]:
    """The state after one more event, but for the algorithm's part; most events change nothing here."""
    if isinstance(event, RolloutCompleted):
        return with_rollouts(state, (event,))
    handler = _HANDLERS.get(type(event))
    return state if handler is None else handler(state, event)


def core_after(state: RunState[object] | None, event: Event) -> RunState[object]:
    """The core of a run's state after one more event, for readers who need no more; None before the first."""
    if state is not None:
        return evolve(state, event)
    if not isinstance(event, RunStarted):
        raise OutOfPlace(f"{type(event).__name__} before the run has begun")
    return beginning(event, None)
