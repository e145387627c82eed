"""`import`: the original's result folder as a run of ours that can be read, replayed and checked."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.counting import counted
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.folders import dir_option


@click.command("import")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--name", "--out", "name", metavar="RUN", help="The new run's name; by default the folder's and the time."
)
@directory_option
@json_option
def import_command(folder: Path, name: str | None, directory: Path, as_json: bool) -> None:
    """
    Read a result folder of the original SkillOpt (DIR) into a run that can be replayed, shown and checked.

    What the folder does not say stays unknown and is listed. An imported run cannot be resumed.
    """
    from skillopt_es.events.errors import RunExists
    from skillopt_es.events.schema import LOG_FILE
    from skillopt_es.interchange.folder import read_folder
    from skillopt_es.interchange.imported_run import imported_run, write_run
    from skillopt_es.runs.folders import new_run_folder
    from skillopt_es.runs.snapshot import snapshot

    now = datetime.now(UTC)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._") or "imported"
    with new_run_folder(name, stem[:60], now, directory) as run:
        if (run / LOG_FILE).exists():
            raise RunExists(f"there is already a run at {run}", hint="choose another name with --out")
        imported = imported_run(read_folder(folder))
        state = write_run(imported, run, now=lambda: datetime.now(UTC))
    if as_json:
        print_json({"run": run.name, "folder": str(run), **snapshot(state)})
    else:
        _print(state, run, directory, len(imported.events))


def _print(state: AnyState, run: Path, directory: Path, events: int) -> None:
    where = dir_option(directory)
    click.echo(
        f"imported    {run.name}: {counted(events, 'event')}, step {state.steps_done} of {state.started.total_steps}"
    )
    for gap in state.gaps:
        click.echo(f"unknown     {gap.place}: {gap.what} ({gap.why})")
    click.echo(f"next        skillopt-es status {run.name}{where}")
    click.echo(f"            skillopt-es replay {run.name} --check{where}")
