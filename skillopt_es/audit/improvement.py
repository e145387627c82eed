"""
What improvement cost: each part of a run with what it used and what it gained, and the curve of both so far.

A point is a hundredth of the gate's value. What a step gains is by how much the best value rose with its verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    EpochCompleted,
    EpochPlanned,
    Event,
    RunCompleted,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.places import BASELINE, Place
from skillopt_es.events.values import SkillTree
from skillopt_es.projections.core import core_after
from skillopt_es.projections.deciding import metric_in
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.usage import RunUsage, UsageSums


@frozen(kw_only=True)
class Stretch:
    """One part of a run in its order: edits and lines taken in it, its own usage, and `so_far` with all before it."""

    name: str
    verdict: str
    edits: int
    lines: int
    best: float | None
    points: float
    usage: UsageSums
    so_far: UsageSums


@frozen(kw_only=True)
class Improvement:
    """A whole run: its stretches, and what was gained; `lines` are those of the best skill that the first had not."""

    curve: tuple[Stretch, ...]
    by_stage: Mapping[str, UsageSums]
    total: UsageSums
    first: float | None
    best: float | None
    edits: int
    lines: int
    metric: str = ""

    @property
    def points(self) -> float:
        """By how much the best value rose over that of the first skill."""
        return 0.0 if self.first is None or self.best is None else 100 * (self.best - self.first)


def improvement_of(events: Iterable[Event], usage: RunUsage) -> Improvement:
    """What a run's calls bought."""
    spent: dict[str, UsageSums] = {}
    for place, used in usage.by_place.items():
        name = _stretch_of(place)
        spent[name] = spent.get(name, UsageSums()) + used
    walk = _Walk(spent)
    for event in events:
        walk.saw(event)
    walk.close("under way", "", *spent)
    state = walk.state
    first = None if state is None else state.measured.get(state.started.skill.hash)
    return Improvement(
        curve=tuple(walk.curve),
        by_stage=usage.by_stage,
        total=usage.total,
        first=None if first is None else first.value,
        best=None if state is None else state.best.value,
        edits=sum(each.edits for each in walk.curve),
        metric="" if state is None else metric_in(state.started, state.overrides),
        lines=0 if state is None else new_lines(state.started.skill, state.best.skill),
    )


def _stretch_of(place: str) -> str:
    """The stretch that a place belongs to."""
    where = Place(place)
    if where.step is not None:
        return f"step {where.step}"
    if where.epoch is not None:
        return f"end of epoch {where.epoch}"
    return "final" if where.starts(1) == "final" else place


def new_lines(before: SkillTree, after: SkillTree) -> int:
    """How many lines of a skill, empty ones aside, another one does not have."""
    return (_lines(after) - _lines(before)).total()


def _lines(skill: SkillTree) -> Counter[str]:
    return Counter(line for text in skill.files.values() for line in text.splitlines() if line.strip())


@define
class _Walk:
    """The run so far, and what of its usage is not told yet."""

    left: dict[str, UsageSums]
    state: AnyState | None = None
    curve: list[Stretch] = field(factory=list)
    so_far: UsageSums = field(factory=UsageSums)
    best: float | None = None
    promoted: bool = False
    epoch: int = 0
    guided: str = ""

    def saw(self, event: Event) -> None:
        """One more event; some of them end a stretch."""
        before = self.state
        self.state = core_after(before, event)
        match event:
            case SkillScored() if event.place == BASELINE:
                self.best = self.state.best.value
                self.close("baseline", "", "baseline")
            case CandidateGated():
                edits, lines = _taken(before) if event.verdict.taken else (0, 0)
                name = f"step {event.step}"
                self.close(name, event.verdict.action, name, edits=edits, lines=lines)
            case StepSkipped():
                self.close(f"step {event.step}", event.reason, f"step {event.step}")
            case EpochPlanned():
                self.epoch, self.guided = event.epoch, ""
            case SlowUpdateApplied() if event.epoch < self.epoch:
                name = f"end of epoch {event.epoch}"  # it came late
                self.close(name, event.verdict.action, name)
            case SlowUpdateApplied():
                self.guided = event.verdict.action
            case EpochCompleted():
                name = f"end of epoch {event.epoch}"
                self.close(name, self.guided, name)
            case RunCompleted():
                self.close("final", "promoted" if self.promoted else "", "final")
            case BestPromoted():
                self.promoted = True
            case _:
                pass

    def close(self, name: str, verdict: str, *parts: str, edits: int = 0, lines: int = 0) -> None:
        """The end of a stretch; one that neither used nor changed anything is not told."""
        usage = sum((self.left.pop(part) for part in parts if part in self.left), UsageSums())
        best = None if self.state is None else self.state.best.value
        gained = 0.0 if best is None or self.best is None else 100 * (best - self.best)
        self.best = best if best is not None else self.best
        if not usage.calls and not gained and not name.startswith("step "):
            return
        self.so_far = self.so_far + usage
        self.curve.append(
            Stretch(
                name=name,
                verdict=verdict,
                edits=edits,
                lines=lines,
                best=best,
                points=gained,
                usage=usage,
                so_far=self.so_far,
            )
        )


def _taken(before: AnyState | None) -> tuple[int, int]:
    """How many edits an accepted candidate applied, and how many lines are new in it."""
    if before is None or before.built is None:
        return 0, 0
    applied = len(before.built.applied)
    return applied, new_lines(before.current.skill, before.built.candidate)
