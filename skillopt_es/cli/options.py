"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from skillopt_es.cli.table_layout import GAP, laid_out
from skillopt_es.cli.terminal import Toned, print_warning, say, width
from skillopt_es.events.values import Json
from skillopt_es.presenting.escaping import shown_json
from skillopt_es.presenting.palette import Tone, tone_of
from skillopt_es.runs.folders import USUAL

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig


OFFLINE_DEMO = "This is the offline demo: both models are simulated, no key and no network are used."
"""Said where nobody names a config."""

F = TypeVar("F", bound=Callable[..., object])


def directory_option(command: F) -> F:
    """`--dir`: where the run folders are."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path, file_okay=False),
        default=USUAL,
        show_default=True,
        help="Where the run folders are.",
    )(command)


def json_option(command: F) -> F:
    """`--json`: for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def run_argument(command: F) -> F:
    """RUN: a name or a folder; the newest run when left out."""
    return click.argument("run", required=False)(command)


_printed: list[Json] = []


def print_json(value: Json) -> None:
    """The command's JSON document on stdout."""
    _printed.append(value)
    plain = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    click.echo(shown_json(json.dumps(value, indent=2, ensure_ascii=plain, allow_nan=False)))


def print_json_error(message: str, hint: str, code: int) -> None:
    """Why there is no document, in its place; nothing when there is one, for that says itself what went wrong."""
    if not _printed:
        print_json({"error": {"message": message, "hint": hint or None, "exit_code": code}})


def forget_printed() -> None:
    """A new command begins."""
    _printed.clear()


def tell_of(config: RunConfig) -> None:
    """What a config says that has no effect, and how the rest was understood, on stderr: once, when it is read."""
    for notice in config.notices:
        print_warning(notice)
    for note in config.notes:
        click.echo(f"note: {note}", err=True)


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    verdicts: Sequence[int] = (),
) -> None:
    """
    An aligned table on stdout; columns in `right` are right-aligned, those in `verdicts` in the tone of what they say.

    A terminal gets it folded into its width, a pipe one line a row.
    """
    head, *laid = laid_out(headers, rows, right=right, width=width())
    for line in head:
        say(Toned((" " * GAP).join(line).rstrip(), "strong"))
    for row, lines in zip(rows, laid, strict=True):
        tones = {index: tone_of(row[index]) for index in verdicts}
        for line in lines:
            _print_cells(line, tones)


def _print_cells(cells: Sequence[str], tones: Mapping[int, Tone]) -> None:
    last = max((index for index, cell in enumerate(cells) if cell.strip()), default=-1)
    shown = [cell if index < last else cell.rstrip() for index, cell in enumerate(cells[: last + 1])]
    parts = [part for index, cell in enumerate(shown) for part in (" " * GAP, Toned(cell, tones.get(index, "plain")))]
    say(*parts[1:])
