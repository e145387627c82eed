"""`adopt`: a run's best skill in the place of the file that it was trained from, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json
from skillopt_es.errors import OutputRefused
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import FileContent, Json, Learned, digest_of


@click.command("adopt")
@run_argument
@click.option("--undo", is_flag=True, help="Put back what was there before.")
@click.option("--force", is_flag=True, help="Even if somebody has changed the file since the run began; it is kept.")
@directory_option
@json_option
def adopt_command(run: str | None, undo: bool, force: bool, directory: Path, as_json: bool) -> None:
    """
    Put the best skill of RUN (default: the newest run) in the place of the file or folder that it was trained from.

    The file has to be as the run read it. Where it is a link to such a file, that file is changed, as in an editor.
    A file that the skill has no more is taken away. What was there is kept with a receipt in `.skillopt-es/adopted`,
    beside a file or in a folder. `install` puts a skill where a coding agent finds it; `adopt` changes your own files,
    for instance after a nightly run.

    \b
    skillopt-es adopt my-run
    skillopt-es adopt my-run --undo
    """
    from skillopt_es.deploy.adopt import Adoption, adopt, gone, is_as, take_back
    from skillopt_es.runs.folders import find_run
    from skillopt_es.sessions.evaluation import scorable_run

    folder = find_run(run, directory)
    found = scorable_run(folder)
    place = found.config.env.skill_init
    if not place:
        what, to = ("no skills", "skills/") if found.skill("best").is_folder else ("an empty skill", "SKILL.md")
        raise OutputRefused(
            f"{folder.name} began with {what}, so there is no file to replace",
            hint=f"`skillopt-es export {folder.name} {to}` writes the best skill to a new one",
        )
    named = Path(found.config.folder, place)
    # What the run read, not what is there now: a file that became a folder, or a link, is not the run's any more.
    if tuple(found.skill("initial").contents) == (named.name,):
        path = real_path(named.parent) / named.name
        home, name = path.parent, path.name
    else:
        path = found.config.path(place)
        home, name = path, path.name
        if not path.is_dir():
            raise OutputRefused(
                f"{path} is not the folder any more that the run began with",
                hint=f"put it back, or write the skill with `skillopt-es export {folder.name} FOLDER/`",
            )
    if undo:
        files = take_back(home, name)
        if as_json:
            print_json({"run": folder.name, "put_back": [*files]})
        else:
            click.echo(f"put back: {', '.join(str(home / each) for each in files)}")
        return
    best = found.skill("best")
    after = {path: digest_of(each.content) for path, each in best.contents.items()}
    adoption = Adoption(run=folder.name, skill=best.hash, before={}, after=after)
    began = [found.skill("initial").contents, *_earlier(folder, found.state.started.learned)]
    first = next((each for each in began if is_as(home, each)), began[0])
    done, went = adopt(home, name, adoption, best.contents, first=first, force=force), gone(best.contents, first=first)
    if as_json:
        written: Json = [*best.contents]
        print_json({"run": folder.name, "skill": best.hash, "files": written, "removed": [*went], "changed": done})
    elif done:
        click.echo(f"adopted: {', '.join(str(home / each) for each in best.contents)}")
        if went:
            click.echo(f"taken away: {', '.join(str(home / each) for each in went)}")
        click.echo(f"  `skillopt-es adopt {folder.name} --undo` puts back what was there")
    else:
        click.echo(f"nothing to do: {path} is the best skill of {folder.name} already")


def _earlier(folder: Path, learned: Learned | None) -> Iterator[Mapping[str, FileContent]]:
    """What the runs that this one continues began with, the last one first, as far as they are still beside it."""
    from skillopt_es.events.catalog import RunStarted
    from skillopt_es.events.errors import LogError
    from skillopt_es.runs.folders import is_run
    from skillopt_es.runs.reading import whole_log

    while learned is not None and is_run(folder.parent / learned.run):
        try:
            with whole_log(folder.parent / learned.run) as log:
                begun = next(iter(log.read(until=1)), None)
                if log.run.run_id != learned.run_id or begun is None or not isinstance(begun.event, RunStarted):
                    return  # another one of that name
        except LogError:
            return
        yield begun.event.skill.contents
        learned = begun.event.learned
