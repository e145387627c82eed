"""`runs` and `status`: what runs there are and where one stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, print_json, run_argument

if TYPE_CHECKING:
    from skillopt_es.gate.calibration import Null
    from skillopt_es.gate.flips import Flips


@click.command("runs")
@directory_option
@json_option
def runs_command(directory: Path, as_json: bool) -> None:
    """All runs in a directory, the most recently written last."""
    from skillopt_es.cli.status_tables import overview_json, print_runs
    from skillopt_es.runs.folders import dir_option
    from skillopt_es.runs.overview import overviews

    found = overviews(directory)
    if as_json:
        print_json([overview_json(each) for each in found])
    elif found:
        print_runs(found)
    else:
        click.echo(f"there is no run in {directory}; `skillopt-es run{dir_option(directory)}` starts one", err=True)


@click.command("status")
@run_argument
@directory_option
@json_option
def status_command(run: str | None, directory: Path, as_json: bool) -> int:
    """Where a run stands, one line a step, and what to type next. RUN defaults to the newest."""
    from skillopt_es.cli.audit_words import as_found
    from skillopt_es.cli.status_tables import print_status, status_json
    from skillopt_es.presenting.documents import problem_json
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.overview import detailed
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        found = detailed(reading, folder)
        null = _null(folder) if found.drawn_again and reading.problem is None else None
        if as_json:
            print_json({**status_json(found, null), "problem": problem_json(reading)})
        else:
            print_status(found, directory, null)
        return as_found(reading)


def _null(folder: Path) -> tuple[Null, Flips] | None:
    """What the run's rule accepts that is no better; imported only for the few runs that can tell."""
    from skillopt_es.audit.calibrating import measured_null

    return measured_null(folder)
