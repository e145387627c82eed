"""A run as numbers by step, and as settings: what experiment trackers draw and compare. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from attrs import frozen

from skillopt_es.events.catalog import (
    Recorded,
    RunCompleted,
    RunForked,
    SkillScored,
    ended_step,
)
from skillopt_es.events.journal import CallRow
from skillopt_es.projections.lines import StepLine, outcome_of
from skillopt_es.projections.prices import recorded_prices
from skillopt_es.projections.summary import summarize
from skillopt_es.projections.usage import RunUsage, UsageSums, UsageThere, usage_of, usage_there
from skillopt_es.runs.run_settings import Settings, settings_in, shareable


@frozen(kw_only=True)
class Point:
    """One number at one step; step 0 is before the first one."""

    key: str
    value: float
    step: int
    at: datetime


@frozen(kw_only=True)
class RunNumbers:
    """What a tracker is told about a run; `ended` is None while it is not complete."""

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
    there = usage_there(recorded.event for recorded in records)
    usage = usage_of((row for row in calls if row.n > inherited), prices)
    times = _ends_of_steps(records)
    started, last = (datetime.fromisoformat(records[at].recorded_at) for at in (0, -1))
    points = [*_baseline(records), *_tests(records, summary.step)]
    for line in summary.step_lines:
        if line.step in times:
            points += _step(line, times[line.step])
            of_step = dict(_counted(usage, there, line.step))
            points += _points("usage", of_step, line.step, times[line.step])
    points += _points("total", dict(_counted(usage, there)), summary.step, last)
    return RunNumbers(
        params=dict(_params(settings_in(records))),
        points=tuple(points),
        started=started,
        last=last,
        status="scored" if summary.is_evaluation and summary.tests else summary.status,
    )


def _params(settings: Settings) -> Iterator[tuple[str, str]]:
    for key, value in shareable(settings).items():
        yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ends_of_steps(records: Iterable[Recorded]) -> Mapping[int, datetime]:
    """When each step ended."""
    ends = ((ended_step(recorded.event), recorded.recorded_at) for recorded in records)
    return {step: datetime.fromisoformat(at) for step, at in ends if step is not None}


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
    outcome = outcome_of(line.verdict)
    numbers = {
        "gate/candidate_at_most" if line.bound else "gate/candidate": line.candidate,
        "gate/current": line.current,
        "gate/best": line.best,
        "gate/accepted": None if outcome == "unknown" else float(outcome == "accepted"),
        "train/hard": line.train.hard if line.train else None,
        "train/soft": line.train.soft if line.train else None,
        "edits/proposed": line.proposed,
        "edits/applied": line.applied,
    }
    for key, value in numbers.items():
        if value is not None:
            yield Point(key=key, value=float(value), step=line.step, at=at)


def _points(group: str, numbers: Mapping[str, float], step: int, at: datetime) -> Iterator[Point]:
    for key, value in numbers.items():
        yield Point(key=f"{group}/{key}", value=value, step=step, at=at)


def _counted(usage: RunUsage, there: UsageThere | None, step: int | None = None) -> Iterator[tuple[str, float]]:
    """What a step used, or the whole run; of an imported run as far as its folder says it."""
    if there is None:
        of_step = usage.total if step is None else usage.by_step.get(step)
        yield from _counts(of_step) if of_step is not None else ()
        return
    counts = there.total if step is None else there.by_step.get(step)
    if counts is None:
        return
    named = (("calls", counts.calls), ("input_tokens", counts.input_tokens), ("output_tokens", counts.output_tokens))
    yield from ((key, float(value)) for key, value in named if value is not None)


def _counts(usage: UsageSums) -> Iterator[tuple[str, float]]:
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
