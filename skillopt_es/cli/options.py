"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from skillopt_es.events.values import Json, Setting

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig

F = TypeVar("F", bound=Callable[..., object])


def directory_option(command: F) -> F:
    """`--dir`: where the run folders are."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("runs"),
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
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_json_error(message: str, hint: str, code: int) -> None:
    """Why there is no document, in its place; nothing when there is one, for that says itself what went wrong."""
    if not _printed:
        print_json({"error": {"message": message, "hint": hint or None, "exit_code": code}})


def forget_printed() -> None:
    """A new command begins."""
    _printed.clear()


def tell_of(config: RunConfig) -> None:
    """What a config says that has no effect, on stderr: once, when it is read."""
    for notice in config.notices:
        warn(notice)


def warn(message: str) -> None:
    """One line on stderr about what the user should know before relying on what follows."""
    click.echo(f"warning: {message}", err=True)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """An aligned table on stdout; columns in `right` are right-aligned. The same in a terminal and a pipe."""
    widths = [max(len(cell) for cell in column) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def shown_settings(settings: Sequence[Setting]) -> str:
    """Settings as somebody would write them; nothing for none."""
    return ", ".join(f"{each.key} = {json.dumps(each.value, ensure_ascii=False)}" for each in settings)


def shown_value(value: float | None) -> str:
    """A score for people; a dash for one that was not measured."""
    return "-" if value is None else f"{value:.4f}"
