"""`init`: a small working project, to be edited into one's own."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

import click

from skillopt_es.errors import ConfigError

_FILES = {
    "config.yaml": "the endpoint, the models and the sizes of a run",
    "tasks.jsonl": "the tasks, one a line",
    "SKILL.md": "the skill to start from",
    "grader.py": "how an answer is graded",
}

_IGNORED = "# what skillopt-es writes beside your files\nruns/\nevals/\n"


@click.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite the files that are there.")
def init_command(directory: Path, force: bool) -> None:
    """
    Write a small working project for your own tasks into DIR.

    It sorts made-up support mails by house rules, with a grader of its own, and is there to be edited.
    """
    write_project(directory, force=force)
    for name, what in _FILES.items():
        click.echo(f"wrote  {directory / name}  {what}")
    config = shlex.quote(str(directory / "config.yaml"))
    click.echo("next   name your models in config.yaml and export the key: export OPENAI_API_KEY=...")
    click.echo(f"       skillopt-es doctor {config}    is everything in place?")
    click.echo(f"       skillopt-es run {config}       train")
    click.echo("       then put your own tasks, skill and grading into the other three files")


def write_project(directory: Path, *, force: bool) -> None:
    """Writes the project's files; raises ConfigError, and writes nothing, where it would overwrite one."""
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file, not a folder", hint="name another folder")
    there = [name for name in _FILES if (directory / name).exists()]
    if there and not force:
        raise ConfigError(
            f"{directory} has {', '.join(there)} already", hint="name another folder, or overwrite them with --force"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (directory / name).write_bytes(_template(name))
        if not (directory / ".gitignore").exists():
            (directory / ".gitignore").write_text(_IGNORED, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename or directory} cannot be written: {error.strerror}") from error


def _template(name: str) -> bytes:
    # The grader is packed as text: a module of that name inside the package would only be in the way.
    packed = f"{name}.txt" if name.endswith(".py") else name
    return (resources.files("skillopt_es.configs") / "init" / packed).read_bytes()
