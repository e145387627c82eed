"""`install` and `uninstall`: a skill where a coding agent finds it, and away again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import frozen

from skillopt_es.cli.options import directory_option, json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.skills import SkillChoice, skill_options
from skillopt_es.presenting.documents import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from skillopt_es.deploy.install import Installed, Removed
    from skillopt_es.deploy.places import Scope
    from skillopt_es.deploy.receipt import Receipt
    from skillopt_es.events.values import FileContent

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

    The skill is named by --name or by its frontmatter. A skill of that name which was not installed from here
    is left alone, unless --force takes its place; `uninstall` brings it back. Of a folder of skills all are put there
    or none, and what an earlier installation of it left there and the folder has no more is taken away.
    """

    from skillopt_es.deploy.install import install, left_over, refuse_taking, uninstall

    folder = _skills(to, scope)
    content = _content(source, choice, directory)
    names = {receipt.name for receipt, _ in content.skills}
    stale = left_over(folder, names, runs=content.runs, began=content.began) if content.of_folder else ()
    for name in (*names, *stale) if content.of_folder else ():
        refuse_taking(folder, name, force=force)
    done = [install(folder, *each, force=force) for each in content.skills]
    gone = [uninstall(folder, name, force=force) for name in stale]
    if as_json:
        all_done = [plain(each) for each in (*done, *gone)]
        print_json(all_done[0] if len(all_done) == 1 else all_done)
        return
    for each in done:
        _tell_installed(each)
    for removed in gone:
        _tell_removed(removed, "; the folder has it no more")
    if content.of_folder:
        _tell_strangers(folder, {*names, *stale})


def _tell_installed(done: Installed) -> None:
    what = "updated" if done.updated else "installed"
    more = "; what was there comes back with `skillopt-es uninstall`" if done.replaced else ""
    click.echo(f"{what}: {done.place}{more}")
    if done.kept is not None:
        click.echo(f"  the changed version is kept in {done.kept}")


def _tell_removed(done: Removed, why: str = "") -> None:
    click.echo(f"removed: {done.place}{why}{'; what was there before is back' if done.restored else ''}")
    if done.kept is not None:
        click.echo(f"  the changed version is kept in {done.kept}")


def _tell_strangers(folder: Path, names: Collection[str]) -> None:
    """That agents will be shown skills of another folder, too: nobody has measured both together."""
    from skillopt_es.cli.terminal import print_note
    from skillopt_es.deploy.check import is_of_folder
    from skillopt_es.deploy.install import installed_in

    others = [name for name in installed_in(folder) if name not in names and is_of_folder(folder / name)]
    if others:
        print_note(
            f"{folder} also has {', '.join(others)}, of another run's folder of skills: nobody has measured them "
            "together with these (`skillopt-es uninstall` takes them away)"
        )


@click.command("uninstall")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="All that were installed there from here.")
@_place_options
@click.option("--force", is_flag=True, help="Even if it was changed; the changed version is kept.")
@json_option
def uninstall_command(name: str | None, everything: bool, to: str, scope: Scope, force: bool, as_json: bool) -> None:
    """
    Take an installed skill away, and put back what was there before. NAME may be left out when only one is installed.

    Refuses when somebody has changed the skill since. Doing it twice does nothing.
    """

    from skillopt_es.deploy.install import installed_in, uninstall
    from skillopt_es.skill.frontmatter import is_name

    skills = _skills(to, scope)
    if everything:
        if name is not None:
            raise click.UsageError("name a skill, or say --all")
        all_done = [uninstall(skills, each, force=force) for each in installed_in(skills)]
        if as_json:
            print_json([plain(each) for each in all_done])
        for each in () if as_json else all_done:
            _tell_removed(each)
        return
    name = name or _only_one(skills)
    if not is_name(name):
        raise click.UsageError(f"{name!r} is no name of a skill")
    done = uninstall(skills, name, force=force)
    if as_json:
        print_json(plain(done))
    elif done.found or done.restored:
        _tell_removed(done)
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


@frozen(kw_only=True)
class _Content:
    """Skills with their receipts; of a folder of skills, the runs that it is of, and what the last one `began` with."""

    skills: Sequence[tuple[Receipt, Mapping[str, FileContent]]]
    of_folder: bool = False
    runs: Collection[str] = ()
    began: str = ""


def _content(source: str | None, choice: SkillChoice, directory: Path) -> _Content:
    """What is to be installed, from a log or from a folder that was exported."""
    from skillopt_es.deploy.check import parts_in
    from skillopt_es.deploy.provenance import FILE
    from skillopt_es.runs.folders import is_run

    folder = Path(source) if source is not None else None
    if folder is not None and (folder / FILE).is_file():
        if choice != SkillChoice():
            raise click.UsageError(
                f"{folder} is an exported skill: --which, --at, --name and --description go with a run"
            )
        return _Content(skills=[_of_folder(folder)])
    if folder is not None and not is_run(directory / folder) and parts_in(folder):
        if choice != SkillChoice():
            raise click.UsageError(f"{folder} is an exported folder of skills: --which and --at go with a run")
        return _of_parts(folder)
    return _of_run(source, choice, directory)


def _of_folder(folder: Path) -> tuple[Receipt, Mapping[str, FileContent]]:
    from skillopt_es.deploy.check import folder_problems, provenance_in
    from skillopt_es.deploy.provenance import FILE
    from skillopt_es.deploy.receipt import receipt_of
    from skillopt_es.errors import OutputRefused
    from skillopt_es.events.plain import is_executable
    from skillopt_es.events.values import FileContent

    document = provenance_in(folder)
    problems = folder_problems(folder, document)
    if problems:
        raise OutputRefused(f"{folder} is not what was exported: {problems[0]}", hint="export the skill again")
    paths = [*(file.path for file in document.folder.files), FILE]
    files = {path: FileContent((folder / path).read_bytes(), is_executable(folder / path)) for path in paths}
    return receipt_of(document.folder.name, document.facts, files), files


def _of_parts(place: Path) -> _Content:
    """All skills of an exported folder; raises OutputRefused where they are not what was measured together."""
    from skillopt_es.deploy.check import parts_in, parts_problem, provenance_in
    from skillopt_es.errors import OutputRefused

    problem = parts_problem(place)
    if problem:
        raise OutputRefused(f"{place}: {problem}", hint="export the folder again, or name one of its skills")
    parts = parts_in(place)
    run = provenance_in(parts[0]).facts.run
    return _Content(
        skills=[_of_folder(each) for each in parts],
        of_folder=True,
        runs={run.id, *(fork.run_id for fork in run.forked_from)},
    )


def _of_run(run: str | None, choice: SkillChoice, directory: Path) -> _Content:
    """The run's skill, or each skill of its folder."""
    from skillopt_es.cli.skills import chosen_skill, refuse_names, tell
    from skillopt_es.deploy.folder import name_of, skill_folder, skill_folders
    from skillopt_es.deploy.receipt import receipt_of
    from skillopt_es.errors import OutputRefused
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import whole_log

    with whole_log(find_run(run, directory)) as log:
        skill, facts = chosen_skill(log, choice)
        began, _ = chosen_skill(log, SkillChoice(which="initial"))
    if skill.is_folder:
        refuse_names(choice)
        return _Content(
            skills=[(receipt_of(each.name, facts, each.files), each.files) for each in skill_folders(skill, facts)],
            of_folder=True,
            runs={facts.run.id, *(fork.run_id for fork in facts.run.forked_from)},
            began=began.hash,
        )
    name = name_of(skill, choice.name, "")
    if not name:
        raise OutputRefused("the skill has no name of its own", hint="give it a name for agents: --name my-skill")
    built = skill_folder(skill, facts, name, choice.description)
    tell(built)
    return _Content(skills=[(receipt_of(built.name, facts, built.files), built.files)])
