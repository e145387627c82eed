"""`import-tasks`: tasks from the files of other tools, as a file that `env.data_path` may name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.cli.options import json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.counting import counted
from skillopt_es.errors import ConfigError, DataError, OutputRefused
from skillopt_es.events.values import Json

if TYPE_CHECKING:
    from skillopt_es.adapters.tasksets.rows import Row
    from skillopt_es.adapters.tasksets.twins import Twins

_KINDS = ("table", "huggingface", "promptfoo", "inspect", "dspy", "openai", "sleep")
_SHOWN = 5
_PARTS = ("input", "expected", "id", "type", "split")


@click.command("import-tasks")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--to", "target", type=click.Path(path_type=Path), default=Path("tasks.jsonl"), show_default=True)
@click.option("--from", "kind", type=click.Choice(_KINDS), help="What kind of file it is, if that is not seen.")
@click.option("--field", "fields", multiple=True, metavar="OURS=THEIRS", help="Such as input=question.")
@click.option("--force", is_flag=True, help="Overwrite the file that is there.")
@json_option
def import_tasks_command(
    source: Path, target: Path, kind: str | None, fields: tuple[str, ...], force: bool, as_json: bool
) -> int:
    """
    Write the tasks of SOURCE as JSON Lines, and say what was taken, what was left, and which tasks are alike.

    SOURCE is CSV, TSV, Parquet, JSON or JSON Lines, a HuggingFace dataset on disk, promptfoo tests, an inspect_ai log
    or samples, DSPy examples, an OpenAI Evals file or a task file of SkillOpt-Sleep.
    """
    from skillopt_es.adapters.tasksets.rows import same_ids
    from skillopt_es.adapters.tasksets.suites import read_taskset

    if target.exists() and not force:
        raise OutputRefused(
            f"{target} exists already", hint="name another file with --to, or overwrite it with --force"
        )
    kind, taken = read_taskset(source, kind or "", _mapping(fields))
    twice = list(same_ids(taken.tasks))
    if twice:
        raise DataError(
            f"{source}: the id {twice[0]!r} is there twice", hint="say which field is the id: --field id=NAME"
        )
    if not taken.tasks:
        raise DataError(f"{source}: no task could be taken: {taken.left[0][1] if taken.left else 'it is empty'}")
    twins = _twins(taken.tasks)
    try:
        target.write_text("".join(json.dumps(t, ensure_ascii=False) + "\n" for t in taken.tasks), encoding="utf-8")
    except OSError as error:
        raise OutputRefused(f"{target} cannot be written: {error.strerror}") from error
    if as_json:
        left = [{"where": where, "why": why} for where, why in taken.left]
        alike = [{"one": each.one, "other": each.other, "share": each.share} for each in twins]
        print_json(
            {
                "kind": kind,
                "taken": len(taken.tasks),
                "left": cast(Json, left),
                "notes": [*taken.notes],
                "alike": cast(Json, alike),
            }
        )
        return 0
    click.echo(f"read   {source} as {kind}")
    click.echo(f"wrote  {target}  {counted(len(taken.tasks), 'task')}")
    for note in taken.notes:
        click.echo(f"note   {note}")
    for why, count in Counter(why for _, why in taken.left).items():
        first = next(where for where, each in taken.left if each == why)
        click.echo(f"left   {counted(count, 'task')}: {why} (first: {first})")
    _print_twins(taken.tasks, twins)
    click.echo(f"next   env: {{name: tasks, data_path: {target}{_mode(taken.tasks)}}}")
    return 0


def _mapping(fields: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in fields:
        ours, equals, theirs = each.partition("=")
        if not equals or ours not in _PARTS or not theirs:
            raise ConfigError(
                f"--field {each}: not {', '.join(_PARTS)} = a field of the file", hint="--field input=question"
            )
        found[ours] = theirs
    return found


def _twins(tasks: Sequence[Row]) -> list[Twins]:
    from skillopt_es.adapters.tasksets.twins import twins_in

    return list(twins_in({str(task["id"]): _asked(task) for task in tasks}))


def _asked(task: Row) -> str:
    asked = task.get("input", task.get("messages"))
    return asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False)


def _print_twins(tasks: Sequence[Row], twins: Sequence[Twins]) -> None:
    splits = {str(task["id"]): task.get("split") for task in tasks}
    across = [each for each in twins if splits[each.one] != splits[each.other]]
    for found, what in ((across, "in two splits"), ([each for each in twins if each not in across], "")):
        if found:
            shown = ", ".join(f"{each.one} = {each.other} ({each.share:.0%})" for each in found[:_SHOWN])
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            click.echo(f"alike  {counted(len(found), 'pair')} {what}".rstrip() + f": {shown}{more}")


def _mode(tasks: Sequence[Row]) -> str:
    """Where all tasks say where they belong, and some are to train and to judge by, nothing has to be drawn."""
    found = {task.get("split") for task in tasks}
    return ", split_mode: field" if {"train", "val"} <= found <= {"train", "val", "test"} else ""
