"""`runs` and `status`: what runs there are and where one stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.algorithms.harvesting import HARVEST
from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json, print_table
from skillopt_es.cli.score_tables import (
    Scored,
    print_by_type,
    print_certificate,
    print_test_types,
    print_tests,
    test_difference,
    tests_by_name,
    tests_json,
    validation_words,
    wants_test,
)
from skillopt_es.cli.summary import continuing, limit_option, steps_after
from skillopt_es.cli.terminal import Toned, field, print_hanging, print_next, say, tell
from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import algorithm_named, planned_steps
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json
from skillopt_es.presenting.certificates import certificate_json
from skillopt_es.presenting.documents import (
    by_hand_json,
    plain,
    plain_fields,
    plain_judged,
    plain_origin,
    plain_score,
    some_of,
)
from skillopt_es.presenting.numbers import shown_amount, shown_settings, shown_time, shown_usage, shown_value
from skillopt_es.presenting.palette import step_verdict, verdict_words
from skillopt_es.presenting.words import (
    by_hand_words,
    is_sealed,
    items_words,
    looks_words,
    metric_words,
    progress_cell,
    progress_words,
    skill_named,
    status_words,
)
from skillopt_es.projections.intervals import Judged
from skillopt_es.projections.lines import EpochLine, StepLine
from skillopt_es.projections.summary import Holder, Summary
from skillopt_es.runs.folders import dir_option
from skillopt_es.runs.overview import Detailed, Overview, Unreadable

if TYPE_CHECKING:
    from skillopt_es.gate.calibration import Null
    from skillopt_es.gate.flips import Flips


@click.command("runs")
@directory_option
@json_option
def runs_command(directory: Path, as_json: bool) -> None:
    """All runs in a directory, the most recently written last."""
    from skillopt_es.runs.overview import overviews

    found = overviews(directory)
    if as_json:
        print_json([overview_json(each) for each in found])
    elif found:
        print_runs(found)
    else:
        tell("no_run", f"there is no run in {directory}; `skillopt-es run{dir_option(directory)}` starts one")


@click.command("status")
@run_argument
@directory_option
@json_option
def status_command(run: str | None, directory: Path, as_json: bool) -> int:
    """Where a run stands, one line a step, and what to type next. RUN defaults to the newest."""
    from skillopt_es.cli.printing import as_found
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.overview import detailed
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        found = detailed(reading, folder)
        difference = test_difference(reading, folder, _tests(found.overview.summary))
        null = _null(folder) if found.drawn_again and reading.problem is None else None
        if as_json:
            print_json({**status_json(found, null, difference), "problem": plain(reading.problem)})
        else:
            print_status(found, directory, null, difference)
        return as_found(reading)


def _null(folder: Path) -> tuple[Null, Flips] | None:
    """What the run's rule accepts that is no better; imported only for the few runs that can tell."""
    from skillopt_es.audit.calibrating import measured_null

    return measured_null(folder)


_RUN_HEADERS: tuple[str, ...] = (
    *("run", "status", "step", "current", "best", "metric", "over", "test", "calls", "cost", "last written (UTC)"),
)
_STEP_HEADERS: tuple[str, ...] = ("step", "epoch", "train", "edits", "notes", "current", "candidate", "verdict", "best")

_EDITS = "edits: proposed/merged/chosen/applied"
_TRAIN = (
    "train: hard score of the tasks drawn for the step; where only tasks that fail are drawn, it may fall while the "
    "skill gets better"
)


def print_runs(found: Sequence[Overview | Unreadable]) -> None:
    """A table of the runs, and after it what is wrong with those that are not whole or cannot be read."""
    rows = [_run_row(each) for each in found]
    shown = [each for each in found if isinstance(each, Overview)]
    headers = _RUN_HEADERS
    metrics = sorted({each.summary.metric for each in shown if not each.summary.is_evaluation} - {""})
    if len(metrics) < 2:
        headers, *rows = _without("metric", headers, rows)
    if not any(each.currency for each in shown):
        headers, *rows = _without("cost", headers, rows)
    if not any(each.summary.over(each.summary.best.skill) for each in shown):
        headers, *rows = _without("over", headers, rows)
    print_table(headers, rows, right=range(2, len(headers) - 1), verdicts=(1,))
    if len(metrics) == 1:
        tell_apart = f"current and best: {metrics[0]} score on validation; test: hard score of the best"
        print_hanging(tell_apart, hang=2, tone="faint")
    for each in found:
        why = each.why if isinstance(each, Unreadable) else each.problem or _paused(each)
        if why:
            print_hanging(f"{each.folder.name}: {why}", hang=2)


def _without(column: str, headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The headers and the rows without a column that none of them needs."""
    at = headers.index(column)
    return [(*row[:at], *row[at + 1 :]) for row in (headers, *rows)]


def _paused(each: Overview) -> str:
    """Why a run stands still."""
    return f"paused, {each.summary.paused}" if each.status == "paused" and each.summary.paused else ""


def _run_row(each: Overview | Unreadable) -> tuple[str, ...]:
    if isinstance(each, Unreadable):
        return (each.folder.name, "unreadable", "-", "-", "-", "-", "", *["-"] * 4)
    summary = each.summary
    tested = _tests(summary).get("best")
    over = summary.over(summary.best.skill)
    return (
        each.folder.name,
        f"{status_words(each.status, damaged=bool(each.problem))}{', steered' if summary.by_hand else ''}",
        "-" if summary.is_evaluation else progress_cell(summary),
        shown_value(summary.current.value),
        shown_value(summary.best.value),
        summary.metric or "-",
        items_words(over, chosen=summary.was_chosen(summary.best.skill)),
        shown_value(tested.score.hard if tested is not None and tested.score.measured else None),
        "-" if summary.imported is not None else f"{each.calls:,}",
        "-" if each.cost is None else f"{each.currency} {shown_amount(each.cost, least=not each.cost_is_whole)}",
        shown_time(each.written)[:-3],
    )


def overview_json(each: Overview | Unreadable) -> Json:
    """One run as JSON."""
    if isinstance(each, Unreadable):
        return {"run": each.folder.name, "folder": str(each.folder), "status": "unreadable", "error": each.why}
    summary = each.summary
    return {
        "run": each.folder.name,
        "folder": str(each.folder),
        "kind": "evaluation" if summary.is_evaluation else "training",
        "status": each.status,
        "paused": summary.paused or None,
        "stopped": None if summary.stopped is None else summary.stopped.reason,
        **some_of(summary, "epoch", "epochs", "step"),
        "steps": planned_steps(summary),
        "gate_metric": summary.metric or None,
        "current": _held(summary, summary.current),
        "best": _held(summary, summary.best),
        **some_of(each, "events", "calls"),
        "currency": each.currency or None,
        "cost": each.cost,
        "test_scores": {name: plain_score(scored.score) for name, scored in _tests(summary).items()},
        "last_written": each.written,
        "forked_from": plain_origin(summary.forked),
        "retracted": [item for event in summary.retracted for item in event.items],
        "by_hand": by_hand_json(summary.by_hand),
        "erased": [item for event in summary.erased for item in event.items],
        "imported": None if summary.imported is None else summary.imported.source,
        "problem": each.problem or None,
    }


def _held(summary: Summary, holder: Holder) -> Json:
    """A skill that holds a place, its value, and over which part of the validation items that is."""
    over, chosen = plain(summary.over(holder.skill)), summary.was_chosen(holder.skill)
    return {**plain_fields(holder), "over_items": over, "chosen_on_these_items": chosen}


def status_json(found: Detailed, null: tuple[Null, Flips] | None, difference: Judged | None) -> dict[str, Json]:
    """One run as JSON, with its lines and evaluations."""
    summary = found.overview.summary
    lines: list[Json] = [
        {"kind": "step" if isinstance(line, StepLine) else "epoch", **plain_fields(line)} for line in summary.lines
    ]
    return {
        **cast("dict[str, Json]", overview_json(found.overview)),
        "resumed": summary.resumed,
        "usage": plain(found.spent),
        "tests": tests_json(_tests(summary)),
        "test_difference": None if difference is None else plain_judged(difference),
        "null_accepts": None if null is None else null[0].itself,
        "null_accepts_most": None if null is None else null[0].itself_most,
        "churn_accepts": None if null is None else null[0].churn,
        "test_looks": {"sealed": found.started is not None and is_sealed(found.started), **plain_fields(summary.looks)},
        "certificate": certificate_json(summary.certificate),
        "lines": lines,
        "evaluations": [plain(line) for line in summary.evaluations],
        "completed": plain(summary.completed) if summary.completed else None,
        "unknown": [{"place": gap.place, "what": gap.what, "why": gap.why} for gap in summary.gaps],
    }


def print_status(found: Detailed, directory: Path, null: tuple[Null, Flips] | None, difference: Judged | None) -> None:
    """The run's head, its steps, and what to type next."""
    each, summary = found.overview, found.overview.summary
    if summary.is_evaluation:
        _print_evaluation(found)
        return
    if summary.algorithm == HARVEST.name:
        _print_harvest(found)
        return
    why = f": {summary.paused}" if summary.paused and each.status == "paused" else ""
    imported = "" if summary.imported is None else f", imported from results of {summary.imported.source}"
    status = status_words(each.status, damaged=bool(each.problem))
    field("run", f"{each.folder.name} ({status}{why}{imported})")
    _print_changes(summary)
    if found.started is not None:
        field("trains", _what(found.started))
    stopped = "" if summary.stopped is None else f", stopped by {summary.stopped.reason}"
    field("progress", f"{progress_words(summary)}{stopped}{_resumed(summary)}")
    field("validation", validation_words(summary))
    _print_honesty(found, null, difference)
    used = f"{shown_usage(found.spent.usage.total, found.spent.currency)}; `usage` has the details"
    if found.spent.inherited:
        used = f"{used} ({counted(found.spent.inherited, 'call')} came along from the parent)"
    field("used", used if summary.imported is None else "not in the log; `usage` has what the results say")
    field("log", f"{counted(each.events, 'event')}, the last at {shown_time(each.written)} UTC")
    if summary.lines:
        _print_steps(summary)
    print_test_types(_tests(summary))
    if summary.gaps:
        click.echo()
        print_table(("unknown", "what", "why"), [(gap.place, gap.what, gap.why) for gap in summary.gaps])
    say()
    print_next(_next(each, directory, _where_to(found.started)))


def _print_steps(summary: Summary) -> None:
    """One line a step and one an epoch's end."""
    rows = [_step_row(line) if isinstance(line, StepLine) else _epoch_row(line) for line in summary.lines]
    headers = _STEP_HEADERS
    if not any(line.notes for line in summary.step_lines):
        headers, *rows = _without("notes", headers, rows)
    verdict = headers.index("verdict")
    say()
    print_table(headers, rows, right=[each for each in range(len(headers)) if each != verdict], verdicts=(verdict,))
    say(Toned(_EDITS, "faint"))
    print_hanging(f"current, candidate, best: {metric_words(summary.metric)} on validation", hang=2, tone="faint")
    print_hanging(_TRAIN, hang=2, tone="faint")


def _print_changes(summary: Summary) -> None:
    """Where a run left its parent, and what it goes on without."""
    if summary.forked is not None:
        changed = shown_settings(summary.forked.overrides)
        parent = f"of {summary.forked.parent} after event {summary.forked.seq:,}"
        field("forked", f"{parent}; {changed or 'nothing changed'}")
    if summary.by_hand:
        field("by hand", by_hand_words(summary.by_hand))
    for gone in summary.retracted:
        field("without", f"{', '.join(gone.items)}{f' at {gone.place}' if gone.place else ''}: {gone.reason}")
    for lost in summary.erased:
        field("erased", f"{counted(len(lost.texts), 'text')} about {', '.join(lost.items)}: {lost.reason}")


def _print_honesty(found: Detailed, null: tuple[Null, Flips] | None, difference: Judged | None) -> None:
    """The test scores, with how often the items were looked at, and what a verdict of the gate is worth."""
    summary = found.overview.summary
    if null is not None:
        first = _tried_first(summary.algorithm)
        for label, line in zip(("gate", "", ""), [*_gate_words(*null), *([first] if first else [])], strict=False):
            field(label, line)
    changed = {} if summary.forked is None else {each.key: each.value for each in summary.forked.overrides}
    untested = found.started is not None and wants_test(found.started, changed) and summary.completed is not None
    print_tests(_tests(summary), difference, left_out=untested and summary.imported is None)
    print_certificate(summary.certificate)
    if summary.looks.opened or (found.started is not None and is_sealed(found.started)):
        field("seal", looks_words(summary.looks))


def _tried_first(algorithm: str) -> str:
    """What an edit has to pass before the gate, which then is not all that decides."""
    first = algorithm_named(algorithm).words.before_the_gate if algorithm else ""
    return f"{first.rstrip()} So this is not what decides here." if first else ""


def _gate_words(null: Null, flips: Flips) -> Iterator[str]:
    """What the run's rule accepts that is no better: by drawing luck alone, and by items that an edit turns."""
    most = f"at most {null.itself_most:.0%}, by {counted(flips.items, 'item')} tried more than once"
    yield f"accepts a candidate that changes nothing in {null.itself:.0%} of cases ({most})"
    from skillopt_es.gate.calibration import CHURN

    if null.churn is not None:
        more = "" if round(null.turned, 2) >= CHURN else " (more cannot turn: nearly all items do the same each time)"
        yield f"accepts one that turns {null.turned:.0%} of the results for no gain in {null.churn:.0%}{more}"


def _print_harvest(found: Detailed) -> None:
    """What was spent on candidate tasks."""
    each = found.overview
    field("harvest", f"{each.folder.name}: what models were asked about candidate tasks, no training run")
    field("used", f"{shown_usage(found.spent.usage.total, found.spent.currency)}; `usage` has the details")
    field("log", f"{counted(each.events, 'event')}, the last at {shown_time(each.written)} UTC")
    click.echo()
    field("next", "`skillopt-es harvest propose` goes on, `skillopt-es harvest review` shows what came of it")


def _print_evaluation(found: Detailed) -> None:
    """An evaluation's scores, pass by pass."""
    each, summary = found.overview, found.overview.summary
    why = f": {summary.paused}" if summary.paused and each.status == "paused" else ""
    field("evaluation", f"{each.folder.name} ({each.status}{why})")
    if found.started is not None:
        field("scores", f"{skill_named(found.started.skill)} ({found.started.skill.hash[:12]}), no training run")
    field("used", f"{shown_usage(found.spent.usage.total, found.spent.currency)}; `usage` has the details")
    field("log", f"{counted(each.events, 'event')}, the last at {shown_time(each.written)} UTC")
    for line in summary.tests:
        click.echo()
        left = f", {line.score.unmeasured} not measured" if line.score.unmeasured else ""
        items = "? items" if line.score.measured is None else counted(line.score.measured, "item")
        click.echo(f"{line.place}: hard {line.score.hard:.4f}, soft {line.score.soft:.4f} ({items}{left})")
        print_by_type(line.by_type)
    click.echo()
    if each.status == "scored":
        field("next", "the same `skillopt-es eval` shows it again; with `--again` it tries everything once more")
    else:
        more = f" with a higher {limit_option(summary.pause_key)}" if summary.pause == "budget" else ""
        first = f"{summary.hint}; then " if summary.hint else ""
        field("next", f"{first}the same `skillopt-es eval`{more} asks for what is missing, and nothing twice")


def _what(started: RunStarted) -> str:
    env = started.config.get("env")
    name = env.get("name") if isinstance(env, dict) else None
    splits = started.splits
    if not splits.digests:
        return f"{skill_named(started.skill)} on {name}: items that are not in the log"
    return (
        f"{skill_named(started.skill)} on {name}: {len(splits.train)} train, {len(splits.val)} validation, "
        f"{len(splits.test)} test items"
    )


def _resumed(summary: Summary) -> str:
    return f", resumed {summary.resumed} times" if summary.resumed > 1 else ", resumed once" if summary.resumed else ""


def _tests(summary: Summary) -> dict[str, Scored]:
    """The tests so far."""
    named = {"initial": summary.initial, "best": summary.best.skill, "final": summary.current.skill}
    return tests_by_name(summary.tests, **named)


def _step_row(line: StepLine) -> tuple[str, ...]:
    counts = (line.proposed, line.merged, line.chosen, line.applied)
    return (
        str(line.step),
        str(line.epoch) if line.epoch else "-",  # an algorithm may have steps without epochs
        ("-" if line.train is None else f"{line.train.hard:.4f}"),
        "-" if set(counts) == {None} else "/".join("-" if count is None else str(count) for count in counts),
        str(line.notes),
        shown_value(line.current),
        _candidate(line),
        step_verdict(line),
        shown_value(line.best),
    )


def _candidate(line: StepLine | EpochLine) -> str:
    return f"≤{shown_value(line.candidate)}" if line.bound else shown_value(line.candidate)


def _epoch_row(line: EpochLine) -> tuple[str, ...]:
    ended = f"slow update: {verdict_words(line.slow_update)}" if line.slow_update else "epoch ended"
    return ("", str(line.epoch), *[""] * 3, shown_value(line.current), _candidate(line), ended, shown_value(line.best))


def _where_to(started: RunStarted | None) -> str:
    """Where a run's skill is usually exported to: a file, or for a folder of skills a folder."""
    return "skills/" if started is not None and started.skill.is_folder else "SKILL.md"


def _next(each: Overview, directory: Path, out: str) -> list[tuple[str, str]]:
    """What to type next, and what is to know of that."""
    name, summary = each.folder.name, each.summary
    where = dir_option(directory)
    if summary.imported is not None:
        return [(f"replay {name} --check{where}", "")]
    if each.status == "completed":
        more = [continuing(name, where)] if summary.stopped is not None and summary.stopped.reason == "budget" else []
        return [(f"export {name} {out}{where}", ""), *more]
    if each.status == "running":
        return [(f"log {name} --follow{where}", "")]
    if each.status == "new":
        return [(f"run CONFIG --name {name}{where}", "it stopped before its first event")]
    if each.status == "paused":
        folder = directory / name
        return steps_after(folder, reason=summary.pause, key=summary.pause_key, hint=summary.hint)
    return [(f"resume {name}{where}", "")]
