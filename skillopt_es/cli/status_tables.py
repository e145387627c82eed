"""How `runs` and `status` print: one line a run, one line a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from attrs import asdict

from skillopt_es.cli.event_lines import shown_time
from skillopt_es.cli.looks import is_sealed, looks_json, looks_words
from skillopt_es.cli.options import print_table, shown_settings, shown_value
from skillopt_es.cli.score_tables import Scored, print_by_type, print_test_types, print_tests, tests_by_name, tests_json
from skillopt_es.cli.usage import shown_usage, total_json
from skillopt_es.counting import counted
from skillopt_es.events.catalog import RunForked, RunStarted
from skillopt_es.events.values import Json, Score
from skillopt_es.overview import Detailed, Overview, Unreadable
from skillopt_es.projections.lines import EpochLine, StepLine
from skillopt_es.projections.summary import Summary

if TYPE_CHECKING:
    from skillopt_es.training.calibration import Null
    from skillopt_es.training.flips import Flips

_STEP_HEADERS = (
    "step",
    "epoch",
    "train",
    "edits",
    "merged",
    "chosen",
    "applied",
    "notes",
    "current",
    "candidate",
    "verdict",
    "best",
)


def print_runs(found: Sequence[Overview | Unreadable]) -> None:
    """A table of the runs, and after it what is wrong with those that are not whole or cannot be read."""
    rows = [_run_row(each) for each in found]
    print_table(
        ("run", "status", "epoch", "step", "current", "best", "calls", "last written (UTC)"),
        rows,
        right=(2, 3, 4, 5, 6),
    )
    for each in found:
        why = each.why if isinstance(each, Unreadable) else each.problem
        if why:
            click.echo(f"{each.folder.name}: {why}")


def _run_row(each: Overview | Unreadable) -> tuple[str, ...]:
    if isinstance(each, Unreadable):
        return (each.folder.name, "unreadable", "-", "-", "-", "-", "-", "-")
    summary = each.summary
    return (
        each.folder.name,
        f"{each.status}, damaged" if each.problem else each.status,
        "-" if summary.is_evaluation else f"{summary.epoch}/{summary.epochs}",
        "-" if summary.is_evaluation else f"{summary.step}/{summary.steps}",
        shown_value(summary.current.value),
        shown_value(summary.best.value),
        "-" if summary.imported is not None else f"{each.calls:,}",
        shown_time(each.written),
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
        "epoch": summary.epoch,
        "epochs": summary.epochs,
        "step": summary.step,
        "steps": summary.steps,
        "current": asdict(summary.current),
        "best": asdict(summary.best),
        "events": each.events,
        "calls": each.calls,
        "last_written": each.written,
        "forked_from": fork_json(summary.forked),
        "retracted": [item for event in summary.retracted for item in event.items],
        "erased": [item for event in summary.erased for item in event.items],
        "imported": None if summary.imported is None else summary.imported.source,
        "problem": each.problem or None,
    }


def fork_json(forked: RunForked | None) -> Json:
    """Which run a fork was made of, and where; null for a run that is none."""
    return None if forked is None else {"run": forked.parent, "run_id": forked.parent_id, "seq": forked.seq}


def status_json(found: Detailed, null: tuple[Null, Flips] | None) -> dict[str, Json]:
    """One run as JSON, with its lines and evaluations."""
    summary = found.overview.summary
    lines: list[Json] = [
        {"kind": "step" if isinstance(line, StepLine) else "epoch", **cast("dict[str, Json]", asdict(line))}
        for line in summary.lines
    ]
    return {
        **cast("dict[str, Json]", overview_json(found.overview)),
        "resumed": summary.resumed,
        "usage": total_json(found.spent),
        "tests": tests_json(_tests(summary)),
        "null_accepts": None if null is None else null[0].itself,
        "null_accepts_most": None if null is None else null[0].itself_most,
        "churn_accepts": None if null is None else null[0].churn,
        "test_looks": looks_json(summary.looks, sealed=found.started is not None and is_sealed(found.started)),
        "lines": lines,
        "evaluations": [asdict(line) for line in summary.evaluations],
        "completed": asdict(summary.completed) if summary.completed else None,
        "unknown": [{"place": gap.place, "what": gap.what, "why": gap.why} for gap in summary.gaps],
    }


def print_status(found: Detailed, directory: Path, null: tuple[Null, Flips] | None) -> None:
    """The run's head, its steps, and what to type next."""
    each, summary = found.overview, found.overview.summary
    if summary.is_evaluation:
        _print_evaluation(found)
        return
    why = f": {summary.paused}" if summary.paused and each.status == "paused" else ""
    imported = "" if summary.imported is None else f", imported from results of {summary.imported.source}"
    click.echo(f"run         {each.folder.name} ({each.status}{why}{imported})")
    _print_changes(summary)
    if found.started is not None:
        click.echo(f"trains      {_what(found.started)}")
    epoch = f"epoch {summary.epoch} of {summary.epochs}"
    stopped = "" if summary.stopped is None else f", stopped by {summary.stopped.reason}"
    click.echo(f"progress    step {summary.step} of {summary.steps}, {epoch}{stopped}{_resumed(summary)}")
    click.echo(f"validation  {_validation(summary)}")
    _print_honesty(found, null)
    used = f"{shown_usage(found.spent.usage.total, found.spent.currency)}; `usage` has the details"
    if found.spent.inherited:
        used = f"{used} ({counted(found.spent.inherited, 'call')} came along from the parent)"
    click.echo(
        f"used        {used if summary.imported is None else 'not in the log; `usage` has what the results say'}"
    )
    click.echo(f"log         {counted(each.events, 'event')}, the last at {shown_time(each.written)} UTC")
    if summary.lines:
        click.echo()
        rows = [_step_row(line) if isinstance(line, StepLine) else _epoch_row(line) for line in summary.lines]
        headers: tuple[str, ...] = _STEP_HEADERS
        if not any(line.notes for line in summary.step_lines):
            headers, *rows = (_without_notes(row) for row in (headers, *rows))
        right = [position for position, header in enumerate(headers) if header != "verdict"]
        print_table(headers, rows, right=right)
    print_test_types(_tests(summary))
    if summary.gaps:
        click.echo()
        print_table(("unknown", "what", "why"), [(gap.place, gap.what, gap.why) for gap in summary.gaps])
    click.echo()
    click.echo(f"next        {_next(each, directory)}")


def _print_changes(summary: Summary) -> None:
    """Where a run left its parent, and what it goes on without."""
    if summary.forked is not None:
        changed = shown_settings(summary.forked.overrides)
        click.echo(
            f"forked      of {summary.forked.parent} after event {summary.forked.seq:,}; {changed or 'nothing changed'}"
        )
    for gone in summary.retracted:
        click.echo(f"without     {', '.join(gone.items)}{f' at {gone.place}' if gone.place else ''}: {gone.reason}")
    for lost in summary.erased:
        click.echo(f"erased      {counted(len(lost.texts), 'text')} about {', '.join(lost.items)}: {lost.reason}")


def _print_honesty(found: Detailed, null: tuple[Null, Flips] | None) -> None:
    """The test scores, with how often the items were looked at, and what a verdict of the gate is worth."""
    summary = found.overview.summary
    if null is not None:
        for line in _gate_words(*null):
            click.echo(line)
    print_tests(_tests(summary))
    if summary.looks.opened or (found.started is not None and is_sealed(found.started)):
        click.echo(f"seal        {looks_words(summary.looks)}")


def _gate_words(null: Null, flips: Flips) -> Iterator[str]:
    """What the run's rule accepts that is no better: by drawing luck alone, and by items that an edit turns."""
    most = f"at most {null.itself_most:.0%}, by {counted(flips.items, 'item')} tried more than once"
    yield f"gate        accepts a candidate that changes nothing in {null.itself:.0%} of cases ({most})"
    if null.churn is not None:
        yield f"            accepts one that turns {null.turned:.0%} of the results for no gain in {null.churn:.0%}"


def _print_evaluation(found: Detailed) -> None:
    """An evaluation's scores, pass by pass."""
    each, summary = found.overview, found.overview.summary
    why = f": {summary.paused}" if summary.paused and each.status == "paused" else ""
    click.echo(f"evaluation  {each.folder.name} ({each.status}{why})")
    if found.started is not None:
        click.echo(f"scores      {found.started.skill.main} ({found.started.skill.hash[:12]}), no training run")
    click.echo(f"used        {shown_usage(found.spent.usage.total, found.spent.currency)}; `usage` has the details")
    click.echo(f"log         {counted(each.events, 'event')}, the last at {shown_time(each.written)} UTC")
    for line in summary.tests:
        click.echo()
        left = f", {line.score.unmeasured} not measured" if line.score.unmeasured else ""
        items = "? items" if line.score.measured is None else counted(line.score.measured, "item")
        click.echo(f"{line.place}: hard {line.score.hard:.4f}, soft {line.score.soft:.4f} ({items}{left})")
        print_by_type(line.by_type)
    click.echo()
    if each.status == "scored":
        click.echo("next        the same `skillopt-es eval` shows it again; with `--again` it draws everything anew")
    else:
        more = " (with a higher limit)" if summary.pause == "budget" else ""
        click.echo(f"next        the same `skillopt-es eval`{more} asks for what is missing, and nothing twice")


def _what(started: RunStarted) -> str:
    env = started.config.get("env")
    name = env.get("name") if isinstance(env, dict) else None
    splits = started.splits
    if not splits.digests:
        return f"{started.skill.main} on {name}: items that are not in the log"
    return (
        f"{started.skill.main} on {name}: {len(splits.train)} train, {len(splits.val)} validation, "
        f"{len(splits.test)} test items"
    )


def _resumed(summary: Summary) -> str:
    return f", resumed {summary.resumed} times" if summary.resumed > 1 else ", resumed once" if summary.resumed else ""


def _validation(summary: Summary) -> str:
    baseline = summary.baseline
    first = shown_value(baseline.value if baseline else None)
    return f"initial {first}, current {shown_value(summary.current.value)}, best {shown_value(summary.best.value)}"


def _tests(summary: Summary) -> dict[str, Scored]:
    """The tests so far."""
    named = {"initial": summary.initial, "best": summary.best.skill, "final": summary.current.skill}
    return tests_by_name(summary.tests, **named)


def _step_row(line: StepLine) -> tuple[str, ...]:
    return (
        str(line.step),
        str(line.epoch),
        _hard(line.train),
        *("-" if count is None else str(count) for count in (line.proposed, line.merged, line.chosen, line.applied)),
        str(line.notes),
        shown_value(line.current),
        _candidate(line),
        line.verdict.replace("_", " "),
        shown_value(line.best),
    )


def _without_notes(row: tuple[str, ...]) -> tuple[str, ...]:
    """A row without its column of reminder notes, which few runs have."""
    at = _STEP_HEADERS.index("notes")
    return row[:at] + row[at + 1 :]


def _candidate(line: StepLine | EpochLine) -> str:
    return f"≤{shown_value(line.candidate)}" if line.bound else shown_value(line.candidate)


def _epoch_row(line: EpochLine) -> tuple[str, ...]:
    ended = f"slow update: {line.slow_update.replace('_', ' ')}" if line.slow_update else "epoch ended"
    return (
        "",
        str(line.epoch),
        *[""] * 6,
        shown_value(line.current),
        _candidate(line),
        ended,
        shown_value(line.best),
    )


def _hard(score: Score | None) -> str:
    return "-" if score is None else f"{score.hard:.4f}"


def _next(each: Overview, directory: Path) -> str:
    name = each.folder.name
    where = "" if directory == Path("runs") else f" --dir {directory}"
    if each.summary.imported is not None:
        return f"skillopt-es replay {name} --check{where}"
    if each.status == "completed":
        return f"skillopt-es export {name} SKILL.md{where}"
    if each.status == "running":
        return f"skillopt-es log {name} --follow{where}"
    if each.status == "new":
        return f"skillopt-es run CONFIG --run {name}{where}   (it stopped before its first event)"
    if each.status == "paused" and each.summary.pause == "handoff":
        return f"skillopt-es handoff list {name}{where}"
    return f"skillopt-es resume {name}{where}"
