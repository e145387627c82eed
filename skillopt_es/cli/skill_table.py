"""`skills`: what each skill of a folder was good for, and which kinds of task opened what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import as_found, print_json, print_table
from skillopt_es.errors import NotInRun
from skillopt_es.presenting.documents import plain

if TYPE_CHECKING:
    from skillopt_es.audit.skill_table import SkillRow, SkillTable, Tally
    from skillopt_es.events.values import Json


@click.command("skills")
@run_argument
@directory_option
@json_option
def skills_command(run: str | None, directory: Path, as_json: bool) -> int:
    """
    What each skill of a folder was good for, from the training attempts of a run. RUN defaults to the newest.

    \b
    opened     attempts that opened it, and how many of them passed
    missed     attempts at tasks that mostly open it and that did not, and how many of them passed
    precision  of those that opened it, the share whose kind of task mostly does
    recall     of the kinds of task that mostly open it, the share of attempts that did
    listed     characters of its line in the list that agents see; text: characters of all its files
    edits      changes of it that were taken, and that were refused
    since      the step that changed it last

    The kinds are the items' field `type`. The second table has a line for each kind: what was opened how often.
    """
    from skillopt_es.audit.skill_table import TYPES, skill_table
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    with Reading.of(find_run(run, directory)) as reading:
        found, name = skill_table(reading.read(types=TYPES)), reading.run.name
        if not found.rows and not found.routing:
            raise reading.problem or NotInRun(f"{name} has no folder of skills, or has not tried anything yet")
        if as_json:
            print_json({"run": name, **_document(found), "problem": plain(reading.problem)})
        else:
            _print(found)
        return as_found(reading)


def _document(found: SkillTable) -> dict[str, Json]:
    """The table for programs."""
    rows: list[Json] = [
        {**cast("dict[str, Json]", plain(row)), "precision": row.precision, "recall": row.recall} for row in found.rows
    ]
    routing: list[Json] = [
        {"kind": kind, "opened": [*key], "attempts": tally.attempts, "passed": tally.passed}
        for kind, keys in found.routing.items()
        for key, tally in keys.items()
    ]
    return {"listed": found.listed, "skills": rows, "routing": routing}


_HEADERS = ("skill", "opened", "passed", "missed", "passed", "precision", "recall", "listed", "text", "edits", "since")


def _print(found: SkillTable) -> None:
    print_table(_HEADERS, [_row(row) for row in found.rows], right=tuple(range(1, 9)))
    click.echo(f"names and descriptions: {found.listed:,} characters")
    if found.routing:
        click.echo()
        rows = [
            (
                kind,
                str(sum(each.attempts for each in keys.values())),
                ", ".join(_opened(*each) for each in keys.items()),
            )
            for kind, keys in found.routing.items()
        ]
        print_table(("kind of task", "attempts", "opened"), rows, right=(1,))


def _opened(key: tuple[str, ...], tally: Tally) -> str:
    return f"{' + '.join(key) or 'nothing'} {tally.attempts} ({tally.passed} passed)"


def _row(row: SkillRow) -> tuple[str, ...]:
    since = "start" if row.since == 0 else f"step {row.since}"
    origin = f", from {' and '.join(row.came_from)}" if row.came_from else ""
    return (
        row.name if row.there else f"({row.name})",
        str(row.opened.attempts),
        _share(row.opened.rate),
        str(row.missed.attempts),
        _share(row.missed.rate),
        _share(row.precision),
        _share(row.recall),
        str(row.listed) if row.there else "-",
        str(row.characters) if row.there else "-",
        f"{row.taken} taken, {row.refused} refused",
        f"{since}{origin}" if row.there else f"gone, {since}",
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
