"""
Which skill holds which place: who takes one is read from the events here alone, and the state follows.

Whatever stands for a text (its score, its node in the lineage, its lines and their makers) moves by `takes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import evolve as replace

from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    Event,
    GapFound,
    RunStarted,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.values import SkillTree
from skillopt_es.projections.state import Kind, Measurement, Origin, RunState, Standing, stated_score

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
    """The places that an event gives to its text. With `BestPromoted` that is the text which is current already."""
    match event:
        case RunStarted():
            return ("current", "best")
        case CandidateGated(verdict=verdict) | SlowUpdateApplied(verdict=verdict):
            return (*(("current",) if verdict.taken else ()), *(("best",) if verdict.new_best else ()))
        case AppendixWritten() | GapFound(skill=SkillTree()):
            return ("current",)
        case BestPromoted():
            return ("best",)
        case _:
            return ()


def moved(held: Mapping[str, T], event: Event, text: T) -> dict[str, T]:
    """What holds each place after an event with this text."""
    return {**held, **dict.fromkeys(takes(event), text)}


def placed(state: RunState[S], **standings: Standing) -> RunState[S]:
    """The state with these skills in the places of these names."""
    return replace(state, standings={**state.standings, **standings})


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
        assert state.built is not None
        measured = state.measured[event.candidate]
        origin = Origin(kind="step", step=event.step)
        standing = standing_of(state.built.candidate, measured, origin=origin, step=event.step)
        state = placed(state, **dict.fromkeys(takes(event), standing))
    return replace(state, counts=counts, built=None, steps_done=event.step)


def _skipped(state: RunState[S], event: StepSkipped) -> RunState[S]:
    counts = replace(state.counts, skipped=state.counts.skipped + 1)
    return replace(state, counts=counts, built=None, steps_done=event.step)


def _guided(state: RunState[S], event: SlowUpdateApplied) -> RunState[S]:
    assert state.current is not None
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
    return placed(state, **dict.fromkeys(takes(event), standing))


def _noted(state: RunState[S], event: AppendixWritten) -> RunState[S]:
    """The score of the text before it is not its own: it has one when that very text was measured."""
    assert state.current is not None
    if event.skill.hash == state.current.skill.hash:
        return state
    measured = state.current if event.stale_from else state.measured.get(event.skill.hash)
    origin = Origin(kind="appendix", step=event.step)
    standing = standing_of(event.skill, measured, origin=origin, step=event.step, stale_from=event.stale_from)
    return placed(state, current=standing)


def _promoted(state: RunState[S], event: BestPromoted) -> RunState[S]:
    assert state.current is not None
    measured = state.measured[event.skill]
    standing = replace(state.current, score=measured.stated, value=measured.value, stale_from="")
    return placed(state, current=standing, best=standing)  # one text has one score


def _gap(state: RunState[S], event: GapFound) -> RunState[S]:
    """A skill whose origin is not known takes the current place; a step whose end is not known is over."""
    state = replace(state, gaps=(*state.gaps, event))
    if event.skill is not None:
        step = state.steps_done if event.step is None else event.step
        measured = state.measured.get(event.skill.hash)
        origin = Origin(kind="unknown", place=event.place)
        state = placed(state, current=standing_of(event.skill, measured, origin=origin, step=step))
    return state if event.step is None else replace(state, built=None, steps_done=event.step)


MOVES: Mapping[type[Event], Callable[..., RunState[Any]]] = {
    CandidateBuilt: _built,
    CandidateGated: _gated,
    StepSkipped: _skipped,
    SlowUpdateApplied: _guided,
    AppendixWritten: _noted,
    BestPromoted: _promoted,
    GapFound: _gap,
}
