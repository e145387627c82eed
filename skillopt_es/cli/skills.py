"""The skill that `export` and `install` take: which one of a run, its name, and the folder that it is written to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from skillopt_es.cli.options import moment_option, which_option
from skillopt_es.cli.terminal import print_note
from skillopt_es.deploy.files import write_built
from skillopt_es.deploy.folder import SkillFolder
from skillopt_es.runs.lookup import Moment

if TYPE_CHECKING:
    from skillopt_es.deploy.facts import Facts, Which
    from skillopt_es.events.log import EventLog
    from skillopt_es.events.values import SkillTree


F = TypeVar("F", bound=Callable[..., object])


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
        which_option("best", "current", "certified", "initial"),
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
    """Writes a skill into its folder, and says what the user should know of it; the paths."""
    written = write_built(folder, built, force=force)
    tell(built)
    return written


def tell(built: SkillFolder) -> None:
    """What the user should know of it, on stderr."""
    for note in built.notes:
        print_note(note)
