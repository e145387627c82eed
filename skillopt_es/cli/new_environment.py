"""`new-environment`: a package with an environment of one's own, which works and is there to be edited."""

from __future__ import annotations

import keyword
import re
import shlex
from importlib import resources
from pathlib import Path

import click

from skillopt_es.errors import ConfigError, OutputRefused

_FILES = {  # where it goes, and what it is made from
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md",
    "config.yaml": "config.yaml",
    "items.jsonl": "items.jsonl",
    "SKILL.md": "SKILL.md",
    "src/{module}/__init__.py": "package/__init__.py.txt",
    "src/{module}/environment.py": "package/environment.py.txt",
    "tests/test_environment.py": "tests/test_environment.py.txt",
}
_AS_THEY_ARE = ("items.jsonl", "SKILL.md")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


@click.command("new-environment")
@click.argument("name")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
def new_environment_command(name: str, directory: Path | None) -> None:
    """
    Write a package with an environment NAME into DIR (by default NAME), with tests that pass.

    Once it is installed beside skillopt-es, `env.name: NAME` trains on it.
    """
    folder = Path(name) if directory is None else directory
    written = write_package(name, folder)
    for file in written:
        click.echo(f"wrote  {folder / file}")
    where = shlex.quote(str(folder))
    click.echo(f"next   pip install -e {where} pytest && pytest {where}")
    click.echo("       then make src, tests, items.jsonl and SKILL.md yours")
    click.echo(f"       skillopt-es run {shlex.quote(str(folder / 'config.yaml'))}")


def write_package(name: str, folder: Path) -> list[str]:
    """The files of the package, written; raises an error, and writes nothing, where one would be overwritten."""
    _require_new(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputRefused(f"{folder} is there already", hint="name a new folder, or an empty one")
    module = f"skillopt_es_{name.replace('-', '_')}"
    title = "".join(part.title() for part in re.split("[-_]", name))
    written = []
    try:
        for place, template in _FILES.items():
            text = (resources.files("skillopt_es.configs") / "environment" / template).read_text(encoding="utf-8")
            place = place.format(module=module)
            if place not in _AS_THEY_ARE:
                text = text.format(name=name, module=module, title=title)
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text, encoding="utf-8")
            written.append(place)
    except OSError as error:
        raise OutputRefused(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return written


def _require_new(name: str) -> None:
    from skillopt_es.sessions.wiring import ENVIRONMENTS, registered

    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} cannot be the name of an environment", hint="use lower-case letters, digits and single - or _"
        )
    if name in registered(ENVIRONMENTS):
        raise ConfigError(f"an environment {name} is installed already", hint="give yours another name")
