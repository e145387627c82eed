"""`replay`: any moment of a run, rebuilt from its log alone; `--check` derives every decision again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.audit.check import check
from skillopt_es.cli.options import directory_option, json_option, moment_option
from skillopt_es.cli.printing import print_json
from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import algorithm_at
from skillopt_es.engine.differences import CheckReport, Mismatch
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import plain, some_of
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.words import part_words
from skillopt_es.projections.deciding import metric_in
from skillopt_es.projections.lines import part_of
from skillopt_es.projections.state import AnyState, Counts, Standing
from skillopt_es.runs.lookup import Moment
from skillopt_es.runs.reading import whole_log

if TYPE_CHECKING:
    from skillopt_es.runs.reading import Reading


@click.command("replay")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@moment_option("--until", "until", "Stop at the end of this step or epoch, or after this event.")
@click.option("--check", "checking", is_flag=True, help="Derive every decision again from the recorded evidence.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write current/, best/ and state.json of that moment here."
)
@directory_option
@json_option
def replay_command(
    runs: tuple[str, ...], until: Moment | None, checking: bool, out: Path | None, directory: Path, as_json: bool
) -> int:
    """
    Rebuild any moment of a run from its log: no model, no network, no clock.

    RUN is a name or a folder; the newest run when left out. Without --until, the moment is now. --check takes several
    runs, and folders of runs: it lists every event that this software would decide otherwise.

    \b
    skillopt-es replay --until step 12
    skillopt-es replay my-run --until epoch 2 --out then/
    skillopt-es replay my-run --check
    skillopt-es replay --check runs/
    """
    from skillopt_es.runs.folders import find_run, find_runs
    from skillopt_es.runs.reading import Reading

    folders = find_runs(runs, directory) if runs else [find_run(None, directory)]
    if len(folders) > 1:
        if not checking or until is not None or out is not None:
            raise click.UsageError(
                f"these are {len(folders)} runs, and several runs can only be checked: "
                "add --check, and leave out --until and --out"
            )
        return check_runs(folders, as_json=as_json)
    folder = folders[0]
    with Reading.of(folder) as reading:
        return _replay(reading, folder, until, checking, out, as_json=as_json)


def _replay(
    reading: Reading, folder: Path, until: Moment | None, checking: bool, out: Path | None, *, as_json: bool
) -> int:
    """The moment, as far as the log can be read; what is damaged before it is neither checked nor written to files."""
    from skillopt_es.cli.printing import as_found
    from skillopt_es.engine.algorithms import fold_log
    from skillopt_es.runs.lookup import seq_of

    seq = reading.end if until is None else seq_of(reading, until)
    state, _ = fold_log(reading.read(until=seq))
    cut = reading.until < seq
    if reading.problem is not None and (cut or until is None) and (out is not None or state is None):
        raise reading.problem
    seq, head = min(seq, reading.until), reading.head().seq
    report = check_log(reading.log, folder, seq) if checking and not cut else None
    if out is not None:
        _write(state, out)
    if as_json:
        print_json({**_as_json(folder, state, seq, head, report), "problem": plain(reading.problem)})
    else:
        _print(folder, state, seq, head, report)
        if out is not None:
            click.echo(f"written    {out}/ (current, best, state.json)")
    found = as_found(reading, shown=cut or until is None)
    return found or _verdict(report, quiet=as_json)


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


def _write(state: AnyState | None, out: Path) -> None:
    from skillopt_es.deploy.files import write_file, write_skill
    from skillopt_es.runs.snapshot import snapshot

    for name, standing in () if state is None else (("current", state.current), ("best", state.best)):
        write_skill(out / name, standing.skill)
    text = json.dumps(snapshot(state), indent=2, ensure_ascii=False, allow_nan=False)
    write_file(out / "state.json", f"{text}\n")


def _as_json(folder: Path, state: AnyState | None, seq: int, head: int, report: CheckReport | None) -> dict[str, Json]:
    from skillopt_es.runs.snapshot import snapshot

    document: dict[str, Json] = {"run": folder.name, "seq": seq, "head": head, **snapshot(state)}
    if report is not None:
        document["check"] = report_json(report)
    return document


def _print(folder: Path, state: AnyState | None, seq: int, head: int, report: CheckReport | None) -> None:
    from skillopt_es.algorithms.evaluation.algorithm import EVALUATION
    from skillopt_es.runs.snapshot import counted_verdicts, position

    if state is not None and state.started.algorithm == EVALUATION.name:
        _print_evaluation(folder, state, seq, head, report)
        return
    counts, paused = (Counts(), None) if state is None else (state.counts, state.paused)
    then = "" if seq == head else " then"
    status = "new" if state is None else state.status
    click.echo(f"run        {folder.name} after event {seq:,} of {head:,}")
    click.echo(f"status     {status}{then}" + (f": {paused.message}" if paused else ""))
    click.echo(f"position   {position(state)}")
    click.echo(f"current    {'-' if state is None else _standing(state, state.current)}")
    click.echo(f"best       {'-' if state is None else _standing(state, state.best)}")
    click.echo(f"steps      {counted_verdicts(counts)}")
    unmeasured = f", {counts.unmeasured:,} of them without a result" if counts.unmeasured else ""
    click.echo(f"rollouts   {counts.rollouts:,}{unmeasured}")
    if counts.resumed:
        click.echo(f"resumed    {counted(counts.resumed, 'time')}")
    for label, text in () if state is None else algorithm_at(state).words.remembered(state):
        click.echo(f"{label:<10} {text}")
    if report is not None:
        _print_check(report)


def _print_check(report: CheckReport) -> None:

    if report.ok:
        rollouts = counted(report.rollouts, "rollout")
        click.echo(f"check      ok: {counted(report.decisions, 'decision')} derived again from {rollouts}")
        if report.evidence:
            click.echo(f"evidence   {report.evidence:,} attempts were shown to analysts, all of training items")
    else:
        click.echo(f"check      {len(report.mismatches):,} of {report.decisions:,} decisions and their order differ:")
        for line in mismatch_lines(report):
            click.echo(f"           {line}")
    if report.unchecked:
        listed = ", ".join(f"{count:,} {what}" for what, count in report.unchecked.items())
        click.echo(f"           not checkable in an imported run: {listed}")


def _print_evaluation(folder: Path, state: AnyState, seq: int, head: int, report: CheckReport | None) -> None:
    """The scores of an evaluation; it has no steps and no best skill."""
    click.echo(f"evaluation {folder.name} after event {seq:,} of {head:,}: one skill, no training run")
    if state.paused is not None:
        click.echo(f"status     paused: {state.paused.message}")
    click.echo(f"skill      {state.current.skill.hash[:12]}")
    for place, scored in state.scored.items():
        click.echo(f"{place:<10} hard {scored.score.hard:.4f}, soft {scored.score.soft:.4f}")
    click.echo(f"rollouts   {state.counts.rollouts:,}")
    if report is not None and report.ok:
        rollouts = counted(report.rollouts, "rollout")
        click.echo(f"check      ok: {counted(report.decisions, 'score')} added up again from {rollouts}")


def _standing(state: AnyState, standing: Standing) -> str:
    metric = metric_in(state.started, state.overrides)
    over = part_words(part_of(standing.score, len(state.started.splits.val)))
    said = "" if standing.value is None else f"{f' {metric}' if metric else ''}{over}"
    return f"{shown_value(standing.value)}{said}  {standing.skill.hash[:12]}  {standing.origin}"


def check_log(log: EventLog, folder: Path, until: int | None = None) -> CheckReport:
    """Derives every decision of a log again."""
    return asyncio.run(check(log, Journal(log.reader), folder, until=until))


def check_runs(folders: Sequence[Path], *, as_json: bool) -> int:
    """Checks runs one after another and prints each as it is done; 1 when any of them differs or cannot be read."""
    rows: list[Json] = []
    bad = 0
    for folder in folders:
        report = _checked(folder)
        bad += isinstance(report, str) or not report.ok
        if as_json:
            said: Json = {"ok": False, "error": report} if isinstance(report, str) else report_json(report)
            rows.append({"run": folder.resolve().name, "folder": str(folder), "check": said})
        else:
            _print_row(folder, report)
    if as_json:
        print_json(rows)
    else:
        click.echo(f"{len(folders):,} runs, {bad:,} with a difference" if bad else f"{len(folders):,} runs, all ok")
    return 1 if bad else 0


def _checked(folder: Path) -> CheckReport | str:
    """The report on a log, or why it could not be checked at all."""
    try:
        with whole_log(folder) as log:
            return check_log(log, folder)
    except SkillOptError as error:
        return str(error)


def _print_row(folder: Path, report: CheckReport | str) -> None:
    if isinstance(report, str):
        click.echo(f"unreadable  {folder}: {report}")
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
    return f"event {found.seq} ({found.event}){where}: {found.said}{after}"


def report_json(report: CheckReport) -> Json:
    """A report as JSON; `mismatch` is the first of `mismatches`."""
    found = [plain(each) for each in report.mismatches]
    return {
        **some_of(report, "ok", "events", "decisions", "rollouts", "evidence"),
        "not_checkable": dict(report.unchecked),
        "mismatch": found[0] if found else None,
        "mismatches": found,
    }
