"""The skill that `export` and `install` take: which one of a run, its name, and the folder that it is written to."""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from skillopt_es.cli.files import refuse_existing, write_content
from skillopt_es.cli.options import moment_option
from skillopt_es.cli.terminal import print_note
from skillopt_es.deploy.check import provenance_in
from skillopt_es.deploy.folder import SkillFolder
from skillopt_es.deploy.provenance import FILE
from skillopt_es.errors import DataError
from skillopt_es.runs.lookup import Moment

if TYPE_CHECKING:
    from skillopt_es.deploy.facts import Facts, Which
    from skillopt_es.events.log import EventLog
    from skillopt_es.events.values import SkillTree


F = TypeVar("F", bound=Callable[..., object])
_WHICH = ("best", "current", "certified", "initial")


@frozen(kw_only=True)
class SkillChoice:
    """A skill of a run, and the name and description that it is given."""

    which: Which = "best"
    at: Moment | None = None
    name: str | None = None
    description: str | None = None

    @property
    def named(self) -> bool:
        """Whether the user says how agents are to know it."""
        return self.name is not None or self.description is not None


def skill_options(command: F) -> F:
    """`--which`, `--at`, `--name` and `--description`, as one argument `choice`."""

    @wraps(command)
    def chosen(
        *args: object,
        which: Which,
        at: Moment | None,
        name: str | None,
        description: str | None,
        **others: Any,  # noqa: ANN401 - whatever the command takes beside them
    ) -> object:
        return command(*args, choice=SkillChoice(which=which, at=at, name=name, description=description), **others)

    options = (
        click.option("--which", type=click.Choice(_WHICH), default="best", show_default=True, help="Which skill."),
        moment_option("--at", "at", "The skill as it was at the end of this step or epoch, or after this event."),
        click.option("--name", help="What agents call the skill: lower-case letters, digits and hyphens."),
        click.option("--description", help="What the skill does and when to use it: agents choose skills by this."),
    )
    for option in reversed(options):
        chosen = option(chosen)
    return chosen  # type: ignore[return-value]


def chosen_skill(log: EventLog, choice: SkillChoice) -> tuple[SkillTree, Facts]:
    """The skill, and what the log says about it."""
    from skillopt_es.deploy.evidence import facts_of
    from skillopt_es.runs.lookup import seq_of

    return facts_of(log, choice.which, None if choice.at is None else seq_of(log, choice.at))


def refuse_names(choice: SkillChoice) -> None:
    """Raises UsageError for a name or a description that would be for several skills."""
    if choice.named:
        raise click.UsageError("--name and --description are for one skill; a folder's skills have their own")


def write_folder(folder: Path, built: SkillFolder, *, force: bool) -> list[Path]:
    """Writes a skill into its folder; the paths. What an earlier export wrote there and this one does not, goes."""
    paths = {path: folder / path for path in built.files}
    for path in paths.values():
        refuse_existing(path, force=force)
    _remove_files(folder, keep=set(paths))
    for name, path in paths.items():
        write_content(path, built.files[name])
    tell(built)
    return list(paths.values())


def remove_export(folder: Path) -> None:
    """Takes away what an export wrote into a folder, and the folder itself where nothing else is in it."""
    _remove_files(folder, keep=set())
    (folder / FILE).unlink(missing_ok=True)
    for each in (*sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True), folder):
        with suppress(OSError):  # something is in it
            each.rmdir()


def _remove_files(folder: Path, *, keep: Set[str]) -> None:
    """Takes away the files that an earlier export wrote, but for those to `keep`."""
    # Where no export of ours can be read, nothing there is ours to remove.
    with suppress(DataError):
        earlier = provenance_in(folder).folder.files
        for stale in {file.path for file in earlier} - keep:
            # The document may have been edited: what lies outside the folder is never removed.
            if ".." not in Path(stale).parts and not Path(stale).is_absolute():
                (folder / stale).unlink(missing_ok=True)


def tell(built: SkillFolder) -> None:
    """What the user should know of it, on stderr."""
    for note in built.notes:
        print_note(note)
