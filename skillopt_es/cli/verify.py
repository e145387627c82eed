"""`verify`: whether a run's log is what was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import Toned, print_hanging, say
from skillopt_es.counting import counted
from skillopt_es.presenting.documents import plain
from skillopt_es.presenting.numbers import shown_time
from skillopt_es.presenting.words import hand_count_words

if TYPE_CHECKING:
    from skillopt_es.deploy.check import FolderReport


@click.command("verify")
@run_argument
@click.option(
    "--export",
    "exported",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Check an exported skill by itself and, when RUN is given, against that run's log.",
)
@click.option(
    "--anchor",
    "kept",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Also check against a copy of the run's head.json that you kept elsewhere.",
)
@directory_option
@json_option
def verify_command(run: str | None, exported: Path | None, kept: Path | None, directory: Path, as_json: bool) -> int:
    """
    Check that a run's log is what was written: every hash, text and reference, and its end against head.json. What is
    kept beside it to save time (usage.json, overview.json) is compared with what the log says.

    Exit code 1 when it is not. `replay --check` checks more: that each decision follows.

    Whoever may write the folder can change the log, recompute its hashes and rewrite head.json, and nothing in the
    folder shows it. A copy of head.json that they cannot reach does: --anchor checks that the log still begins as it
    did then.

    With --export, checks the folder of a skill as `export` or `install` wrote it: its files, the hash of the skill that
    was measured, and with RUN that this log has that skill, chain head, verdict and scores. Of a folder of skills, each
    one, and that all are there which were measured together.
    """

    if exported is not None:
        if kept is not None:
            raise click.UsageError("--anchor is about a run's log, --export about a folder: give one of them")
        return _verify_export(exported, run, directory, as_json=as_json)
    from skillopt_es.events.verify import verify
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.overview import with_kept

    folder = find_run(run, directory)
    report = with_kept(verify(folder, kept), folder)
    if as_json:
        print_json(plain(report))
        return 0 if report.ok else 1
    counts = f"{counted(report.events, 'event')}, {counted(report.calls, 'call')}, {counted(report.blobs, 'text')}"
    if report.ok:
        since = "" if kept is None else f"; begins as {kept} says"
        say(f"{folder.name}: ", Toned("ok", "good"), f"; {counts}; head {report.head_hash[:12]}{since}")
        if report.parent:
            click.echo(f"  a fork: up to {report.parent_head[:12]} it is run {report.parent}, and it stands on its own")
    else:
        say(f"{folder.name}: ", Toned("NOT what was written", "bad"), f"; {counts} looked at, problems found:")
    for gone in report.erased:
        what = f"{counted(gone.texts, 'text')} and parts of {counted(gone.events, 'event')}"
        click.echo(
            f"  event {gone.seq} erased {what} about "
            f"{', '.join(gone.items)}, on {shown_time(gone.recorded_at)} UTC, by {gone.by}: {gone.reason}"
        )
    for problem in report.problems:
        print_hanging(f"  {problem.where}{'' if problem.seq is None else f' {problem.seq}'}: {problem.message}", hang=6)
    for warning in report.warnings:
        print_hanging(f"  note: {warning}", hang=6)
    return 0 if report.ok else 1


def _verify_export(folder: Path, run: str | None, directory: Path, *, as_json: bool) -> int:
    """One exported skill, or each of a folder of skills."""
    from contextlib import ExitStack

    from skillopt_es.deploy.check import check_export, parts_in, parts_problem
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import whole_log

    parts = parts_in(folder)
    with ExitStack() as stack:
        log = stack.enter_context(whole_log(find_run(run, directory))) if run is not None else None
        reports = [check_export(each, log) for each in parts or (folder,)]
    problem = parts_problem(folder) if parts else ""
    ok = not problem and all(report.ok for report in reports)
    if as_json:
        print_json({"ok": ok, "problem": problem, "skills": plain(reports)} if parts else plain(reports[0]))
        return 0 if ok else 1
    for report in reports:
        _tell_export(report)
    if problem:
        say(f"{folder}: ", Toned("NOT what was exported", "bad"), f"; {problem}")
    return 0 if ok else 1


def _tell_export(report: FolderReport) -> None:
    against = f" against {report.run} to event {report.seq:,}" if report.run else ""
    if report.ok:
        say(
            f"{report.name}: ",
            Toned("ok", "good"),
            f"{against}; skill {report.skill[:12]}, {counted(report.files, 'file')}",
        )
    else:
        say(f"{report.name}: ", Toned("NOT what was exported", "bad"), f"{against}; problems found:")
    for problem in report.problems:
        click.echo(f"  {problem}")
    if report.by_hand is not None:
        click.echo(f"  the run was steered by hand: {hand_count_words(report.by_hand)}")
    for note in report.notes:
        click.echo(f"  note: {note}")
