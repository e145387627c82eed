"""`adopt`: a run's best skill in the place of the file that it was trained from, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json
from skillopt_es.errors import OutputRefused
from skillopt_es.events.values import digest_of

if TYPE_CHECKING:
    from skillopt_es.events.values import SkillTree


@click.command("adopt")
@run_argument
@click.option("--undo", is_flag=True, help="Put back what was there before.")
@click.option("--force", is_flag=True, help="Even if somebody has changed the file since the run began; it is kept.")
@directory_option
@json_option
def adopt_command(run: str | None, undo: bool, force: bool, directory: Path, as_json: bool) -> None:
    """
    Put the best skill of RUN (default: the newest run) in the place of the file that it was trained from.

    What was there is kept with a receipt in `.skillopt-es/adopted` beside it. `install` puts a skill where a coding
    agent finds it; `adopt` changes your own file, for instance after a nightly run.

    \b
    skillopt-es adopt my-run
    skillopt-es adopt my-run --undo
    """
    from skillopt_es.deploy.adopt import Adoption, adopt, take_back
    from skillopt_es.runs.folders import find_run
    from skillopt_es.sessions.evaluation import scorable_run

    folder = find_run(run, directory)
    found = scorable_run(folder)
    place = found.run.config.env.skill_init
    if not place:
        raise OutputRefused(
            f"{folder.name} began with an empty skill, so there is no file to replace",
            hint=f"`skillopt-es export {folder.name} SKILL.md` writes the best skill to a new one",
        )
    path = found.run.config.path(place)
    home, name = (path, path.name) if path.is_dir() else (path.parent, path.name)
    if undo:
        files = take_back(home, name)
        if as_json:
            print_json({"run": folder.name, "put_back": [*files]})
        else:
            click.echo(f"put back: {', '.join(str(home / each) for each in files)}")
        return
    best = found.skill("best")
    after = {each: digest_of(text.encode()) for each, text in sorted(best.files.items())}
    adoption = Adoption(run=folder.name, skill=best.hash, before={}, after=after)
    expected = _as_they_are(home, best) if force else found.skill("initial").files
    done = adopt(home, name, adoption, best.files, first=expected)
    if as_json:
        print_json({"run": folder.name, "skill": best.hash, "files": [*sorted(best.files)], "changed": done})
    elif done:
        click.echo(f"adopted: {', '.join(str(home / each) for each in sorted(best.files))}")
        click.echo(f"  `skillopt-es adopt {folder.name} --undo` puts back what was there")
    else:
        click.echo(f"nothing to do: {path} is the best skill of {folder.name} already")


def _as_they_are(home: Path, skill: SkillTree) -> dict[str, str]:
    """The files that are there, so that none of them counts as changed."""
    return {each: (home / each).read_text(encoding="utf-8") for each in skill.files if (home / each).is_file()}
