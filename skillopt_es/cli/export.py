"""`export`: a run's skill, its events, its tables or the original's result folder as files of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skillopt_es.cli.moment import moment_option
from skillopt_es.cli.options import directory_option
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree
from skillopt_es.moments import Moment

_WHICH = ("best", "current", "initial")
_FORMATS = ("skill", "jsonl", "sqlite", "skillopt")


@click.command("export")
@click.argument("words", nargs=-1, metavar="[RUN] OUT")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="skill", show_default=True, help="What to write."
)
@click.option("--out", help="Where to write, in place of the last word.")
@click.option("--which", type=click.Choice(_WHICH), default="best", show_default=True, help="Which skill.")
@moment_option("--at", "at", "The skill as it was at the end of this step or epoch, or after this event.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@directory_option
def export_command(
    words: tuple[str, ...], form: str, out: str | None, which: str, at: Moment | None, force: bool, directory: Path
) -> None:
    """
    Write a run's skill, events, tables or results to OUT. RUN is a name or a folder; the newest run when left out.

    \b
    skill    the skill, byte for byte: to the file OUT, or into OUT if it is a folder or ends with /
    jsonl    one event a line, whole; the same log always gives the same bytes
    sqlite   tables of steps, evaluations, rollouts and edits, for SQL and spreadsheets
    skillopt the result folder of the original SkillOpt; a folder that is new, empty or an earlier export

    OUT may be - (standard output) for skill and jsonl.
    """
    from skillopt_es.audit.reading import Reading
    from skillopt_es.runs import find_run

    if form != "skill" and (at is not None or which != "best"):
        raise click.UsageError(f"--which and --at choose a skill; they do not go with --format {form}")
    run, to = _run_and_place(words, out)
    with Reading.of(find_run(run, directory)) as reading:
        if reading.problem is not None:  # a file that is not whole looks like one that is
            raise reading.problem
        log = reading.log
        match form:
            case "skill":
                _export_skill(_skill(log, which, at), to, force=force)
            case "jsonl":
                _export_events(log, to, force=force)
            case "sqlite":
                _export_tables(log, to, force=force)
            case _:
                _export_results(log, to)


def _run_and_place(words: tuple[str, ...], out: str | None) -> tuple[str | None, str]:
    """The run's name, if one was given, and where to write."""
    if out is not None:
        words = (*words, out)
    if not 1 <= len(words) <= 2:
        raise click.UsageError("export takes a run and where to write: export [RUN] OUT, or export [RUN] --out OUT")
    return (words[0] if len(words) == 2 else None), words[-1]


def _skill(log: EventLog, which: str, at: Moment | None) -> SkillTree:
    from skillopt_es.errors import NotInRun
    from skillopt_es.moments import seq_of
    from skillopt_es.projections.trainer import fold

    until = None if at is None else seq_of(log, at)
    state = fold(recorded.event for recorded in log.read(until=until))
    if state.started is None or state.best is None or state.current is None:
        raise NotInRun(f"{log.run.name} has not begun: it has no skill yet")
    return {"best": state.best.skill, "current": state.current.skill, "initial": state.started.skill}[which]


def _export_skill(skill: SkillTree, out: str, *, force: bool) -> None:
    from skillopt_es.cli.files import write_file, write_skill
    from skillopt_es.errors import OutputRefused

    path = Path(out)
    if out == "-":
        sys.stdout.buffer.write(skill.text.encode())
    elif out.endswith("/") or path.is_dir():
        for file in write_skill(path, skill, force=force):
            click.echo(str(file))
    elif len(skill.files) > 1:
        raise OutputRefused(f"the skill has {len(skill.files)} files", hint=f"name a folder: {out}/")
    else:
        write_file(path, skill.text, force=force)
        click.echo(str(path))


def _export_events(log: EventLog, out: str, *, force: bool) -> None:
    from skillopt_es.cli.files import writing
    from skillopt_es.events.codec import canonical_json
    from skillopt_es.projections.plain import plain_event

    lines = (f"{canonical_json(plain_event(recorded))}\n".encode() for recorded in log.read())
    if out == "-":
        sys.stdout.buffer.writelines(lines)
        return
    with writing(Path(out), force=force) as draft, draft.open("wb") as file:
        file.writelines(lines)
    click.echo(out)


def _export_tables(log: EventLog, out: str, *, force: bool) -> None:
    from skillopt_es.cli.files import writing
    from skillopt_es.errors import OutputRefused
    from skillopt_es.projections.tables import rebuild_tables

    if out == "-":
        raise OutputRefused("a database cannot be written to standard output", hint="name a file, such as run.db")
    with writing(Path(out), force=force) as draft:
        rebuild_tables(log, draft)
    click.echo(out)


def _export_results(log: EventLog, out: str) -> None:
    from skillopt_es.cli.result_folder import export_results
    from skillopt_es.errors import OutputRefused

    if out == "-":
        raise OutputRefused("a folder cannot be written to standard output", hint="name a folder, such as results/")
    count = export_results(log, Path(out))
    click.echo(f"{out} ({count:,} files)")
