"""`init` and `new-environment`: a small working project, and a package with an environment of its own."""

from __future__ import annotations

import keyword
import os
import re
import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import click

from skillopt_es.config.places import refuse_packaged
from skillopt_es.errors import ConfigError, OutputRefused
from skillopt_es.events.values import FileContent

_FILES = {
    "config.yaml": "the endpoint, the models and the sizes of a run",
    "tasks.jsonl": "the tasks, one a line",
    "SKILL.md": "the skill to start from",
    "grader.py": "how an answer is graded",
}

_COMMAND = """  target_backend: command               # your agent: docs/agents.md
  target_command: ["node", "agent.js"]
"""
_AGENTS: Mapping[str, tuple[str, str]] = {
    "python": ("agent.py", "  target_backend: python:agent.py:answer   # your agent: docs/agents.md\n"),
    "node": ("agent.js", _COMMAND),
}
"""For each language: the agent's file, and how the config names it."""
_TARGET = "  target: gpt-4.1-mini                  # the model that is to follow the skill\n"
_ASKED = """  target_gateway: openai                # its calls of a model go through the run
  target: gpt-4.1-mini                  # the model that it asks
"""

_CALLS = "  max_calls: 300 "
_CALLS_OF_AGENT = """  # Each attempt of your agent counts, and so does each call that it makes through the run.
  max_calls: 600 """

_IGNORED = "# what skillopt-es writes beside your files\nruns/\nevals/\n# keys\n.env\n"


@click.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--agent", type=click.Choice(list(_AGENTS)), help="With an agent of your own, in this language.")
@click.option("--force", is_flag=True, help="Replace the files that are there; of a link, the link itself.")
def init_command(directory: Path, agent: str | None, force: bool) -> None:
    """
    Write a small working project for your own tasks into DIR.

    It sorts made-up support mails by house rules, with a grader of its own, and is there to be edited.
    """
    files = write_project(directory, agent, force=force)
    for name, what in files.items():
        click.echo(f"wrote  {directory / name}  {what}")
    config = shlex.quote(str(directory / "config.yaml"))
    click.echo("next   name your models in config.yaml and export the key: export OPENAI_API_KEY=...")
    click.echo(f"       skillopt-es doctor {config}    is everything in place?")
    click.echo(f"       skillopt-es estimate {config}  what will it cost?")
    click.echo(f"       skillopt-es run {config}       train")
    click.echo(f"       then put your own tasks, skill and grading into the other {len(files) - 1} files")


def write_project(directory: Path, agent: str | None = None, *, force: bool) -> Mapping[str, str]:
    """Writes the project's files, and names them; raises ConfigError, and writes nothing, where one is there."""
    from skillopt_es.deploy.files import refuse_existing, write_content

    files = dict(_FILES)
    if agent is not None:
        files[_AGENTS[agent][0]] = "your agent, which does the tasks"
    refuse_packaged(directory)
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file, not a folder", hint="name another folder")
    there = [name for name in files if os.path.lexists(directory / name)]
    if there and not force:
        raise ConfigError(
            f"{directory} has {', '.join(there)} already", hint="name another folder, or overwrite them with --force"
        )
    contents = {name: _template(name, agent) for name in files}
    if not os.path.lexists(directory / ".gitignore"):
        contents[".gitignore"] = _IGNORED.encode()
    for name in contents:  # all of them or none
        refuse_existing(directory / name, force=force)
    for name, content in contents.items():
        write_content(directory / name, FileContent(content), force=force)
    return files


def _template(name: str, agent: str | None) -> bytes:
    # Code is packed as text: a module of that name inside the package would only be in the way.
    packed = f"{name}.txt" if name.endswith((".py", ".js")) else name
    content = (resources.files("skillopt_es.configs") / "init" / packed).read_bytes()
    if agent is None or name != "config.yaml":
        return content
    assert _TARGET.encode() in content
    assert _CALLS.encode() in content
    own = content.replace(_TARGET.encode(), (_AGENTS[agent][1] + _ASKED).encode())
    return own.replace(_CALLS.encode(), _CALLS_OF_AGENT.encode())


_PACKAGE = {  # where it goes, and what it is made from
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
    refuse_packaged(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputRefused(f"{folder} exists already", hint="name a new folder, or an empty one")
    module = f"skillopt_es_{name.replace('-', '_')}"
    title = "".join(part.title() for part in re.split("[-_]", name))
    written = []
    try:
        for place, template in _PACKAGE.items():
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
    from skillopt_es.sessions.opening import ENVIRONMENTS
    from skillopt_es.version import installed_for

    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} cannot be the name of an environment", hint="use lower-case letters, digits and single - or _"
        )
    if name in installed_for(ENVIRONMENTS):
        raise ConfigError(f"an environment {name} is installed already", hint="give yours another name")
