"""What `replay --check` found, of one run or of many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
from attrs import frozen

from skillopt_es.audit.check import CheckReport, check
from skillopt_es.cli.options import print_json
from skillopt_es.counting import counted
from skillopt_es.engine.differences import Mismatch
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json


@frozen
class Unreadable:
    """Why a log could not be checked at all."""

    why: str


def check_log(log: EventLog, folder: Path, until: int | None = None) -> CheckReport:
    """Derives every decision of a log again."""
    return asyncio.run(check(log, Journal(log.reader), folder, until=until))


def check_runs(folders: Sequence[Path], *, as_json: bool) -> int:
    """Checks runs one after another and prints each as it is done; 1 when any of them differs or cannot be read."""
    rows: list[Json] = []
    bad = 0
    for folder in folders:
        report = _checked(folder)
        bad += isinstance(report, Unreadable) or not report.ok
        if as_json:
            rows.append({"run": folder.resolve().name, "folder": str(folder), "check": _json_of(report)})
        else:
            _print_row(folder, report)
    if as_json:
        print_json(rows)
    else:
        click.echo(f"{len(folders):,} runs, {bad:,} with a difference" if bad else f"{len(folders):,} runs, all ok")
    return 1 if bad else 0


def _checked(folder: Path) -> CheckReport | Unreadable:
    try:
        with EventLog.open(folder) as log:
            return check_log(log, folder)
    except SkillOptError as error:
        return Unreadable(str(error))


def _print_row(folder: Path, report: CheckReport | Unreadable) -> None:
    if isinstance(report, Unreadable):
        click.echo(f"unreadable  {folder}: {report.why}")
        return
    done = f"{counted(report.decisions, 'decision')} from {counted(report.rollouts, 'rollout')}"
    if report.ok:
        click.echo(f"ok          {folder}: {done}")
        return
    click.echo(f"differs     {folder}: {len(report.mismatches):,} events would be others; {done}")
    for line in mismatch_lines(report):
        click.echo(f"            {line}")


def mismatch_lines(report: CheckReport) -> list[str]:
    """One line for each event that came out differently."""
    return [_line(each) for each in report.mismatches]


def _line(found: Mismatch) -> str:
    where = "" if found.step is None else f", step {found.step}"
    after = "  (after the first difference)" if found.follow_up else ""
    said = found.message.removeprefix("does not follow from the evidence: ")
    return f"event {found.seq} ({found.event}){where}: {said}{after}"


def report_json(report: CheckReport) -> Json:
    """A report as JSON; `mismatch` is the first of `mismatches`."""
    found = [_mismatch_json(each) for each in report.mismatches]
    return {
        "ok": report.ok,
        "events": report.events,
        "decisions": report.decisions,
        "rollouts": report.rollouts,
        "evidence": report.evidence,
        "not_checkable": dict(report.unchecked),
        "mismatch": found[0] if found else None,
        "mismatches": found,
    }


def _json_of(report: CheckReport | Unreadable) -> Json:
    return {"ok": False, "error": report.why} if isinstance(report, Unreadable) else report_json(report)


def _mismatch_json(found: Mismatch) -> Json:
    return {
        "seq": found.seq,
        "event": found.event,
        "step": found.step,
        "message": found.message,
        "follow_up": found.follow_up,
        "differences": [
            {"field": each.field, "recorded": each.recorded, "derived": each.derived} for each in found.differences
        ],
    }
