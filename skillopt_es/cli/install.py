"""`install` and `uninstall`: a skill where a coding agent finds it, and away again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.skills import SkillChoice, skill_options
from skillopt_es.presenting.documents import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillopt_es.deploy.install import Installed
    from skillopt_es.deploy.places import Scope
    from skillopt_es.deploy.receipt import Receipt

    Command = Callable[..., object]


def _place_options(command: Command) -> Command:
    """`--to` and `--scope`: whose skills."""
    to = click.option(
        "--to",
        required=True,
        metavar="AGENT|DIR",
        help="The agent that should find it (claude, codex, copilot, cursor, gemini, opencode), or a folder of skills.",
    )
    scope = click.option(
        "--scope",
        type=click.Choice(("user", "project")),
        default="user",
        show_default=True,
        help="For all that this user does, or for the project in the current folder.",
    )
    return to(scope(command))


@click.command("install")
@click.argument("source", required=False, metavar="[RUN|FOLDER]")
@_place_options
@skill_options
@click.option("--force", is_flag=True, help="Replace what is there; it is kept.")
@directory_option
@json_option
def install_command(
    source: str | None, to: str, scope: Scope, choice: SkillChoice, force: bool, directory: Path, as_json: bool
) -> None:
    """
    Put a skill where a coding agent finds it: the best one of RUN (default: the newest run), or an exported FOLDER.

    \b
    claude     ~/.claude/skills, or .claude/skills of the project
    codex      ~/.agents/skills, or .agents/skills of the project
    copilot    ~/.copilot/skills, or .github/skills of the project
    cursor     ~/.cursor/skills, or .cursor/skills of the project
    gemini     ~/.gemini/skills, or .gemini/skills of the project
    opencode   ~/.config/opencode/skills, or .opencode/skills of the project
    agents     ~/.agents/skills, or .agents/skills: several agents read these as well
    DIR        any other folder of skills, by its path: ./skills

    The skill has the name of --name or of its own frontmatter. A skill of that name which was not installed from here
    is left alone, unless --force takes its place; `uninstall` brings it back.
    """

    from skillopt_es.deploy.install import install

    folder = _skills(to, scope)
    done = [install(folder, *each, force=force) for each in _content(source, choice, directory)]
    if as_json:
        print_json(plain(done[0]) if len(done) == 1 else [plain(each) for each in done])
        return
    for each in done:
        _tell_installed(each)


def _tell_installed(done: Installed) -> None:
    what = "updated" if done.updated else "installed"
    more = "; what was there comes back with `skillopt-es uninstall`" if done.replaced else ""
    click.echo(f"{what}: {done.place}{more}")
    if done.kept is not None:
        click.echo(f"  the changed version is kept in {done.kept}")


@click.command("uninstall")
@click.argument("name", required=False)
@_place_options
@click.option("--force", is_flag=True, help="Even if it was changed; the changed version is kept.")
@json_option
def uninstall_command(name: str | None, to: str, scope: Scope, force: bool, as_json: bool) -> None:
    """
    Take an installed skill away, and put back what was there before. NAME may be left out when only one is installed.

    Refuses when somebody has changed the skill since. Doing it twice does nothing.
    """

    from skillopt_es.deploy.install import uninstall
    from skillopt_es.skill.frontmatter import is_name

    skills = _skills(to, scope)
    name = name or _only_one(skills)
    if not is_name(name):
        raise click.UsageError(f"{name!r} is no name of a skill")
    done = uninstall(skills, name, force=force)
    if as_json:
        print_json(plain(done))
    elif done.found or done.restored:
        click.echo(f"removed: {done.place}{'; what was there before is back' if done.restored else ''}")
        if done.kept is not None:
            click.echo(f"  the changed version is kept in {done.kept}")
    else:
        click.echo(f"nothing to do: skillopt-es has installed no {name} in {skills}")


def _skills(to: str, scope: Scope) -> Path:
    from skillopt_es.deploy.places import skills_folder

    return skills_folder(to, scope, home=Path.home(), project=Path.cwd(), environ=os.environ)


def _only_one(skills: Path) -> str:
    from skillopt_es.deploy.install import installed_in

    names = installed_in(skills)
    if len(names) == 1:
        return names[0]
    there = f"there are {', '.join(names)}" if names else f"skillopt-es has installed none in {skills}"
    raise click.UsageError(f"which skill? {there}")


def _content(source: str | None, choice: SkillChoice, directory: Path) -> list[tuple[Receipt, Mapping[str, str]]]:
    """What is to be installed, from a log or from a folder that was exported."""
    from skillopt_es.deploy.provenance import FILE

    folder = Path(source) if source is not None else None
    if folder is not None and (folder / FILE).is_file():
        if choice != SkillChoice():
            raise click.UsageError(
                f"{folder} is an exported skill: --which, --at, --name and --description go with a run"
            )
        return [_of_folder(folder)]
    return _of_run(source, choice, directory)


def _of_folder(folder: Path) -> tuple[Receipt, Mapping[str, str]]:
    from skillopt_es.deploy.check import folder_problems, provenance_in
    from skillopt_es.deploy.provenance import FILE
    from skillopt_es.deploy.receipt import receipt_of
    from skillopt_es.errors import OutputRefused

    document = provenance_in(folder)
    problems = folder_problems(folder, document)
    if problems:
        raise OutputRefused(f"{folder} is not what was exported: {problems[0]}", hint="export the skill again")
    paths = [*(file.path for file in document.folder.files), FILE]
    files = {path: (folder / path).read_bytes().decode() for path in paths}
    return receipt_of(document.folder.name, document.facts, files), files


def _of_run(run: str | None, choice: SkillChoice, directory: Path) -> list[tuple[Receipt, Mapping[str, str]]]:
    """The run's skill, or each skill of its folder."""
    from skillopt_es.cli.skills import chosen_skill, refuse_names, tell
    from skillopt_es.deploy.folder import name_of, skill_folder, skill_folders
    from skillopt_es.deploy.receipt import receipt_of
    from skillopt_es.errors import OutputRefused
    from skillopt_es.events.log import EventLog
    from skillopt_es.runs.folders import find_run

    with EventLog.open(find_run(run, directory)) as log:
        skill, facts = chosen_skill(log, choice)
    if skill.is_folder:
        refuse_names(choice)
        return [(receipt_of(each.name, facts, each.files), each.files) for each in skill_folders(skill, facts)]
    name = name_of(skill, choice.name, "")
    if not name:
        raise OutputRefused("the skill has no name of its own", hint="give it a name for agents: --name my-skill")
    built = skill_folder(skill, facts, name, choice.description)
    tell(built)
    return [(receipt_of(built.name, facts, built.files), built.files)]
