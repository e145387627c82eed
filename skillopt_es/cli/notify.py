"""`--notify`: tell somebody outside when a run or a sweep has paused or ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from attrs import define

from skillopt_es.cli.terminal import print_warning
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.values import Json
from skillopt_es.ports import Notifier
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.words import metric_words
from skillopt_es.projections.deciding import metric_in

if TYPE_CHECKING:
    from skillopt_es.projections.state import AnyState

F = TypeVar("F", bound=Callable[..., object])


def notify_option(command: F) -> F:
    """`--notify`, as often as somebody is to be told."""
    return click.option(
        "--notify",
        multiple=True,
        metavar="WHAT",
        help="Tell somebody at a pause or the end: a command (JSON on its standard input), a webhook's address, or "
        "env:NAME for a variable that has one of these.",
    )(command)


@define
class Ending:
    """How a run or a sweep ended, for whoever is to be told."""

    status: str = "failed"
    reason: str = ""
    message: str = ""
    more: Mapping[str, Json] | None = None


@contextmanager
def notifying(ways: Sequence[str], kind: str, name: str, folder: str) -> Iterator[Ending]:
    """Tells how the work inside has ended, in whichever way it ends; raises ConfigError before for a wrong `ways`."""
    from skillopt_es.sessions.opening import open_notifier

    notifiers = [open_notifier(way, os.environ) for way in ways]
    ending = Ending()
    try:
        yield ending
    except SkillOptError as error:
        ending.message = ending.message or error.message
        raise
    finally:
        _tell(notifiers, notice_of(ending, kind, name, folder))


def notice_of(ending: Ending, kind: str, name: str, folder: str) -> dict[str, Json]:
    """What is told; `text` is the whole of it in a sentence, which chat services show."""
    why = f" ({ending.reason})" if ending.reason else ""
    said = f": {ending.message}" if ending.message else ""
    notice: dict[str, Json] = {
        "text": f"skillopt-es: {kind} {name} {ending.status}{why}{said}",
        kind: name,
        "folder": folder,
        "status": ending.status,
        "reason": ending.reason or None,
        "message": ending.message or None,
    }
    return {**notice, **(ending.more or {})}


def told_at_end(ways: Sequence[str], folder: Path) -> AbstractContextManager[Ending]:
    """The same for a run in a folder."""
    return notifying(ways, "run", folder.name, str(folder))


def note_ending(ending: Ending, state: AnyState) -> None:
    """How a run's session has ended, from its last state."""
    ending.status = state.status
    if state.paused is not None:
        ending.reason, ending.message = state.paused.reason, state.paused.message
    else:
        metric = metric_words(metric_in(state.started, state.overrides))
        ending.message = f"best {metric} {shown_value(state.best.value)} on validation"
    ending.more = {"best": state.best.value, "steps": state.steps_done}


def _tell(notifiers: Sequence[Notifier], notice: Mapping[str, Json]) -> None:
    for notifier in notifiers:
        why = notifier.tell(notice)
        if why:
            print_warning(f"--notify: {why}")
