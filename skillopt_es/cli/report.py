"""`report`: a run as one page to look at and to send."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import as_found, print_json
from skillopt_es.cli.terminal import print_error, write_exactly

if TYPE_CHECKING:
    from skillopt_es.report.facts import Facts
    from skillopt_es.runs.reading import Reading

REPORT_FILE = "report.html"


@click.command("report")
@run_argument
@click.option("--out", help="Where to write; report.html in the run's folder when left out, - for standard output.")
@click.option("--force", is_flag=True, help="Replace a file even if it is not such a page.")
@directory_option
@json_option
def report_command(run: str | None, out: str | None, force: bool, directory: Path, as_json: bool) -> int:
    """
    A run as one HTML page to look at and to send. RUN defaults to the newest.

    Scores with what can be said of them, the curve, the skill with who wrote each line, lineage, every step's diff,
    items by step, calls, tokens, money and time, environment and config. The page asks for nothing and runs nothing:
    it needs no network and no script. An earlier page is replaced; any other file only with --force.

    \b
    skillopt-es report
    skillopt-es report my-run --out my-run.html
    skillopt-es report my-run --json           the numbers of the page, for programs
    """
    from skillopt_es.report.document import document
    from skillopt_es.report.facts import facts_of
    from skillopt_es.report.page import page
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        facts = facts_of(reading, folder)
        if as_json:
            print_json(document(facts))
        elif out == "-":
            write_exactly((page(facts).encode(),))
        else:
            _write(Path(out) if out is not None else folder / REPORT_FILE, page(facts), force=force)
        return _as_found(reading, facts, folder.name)


def _as_found(reading: Reading, facts: Facts, name: str) -> int:
    """Says what could not be read for the page; the exit code. What lies beside the events can be damaged alone."""
    beside = [problem for problem in facts.problems if reading.problem is None]
    for problem in beside:
        print_error(problem, f"`skillopt-es verify {name}` says what was changed")
    return 1 if beside else as_found(reading)


def _write(path: Path, text: str, *, force: bool) -> None:
    """Writes the page and says where it is; an earlier page gives way to it."""
    from skillopt_es.deploy.files import write_file
    from skillopt_es.report.page import MARK

    write_file(path, text, force=force or _is_page(path, MARK))
    click.echo(f"{path} ({len(text.encode()) / 1024:,.0f} KB)")


def _is_page(path: Path, mark: str) -> bool:
    """Whether a file is a page that this command wrote."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return mark.encode() in file.read(2000)
