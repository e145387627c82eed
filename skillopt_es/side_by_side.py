"""Several runs as columns of one table: what each came to, what it used itself, and how long it worked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.audit.durations import durations, moments_of
from skillopt_es.audit.reading import Reading
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunForked
from skillopt_es.events.errors import LogError
from skillopt_es.events.values import Score
from skillopt_es.liveness import Status
from skillopt_es.overview import Detailed, Spent, detailed
from skillopt_es.projections.lines import stated_score
from skillopt_es.projections.summary import Summary
from skillopt_es.session import recorded_run, recorded_settings


@frozen(kw_only=True)
class Side:
    """
    One run of a comparison; None is what is not known or was not measured.

    `best` is the best skill's validation score, `value` the number that the gate made of it by `metric`. Calls, tokens,
    money and `seconds` of a fork are its own, without those of what it shares with its parent.
    """

    name: str
    folder: Path
    status: Status
    forked: RunForked | None
    metric: str
    step: int
    steps: int
    accepted: int
    rejected: int
    indecisive: int
    skipped: int
    baseline: Score | None
    best: Score | None
    value: float | None
    test_initial: Score | None
    test_best: Score | None
    test_final: Score | None
    spent: Spent | None
    seconds: float | None
    problem: LogError | None = None


def side(folder: Path) -> Side:
    """What one training run came to, as far as its log can be read; raises LogError where it cannot be at all."""
    with Reading.of(folder) as reading:
        found = detailed(reading, folder)
        return evolve(_side(found, reading, folder), problem=reading.problem)


def _side(found: Detailed, reading: Reading, folder: Path) -> Side:
    summary = found.overview.summary
    if found.started is None or summary.is_evaluation:
        what = "stopped before it began" if found.started is None else "is an evaluation, not a training run"
        raise ConfigError(f"{folder.name} {what}: it cannot be compared")
    verdicts = Counter(_outcome(line.verdict) for line in summary.step_lines)
    tests = {line.skill: line.score for line in summary.tests}
    settings = recorded_settings(reading)
    seconds = durations(reading.whole(moments_of(reading.log.reader, reading.until))).total
    run = recorded_run(found.started, folder, settings)
    return Side(
        name=folder.name,
        folder=folder,
        status=found.overview.status,
        forked=summary.forked,
        metric=run.config.evaluation.gate_metric if run.config.evaluation.use_gate else "none",
        step=summary.step,
        steps=summary.steps,
        accepted=verdicts["accepted"],
        rejected=verdicts["rejected"],
        indecisive=verdicts["indecisive"],
        skipped=verdicts["skipped"],
        baseline=stated_score(summary.selections(summary.initial)),
        best=stated_score(summary.selections(summary.best.skill)),
        value=summary.best.value,
        test_initial=tests.get(summary.initial),
        test_best=tests.get(summary.best.skill),
        test_final=tests.get(_final(summary)),
        spent=found.spent if summary.imported is None else None,
        seconds=seconds if summary.imported is None else None,
    )


def _final(summary: Summary) -> str:
    return summary.current.skill if summary.completed is None else summary.completed.final


def _outcome(verdict: str) -> str:
    if verdict in ("reject", "indecisive"):
        return "rejected" if verdict == "reject" else verdict
    return "accepted" if verdict in ("accept", "accept_new_best", "force_accept") else "skipped"
