"""`fork`: another run that begins with what a run has done."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option, moment_option, set_option
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import print_warning
from skillopt_es.counting import counted
from skillopt_es.presenting.documents import plain_fields
from skillopt_es.presenting.numbers import shown_settings
from skillopt_es.runs.lookup import Moment


@click.command("fork")
@click.argument("run")
@moment_option("--until", "until", "Fork at the end of this step or epoch, or after this event; else now.")
@set_option("Continue with another value, even of a setting that decides.")
@click.option("--name", help="The fork's name; by default the run's and the moment.")
@directory_option
@json_option
def fork_command(
    run: str, until: Moment | None, overrides: tuple[str, ...], name: str | None, directory: Path, as_json: bool
) -> None:
    """
    Make a run of its own that shares what RUN did up to a moment, and can go on another way; RUN stays as it is.

    Nothing is asked or paid for yet: `skillopt-es resume` goes on with the fork. What RUN was answered answers the
    fork too, as long as it asks the same.

    \b
    skillopt-es fork my-run --until step 12 --set evaluation.gate_metric=soft --name softer
    skillopt-es resume softer
    """
    from skillopt_es.cli.summary import resume_hint
    from skillopt_es.runs.folders import find_run, fork_folder
    from skillopt_es.runs.lookup import seq_of
    from skillopt_es.runs.reading import Reading
    from skillopt_es.sessions.forking import make_fork

    found = find_run(run, directory)
    parent = found if found.name not in ("", "..") else found.resolve()
    with Reading.of(parent) as reading:
        damage = reading.problem
        if until is None and damage is not None:
            damage.hint = "`--until` forks it at a moment before the damage"
            raise damage
        seq = reading.head().seq if until is None else seq_of(reading, until)
    if damage is not None:
        print_warning(f"{parent.name} is damaged: {damage}; the fork has what comes up to event {seq}")
    moment = f"event-{seq}" if until is None else f"{until[0]}-{until[1]}"
    with fork_folder(name, parent, moment) as folder:
        made = make_fork(parent, seq, folder, overrides=overrides, now=lambda: datetime.now(UTC))
    opening = made.opening
    if as_json:
        print_json({"run": folder.name, "folder": str(folder), **plain_fields(opening), "steps": made.state.steps_done})
        return
    click.echo(f"fork        {folder.name}, of {opening.parent} after event {seq:,}")
    answers = f"{counted(opening.inherited, 'recorded call')} to answer again"
    click.echo(f"begins      {counted(made.state.steps_done, 'step')} done; {answers}")
    if opening.overrides:
        click.echo(f"changes     {shown_settings(opening.overrides)}")
    click.echo(f"next        {resume_hint(folder)}")
