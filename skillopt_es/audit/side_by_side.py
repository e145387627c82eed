"""Several runs as columns of one table: how each ended, what it used itself, and how long it worked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.engine.programs import check_allowed, planned_steps
from skillopt_es.engine.tasks import recorded_run
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunForked
from skillopt_es.events.errors import LogError
from skillopt_es.events.values import Score
from skillopt_es.projections.lines import Part, outcome_of, stated_score
from skillopt_es.projections.summary import Summary
from skillopt_es.projections.usage import WHOLE_RUN, UsageThere, usage_there
from skillopt_es.runs.durations import durations, moments_of
from skillopt_es.runs.folders import Status
from skillopt_es.runs.overview import Detailed, Spent, detailed
from skillopt_es.runs.reading import Reading
from skillopt_es.runs.run_settings import settings_in, text_of
from skillopt_es.sessions.session import recorded_settings


@frozen(kw_only=True)
class Side:
    """
    One run of a comparison; None is what is not known or was not measured.

    `best` is the best skill's validation score, `value` the number that the gate made of it by `metric`; `over` has the
    validation scores that are over some of the items. Calls, tokens, money and `seconds` of a fork are its own, without
    those of what it shares with its parent; of an imported run they are as the trainer that made it counted: `there` in
    place of `spent`. `unknown` are steps whose end is not recorded.
    """

    name: str
    folder: Path
    status: Status
    forked: RunForked | None
    metric: str | None
    step: int
    steps: int | None
    accepted: int
    rejected: int
    indecisive: int
    skipped: int
    unknown: int
    baseline: Score | None
    best: Score | None
    value: float | None
    over: Mapping[str, Part]
    test_initial: Score | None
    test_best: Score | None
    test_final: Score | None
    spent: Spent | None
    there: UsageThere | None
    seconds: float | None
    problem: LogError | None = None


def side(folder: Path) -> Side:
    """The outcome of one training run, as far as its log can be read; raises LogError where it cannot be at all."""
    with Reading.of(folder) as reading:
        found = detailed(reading, folder)
        return evolve(_side(found, reading, folder), problem=reading.problem)


def _side(found: Detailed, reading: Reading, folder: Path) -> Side:
    summary = found.overview.summary
    if found.started is None:
        raise ConfigError(f"{folder.name} stopped before it began: it cannot be compared")
    check_allowed("compare", found.started, folder.name)
    verdicts = Counter(outcome_of(line.verdict) for line in summary.step_lines)
    tests = {line.skill: line.score for line in summary.tests}
    there = usage_there(recorded.event for recorded in reading.read(types=("RunImported", "StepImported")))
    seconds = durations(reading.whole(moments_of(reading.log.reader, reading.until))).total
    return Side(
        name=folder.name,
        folder=folder,
        status=found.overview.status,
        forked=summary.forked,
        metric=_metric(found, reading, folder),
        step=summary.step,
        steps=planned_steps(summary),
        accepted=verdicts["accepted"],
        rejected=verdicts["rejected"],
        indecisive=verdicts["indecisive"],
        skipped=verdicts["skipped"],
        unknown=verdicts["unknown"],
        baseline=stated_score(summary.selections(summary.initial)),
        best=stated_score(summary.selections(summary.best.skill)),
        value=summary.best.value,
        over={
            name: part
            for name, skill in (("initial", summary.initial), ("best", summary.best.skill))
            if (part := summary.over(skill)) is not None
        },
        test_initial=tests.get(summary.initial),
        test_best=tests.get(summary.best.skill),
        test_final=tests.get(_final(summary)),
        spent=found.spent if summary.imported is None else None,
        there=there,
        seconds=seconds if summary.imported is None else summary.imported.seconds.get(WHOLE_RUN),
    )


def _final(summary: Summary) -> str:
    return summary.current.skill if summary.completed is None else summary.completed.final


def _metric(found: Detailed, reading: Reading, folder: Path) -> str | None:
    """What the gate decided by; the settings of an imported run are another trainer's, and say it or do not."""
    if found.overview.summary.imported is not None:
        settings = settings_in(reading.read(until=1))
        if settings.get("evaluation.use_gate") is False:
            return "none"
        return text_of(settings, "evaluation.gate_metric") or None
    assert found.started is not None
    evaluation = recorded_run(found.started, folder, recorded_settings(reading)).config.evaluation
    return evaluation.gate_metric if evaluation.use_gate else "none"
