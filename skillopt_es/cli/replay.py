"""`replay`: any moment of a run, rebuilt from its log alone; `--check` derives every decision again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from skillopt_es.cli.moment import moment_option
from skillopt_es.cli.options import directory_option, json_option, print_json, run_argument, shown_value
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json
from skillopt_es.moments import Moment
from skillopt_es.projections.state import Standing, TrainerState
from skillopt_es.training.check import CheckReport


@click.command("replay")
@run_argument
@moment_option("--until", "until", "Stop at the end of this step or epoch, or after this event.")
@click.option("--check", "checking", is_flag=True, help="Derive every decision again from the recorded evidence.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write current/, best/ and state.json of that moment here."
)
@directory_option
@json_option
def replay_command(
    run: str | None, until: Moment | None, checking: bool, out: Path | None, directory: Path, as_json: bool
) -> int:
    """
    Rebuild any moment of a run from its log: no model, no network, no clock.

    RUN is a name or a folder; the newest run when left out. Without --until, the moment is now.

    \b
    skillopt-es replay --until step 12
    skillopt-es replay my-run --until epoch 2 --out then/
    skillopt-es replay my-run --check
    """
    from skillopt_es.projections.trainer import fold
    from skillopt_es.runs import find_run

    folder = find_run(run, directory)
    with EventLog.open(folder) as log:
        seq = _seq(log, until)
        state = fold(recorded.event for recorded in log.read(until=seq))
        report = _check(log, folder, seq) if checking else None
        head = log.head().seq
    if out is not None:
        _write(state, out)
    if as_json:
        print_json(_as_json(folder, state, seq, head, report))
    else:
        _print(folder, state, seq, head, report)
        if out is not None:
            click.echo(f"written    {out}/ (current, best, state.json)")
    return _verdict(report, quiet=as_json)


def _seq(log: EventLog, until: Moment | None) -> int:
    from skillopt_es.moments import seq_of

    return log.head().seq if until is None else seq_of(log, until)


def _check(log: EventLog, folder: Path, until: int) -> CheckReport:
    from skillopt_es.events.journal import Journal
    from skillopt_es.training.check import check

    return asyncio.run(check(log, Journal(log.reader), folder, until=until))


def _verdict(report: CheckReport | None, *, quiet: bool) -> int:
    from skillopt_es.errors import ReplayMismatch

    if report is None or report.mismatch is None:
        return 0
    if quiet:
        return 1
    raise ReplayMismatch(
        str(report.mismatch),
        seq=report.mismatch.seq,
        hint="`skillopt-es verify` tells whether the log was changed; if not, another version decided this event",
    )


def _write(state: TrainerState, out: Path) -> None:
    from skillopt_es.cli.files import write_file, write_skill
    from skillopt_es.projections.snapshot import snapshot

    for name, standing in (("current", state.current), ("best", state.best)):
        if standing is not None:
            write_skill(out / name, standing.skill)
    text = json.dumps(snapshot(state), indent=2, ensure_ascii=False, allow_nan=False)
    write_file(out / "state.json", f"{text}\n")


def _as_json(folder: Path, state: TrainerState, seq: int, head: int, report: CheckReport | None) -> Json:
    from skillopt_es.projections.snapshot import snapshot

    document: dict[str, Json] = {"run": folder.name, "seq": seq, "head": head, **snapshot(state)}
    if report is not None:
        document["check"] = _report_json(report)
    return document


def _report_json(report: CheckReport) -> Json:
    mismatch = report.mismatch
    return {
        "ok": report.ok,
        "events": report.events,
        "decisions": report.decisions,
        "rollouts": report.rollouts,
        "evidence": report.evidence,
        "not_checkable": dict(report.unchecked),
        "mismatch": None
        if mismatch is None
        else {
            "seq": mismatch.seq,
            "event": mismatch.event,
            "message": mismatch.message,
            "differences": [
                {"field": each.field, "recorded": each.recorded, "derived": each.derived}
                for each in mismatch.differences
            ],
        },
    }


def _print(folder: Path, state: TrainerState, seq: int, head: int, report: CheckReport | None) -> None:
    from skillopt_es.projections.snapshot import counted_verdicts, position

    if state.started is not None and state.started.total_steps == 0:
        _print_evaluation(folder, state, seq, head, report)
        return
    counts = state.counts
    then = "" if seq == head else " then"
    click.echo(f"run        {folder.name} after event {seq:,} of {head:,}")
    click.echo(f"status     {state.status}{then}" + (f": {state.paused.message}" if state.paused else ""))
    click.echo(f"position   {position(state)}")
    click.echo(f"current    {_standing(state.current)}")
    click.echo(f"best       {_standing(state.best)}")
    click.echo(f"steps      {counted_verdicts(counts)}")
    unmeasured = f", {counts.unmeasured:,} of them without a result" if counts.unmeasured else ""
    click.echo(f"rollouts   {counts.rollouts:,}{unmeasured}")
    if counts.resumed:
        click.echo(f"resumed    {counts.resumed} times")
    for number, attempt in enumerate(state.buffer):
        most = "at most " if attempt.bound else ""
        values = f"{shown_value(attempt.value_before)} -> {most}{shown_value(attempt.value_after)}"
        failed = f"{attempt.failed} of {attempt.total} rollouts failed" if attempt.total else "rollouts unknown"
        label = "this epoch" if number == 0 else ""
        click.echo(f"{label:<10} step {attempt.step}: {failed}; {attempt.action.replace('_', ' ')} ({values})")
    if report is not None and report.ok:
        click.echo(f"check      ok: {report.decisions:,} decisions derived again from {report.rollouts:,} rollouts")
        if report.evidence:
            click.echo(f"evidence   {report.evidence:,} attempts were shown to analysts, all of training items")
        if report.unchecked:
            listed = ", ".join(f"{count:,} {what}" for what, count in report.unchecked.items())
            click.echo(f"           not checkable in an imported run: {listed}")


def _print_evaluation(folder: Path, state: TrainerState, seq: int, head: int, report: CheckReport | None) -> None:
    """The scores of an evaluation; it has no steps and no best skill."""
    click.echo(f"evaluation {folder.name} after event {seq:,} of {head:,}: one skill, no training run")
    if state.paused is not None:
        click.echo(f"status     paused: {state.paused.message}")
    assert state.current is not None
    click.echo(f"skill      {state.current.skill.hash[:12]}")
    for place, scored in state.scored.items():
        click.echo(f"{place:<10} hard {scored.score.hard:.4f}, soft {scored.score.soft:.4f}")
    click.echo(f"rollouts   {state.counts.rollouts:,}")
    if report is not None and report.ok:
        click.echo(f"check      ok: {report.decisions:,} scores added up again from {report.rollouts:,} rollouts")


def _standing(standing: Standing | None) -> str:
    if standing is None:
        return "-"
    return f"{shown_value(standing.value)}  {standing.skill.hash[:12]}  {standing.origin}"
