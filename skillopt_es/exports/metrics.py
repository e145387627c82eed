"""A run as numbers by step, and as settings: what experiment trackers draw and compare. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from attrs import frozen

from skillopt_es.events.catalog import (
    CandidateGated,
    GapFound,
    Recorded,
    RunCompleted,
    RunForked,
    SkillScored,
    StepSkipped,
)
from skillopt_es.events.journal import CallRow
from skillopt_es.projections.lines import StepLine
from skillopt_es.projections.prices import recorded_prices
from skillopt_es.projections.summary import summarize
from skillopt_es.projections.usage import RunUsage, Usage, usage_of
from skillopt_es.run_settings import Settings, settings_in, shareable

_ACCEPTED = ("accept", "accept_new_best", "force_accept")


@frozen(kw_only=True)
class Point:
    """One number at one step; step 0 is before the first one."""

    key: str
    value: float
    step: int
    at: datetime


@frozen(kw_only=True)
class RunNumbers:
    """What a tracker is told of a run; `ended` is None while it is not complete."""

    params: Mapping[str, str]
    points: tuple[Point, ...]
    started: datetime
    last: datetime
    status: str


def numbers_of(records: Sequence[Recorded], calls: Iterable[CallRow]) -> RunNumbers:
    """The settings and points of a run; tokens and money of a fork are its own, its curves the whole run's."""
    summary = summarize(recorded.event for recorded in records)
    forks = [recorded.event for recorded in records if isinstance(recorded.event, RunForked)]
    inherited = forks[-1].inherited if forks else 0
    prices = recorded_prices(recorded.event for recorded in records)
    usage = usage_of((row for row in calls if row.n > inherited), prices)
    times = _ends_of_steps(records)
    started, last = (datetime.fromisoformat(records[at].recorded_at) for at in (0, -1))
    points = [*_baseline(records), *_tests(records, summary.step)]
    for line in summary.step_lines:
        if line.step in times:
            points += _step(line, times[line.step])
            points += _usage(usage, line.step, times[line.step])
    points += [
        Point(key=f"total/{key}", value=value, step=summary.step, at=last) for key, value in _counts(usage.total)
    ]
    return RunNumbers(
        params=dict(_params(settings_in(records))),
        points=tuple(points),
        started=started,
        last=last,
        status=summary.status,
    )


def _params(settings: Settings) -> Iterator[tuple[str, str]]:
    for key, value in shareable(settings).items():
        yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ends_of_steps(records: Iterable[Recorded]) -> Mapping[int, datetime]:
    """When each step ended."""
    return {
        recorded.event.step: datetime.fromisoformat(recorded.recorded_at)
        for recorded in records
        if isinstance(recorded.event, CandidateGated | StepSkipped | GapFound) and recorded.event.step is not None
    }


def _baseline(records: Iterable[Recorded]) -> Iterator[Point]:
    """The first skill on the validation items."""
    for recorded in records:
        event = recorded.event
        if isinstance(event, SkillScored) and event.purpose == "selection":
            at = datetime.fromisoformat(recorded.recorded_at)
            yield Point(key="val/hard", value=event.score.hard, step=0, at=at)
            yield Point(key="val/soft", value=event.score.soft, step=0, at=at)
            if event.value is not None:
                yield Point(key="gate/best", value=event.value, step=0, at=at)
            return


def _tests(records: Iterable[Recorded], step: int) -> Iterator[Point]:
    for recorded in records:
        event = recorded.event
        if not isinstance(event, RunCompleted):
            continue
        at = datetime.fromisoformat(recorded.recorded_at)
        scores = {"initial": event.test_initial, "best": event.test_best, "final": event.test_final}
        for name, score in scores.items():
            if score is not None:
                yield Point(key=f"test/{name}_hard", value=score.hard, step=step, at=at)
                yield Point(key=f"test/{name}_soft", value=score.soft, step=step, at=at)


def _step(line: StepLine, at: datetime) -> Iterator[Point]:
    """What is known of a step; what was not measured is no point."""
    numbers = {
        "gate/candidate_at_most" if line.bound else "gate/candidate": line.candidate,
        "gate/current": line.current,
        "gate/best": line.best,
        "gate/accepted": float(line.verdict in _ACCEPTED),
        "train/hard": line.train.hard if line.train else None,
        "train/soft": line.train.soft if line.train else None,
        "edits/proposed": line.proposed,
        "edits/applied": line.applied,
    }
    for key, value in numbers.items():
        if value is not None:
            yield Point(key=key, value=float(value), step=line.step, at=at)


def _usage(usage: RunUsage, step: int, at: datetime) -> Iterator[Point]:
    of_step = usage.by_step.get(step)
    for key, value in _counts(of_step) if of_step is not None else ():
        yield Point(key=f"usage/{key}", value=value, step=step, at=at)


def _counts(usage: Usage) -> Iterator[tuple[str, float]]:
    """Calls, tokens and money as far as they are known."""
    yield "calls", float(usage.calls)
    yield "failed_calls", float(usage.failed)
    for name, known in (
        ("input_tokens", usage.input.known),
        ("output_tokens", usage.output.known),
        ("cost", usage.cost.known),
    ):
        if known is not None:
            yield name, float(known)
