"""Several runs as columns of one table: how each ended, what it used itself, and how long it worked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.engine.algorithms import check_allowed, planned_steps
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunForked, RunStarted
from skillopt_es.events.errors import LogError
from skillopt_es.events.values import Purpose, Score
from skillopt_es.projections.by_hand import ByHand
from skillopt_es.projections.intervals import (
    Interval,
    Judged,
    hard_means,
    judged_among,
    paired,
    wilson,
    wilson_by_family,
)
from skillopt_es.projections.item_results import Results, families_of, item_results
from skillopt_es.projections.lines import Part, outcome_of, stated_score
from skillopt_es.projections.summary import Summary
from skillopt_es.projections.usage import WHOLE_RUN, UsageThere, usage_there
from skillopt_es.runs.durations import durations, moments_of
from skillopt_es.runs.folders import Status
from skillopt_es.runs.overview import Detailed, Spent, detailed
from skillopt_es.runs.reading import Reading
from skillopt_es.runs.run_settings import settings_in, text_of
from skillopt_es.sessions.session import recorded_settings

_TESTED: tuple[Purpose, ...] = ("test",)


@frozen(kw_only=True)
class Side:
    """
    One run of a comparison; None is what is not known or was not measured.

    `best` is the best skill's validation score, `value` the number that the gate made of it by `metric`; `over` has the
    validation scores that are over some of the items, and `chosen` says whether the best was chosen on these. Calls,
    tokens, money and `seconds` of a fork are its own, without those of what it shares with its parent; of an imported
    run they are as the trainer that made it counted: `there` in place of `spent`. `unknown` are steps whose end is not
    recorded. `tested` has the results of the best skill on the test items, and `types` their types.
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
    chosen: bool
    test_initial: Score | None
    test_best: Score | None
    test_final: Score | None
    spent: Spent | None
    there: UsageThere | None
    seconds: float | None
    tested: Results = field(factory=dict)
    types: Mapping[str, str] = field(factory=dict)
    by_hand: ByHand = field(factory=ByHand)
    problem: LogError | None = None

    @property
    def interval(self) -> Interval | None:
        """Where the best skill's hard score over all items like its test items lies, with 95 % confidence."""
        best = self.test_best
        return wilson(best.hard, best.measured) if best is not None and best.measured else None

    @property
    def by_type(self) -> Interval | None:
        """The same over types of tasks; None where test items have no types."""
        means = hard_means(self.tested)
        return wilson_by_family(means, families_of({item: self.types[item] for item in means if item in self.types}))


def against_first(sides: Sequence[Side]) -> dict[Path, Judged | None]:
    """
    Each further run's best skill against that of the first run, by the test items of both, corrected for how many are.

    The key is the run's folder; the sides are of different runs.

    A first run that leads may have been named first for that, so it stands for all pairs that could have been compared.
    None where no test item was measured under both.
    """
    first, *others = sides
    ours = None if first.test_best is None else first.test_best.hard
    leads = ours is not None and all(each.test_best is None or each.test_best.hard <= ours for each in others)
    wanted = combinations(sides, 2) if leads else ((first, other) for other in others)
    found = {
        (one.folder, other.folder): pair
        for one, other in wanted
        if (pair := paired(one.tested, other.tested, {**one.types, **other.types})) is not None
    }
    judgments = judged_among(found)
    return {each.folder: judgments.get((first.folder, each.folder)) for each in others}


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
    results = item_results(reading.results(_TESTED) if tests else ())
    there = usage_there(recorded.event for recorded in reading.read(types=("RunImported", "StepImported")))
    seconds = durations(reading.whole(moments_of(reading.log.reader, reading.until))).total
    return Side(
        name=folder.name,
        folder=folder,
        status=found.overview.status,
        forked=summary.forked,
        by_hand=summary.by_hand,
        metric=_metric(found.started, summary, reading, folder),
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
        chosen=summary.was_chosen(summary.best.skill),
        test_initial=tests.get(summary.initial),
        test_best=tests.get(summary.best.skill),
        test_final=tests.get(summary.current.skill if summary.completed is None else summary.completed.final),
        spent=found.spent if summary.imported is None else None,
        there=there,
        seconds=seconds if summary.imported is None else summary.imported.seconds.get(WHOLE_RUN),
        tested=results.test.get(summary.best.skill, {}),
        types=results.types,
    )


def _metric(started: RunStarted, summary: Summary, reading: Reading, folder: Path) -> str | None:
    """What the gate decided by; the settings of an imported run are another trainer's, and say it or do not."""
    if summary.imported is not None:
        settings = settings_in(reading.read(until=1))
        if settings.get("evaluation.use_gate") is False:
            return "none"
        return text_of(settings, "evaluation.gate_metric") or None
    evaluation = config_of_run(started, folder, recorded_settings(reading)).evaluation
    return evaluation.gate_metric if evaluation.use_gate else "none"
