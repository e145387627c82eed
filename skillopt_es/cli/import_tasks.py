"""`import-tasks`: tasks from the files of other tools, as a file that `env.data_path` may name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.counting import counted
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import some_of

if TYPE_CHECKING:
    from skillopt_es.sessions.tasksets import Found

_KINDS = ("table", "huggingface", "promptfoo", "inspect", "dspy", "openai", "sleep")
_SHOWN = 5  # pairs on one line, enough to see whether they are the same task
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
    from skillopt_es.deploy.files import refuse_existing, write_file
    from skillopt_es.sessions.tasksets import find_tasks

    refuse_existing(target, force=force)
    found = find_tasks(source, kind or "", _mapping(fields))
    lines = "".join(json.dumps(task, ensure_ascii=False) + "\n" for task in found.tasks)
    write_file(target, lines, force=force)
    if as_json:
        print_json(_document(found))
    else:
        _print(found, source, target)
    return 0


def _document(found: Found) -> dict[str, Json]:
    return {
        "kind": found.kind,
        "taken": len(found.tasks),
        "left": [{"where": where, "why": why} for where, why in found.left],
        "notes": [*found.notes],
        "alike": [{**some_of(each, "one", "other", "share")} for each in found.twins],
    }


def _print(found: Found, source: Path, target: Path) -> None:
    click.echo(f"read   {source} as {found.kind}")
    click.echo(f"wrote  {target}  {counted(len(found.tasks), 'task')}")
    for note in found.notes:
        click.echo(f"note   {note}")
    for why, count in Counter(why for _, why in found.left).items():
        first = next(where for where, each in found.left if each == why)
        click.echo(f"left   {counted(count, 'task')}: {why} (first: {first})")
    for pairs, what in ((found.across, " in two splits"), ([p for p in found.twins if p not in found.across], "")):
        if pairs:
            shown = ", ".join(f"{each.one} and {each.other} ({each.share:.0%})" for each in pairs[:_SHOWN])
            more = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
            click.echo(f"alike  {counted(len(pairs), 'pair')}{what}: {shown}{more}")
    mode = ", split_mode: field" if found.says_splits else ""
    click.echo(f"next   env: {{name: tasks, data_path: {target}{mode}}}")


def _mapping(fields: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in fields:
        ours, equals, theirs = each.partition("=")
        if not equals or ours not in _PARTS or not theirs:
            said = f"--field {each}: not one of {', '.join(_PARTS)}, = and a field"
            raise ConfigError(said, hint="such as --field input=question")
        found[ours] = theirs
    return found
