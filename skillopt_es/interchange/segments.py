"""A log cut into the parts that the original has folders for: the baseline, the steps, the epochs' ends, the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, TypeVar

from attrs import define, field, frozen

from skillopt_es.algorithms.classic.state import ClassicState, classic
from skillopt_es.engine.algorithms import evolve
from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    GapFound,
    LearningRateChosen,
    MetaSkillWritten,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Purpose
from skillopt_es.runs.durations import COMINGS

Kind = Literal["start", "step", "epoch_end", "end"]
E = TypeVar("E", bound=Event)


@frozen(kw_only=True)
class Segment:
    """One part: its events, the state before and after it, and for how long a writer was at which stage."""

    kind: Kind
    number: int
    epoch: int
    events: tuple[Event, ...]
    before: ClassicState
    after: ClassicState
    seconds: Mapping[str, float]

    def all(self, kind: type[E]) -> tuple[E, ...]:
        """Its events of one type, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))

    def last(self, kind: type[E]) -> E | None:
        """The last of its events of one type."""
        found = self.all(kind)
        return found[-1] if found else None

    def scored(self, purpose: Purpose, place: str = "") -> SkillScored | None:
        """Its evaluation for a purpose, or the one at a place."""
        rows = (row for row in self.all(SkillScored) if row.purpose == purpose and place in ("", row.place))
        return next(rows, None)

    def rollouts(self, place: str) -> tuple[RolloutCompleted, ...]:
        """Its rollouts at a place, each item's last one, in order."""
        rows = {row.item: row for row in self.all(RolloutCompleted) if row.place == place}
        return tuple(rows.values())


_STAGES: Mapping[type[Event], str] = {
    MinibatchesPlanned: "reflect_s",
    PatchProposed: "reflect_s",
    AppendixExtended: "reflect_s",
    AppendixConsolidated: "reflect_s",
    AppendixWritten: "evaluate_s",
    PatchesMerged: "aggregate_s",
    LearningRateChosen: "select_s",
    EditsRanked: "select_s",
    SkillRewritten: "update_s",
    CandidateBuilt: "update_s",
    CandidateGated: "evaluate_s",
    StepSkipped: "evaluate_s",
    SlowUpdateProposed: "slow",
    SlowUpdateApplied: "slow",
    MetaSkillWritten: "meta",
}


def _stage(event: Event) -> str:
    if isinstance(event, RolloutCompleted | SkillScored):
        return {"train": "rollout_s", "selection": "evaluate_s"}.get(event.purpose, "slow")
    return _STAGES.get(type(event), "other")


@define
class _Open:
    """The part that is being collected."""

    key: tuple[Kind, int, int]
    before: ClassicState
    events: list[Event] = field(factory=list)
    seconds: dict[str, float] = field(factory=dict)

    def closed(self, after: ClassicState) -> Segment:
        kind, number, epoch = self.key
        return Segment(
            kind=kind,
            number=number,
            epoch=epoch,
            events=tuple(self.events),
            before=self.before,
            after=after,
            seconds=self.seconds,
        )


def segments(log: Iterable[Recorded]) -> Iterator[Segment]:
    """The parts of a log in order; the last one may have only begun."""
    log = iter(log)
    first = next(log)
    state, last = classic(evolve(None, first.event)), first.recorded_at
    part = _Open(("start", 0, 0), state, [first.event])
    for recorded in log:
        after = classic(evolve(state, recorded.event))
        begins = after if isinstance(recorded.event, EpochPlanned) else state  # a plan belongs to what it opens
        if _key(begins) != part.key and not _belongs(recorded.event, part.key):
            yield part.closed(state)
            part = _Open(_key(begins), begins)
        part.events.append(recorded.event)
        if type(recorded.event).__name__ not in COMINGS:
            stage = _stage(recorded.event)
            part.seconds[stage] = part.seconds.get(stage, 0.0) + _between(last, recorded.recorded_at)
        state, last = after, recorded.recorded_at
    yield part.closed(state)


def _belongs(event: Event, key: tuple[Kind, int, int]) -> bool:
    """Whether an event that follows a step's end still says something about that step."""
    kind, number, epoch = key
    if kind != "step":
        return False
    if isinstance(event, AppendixWritten):
        return event.step == number
    return isinstance(event, GapFound) and event.place == Place.of_step(epoch, number)


def _key(state: ClassicState) -> tuple[Kind, int, int]:
    if state.algorithm.epoch is None:
        return "start", 0, 0
    if state.algorithm.step is not None:
        return "step", state.algorithm.step.number, state.algorithm.epoch.number
    if state.algorithm.epochs_done < state.algorithm.epoch.number:
        return "epoch_end", state.algorithm.epoch.number, state.algorithm.epoch.number
    return "end", 0, 0


def _between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
