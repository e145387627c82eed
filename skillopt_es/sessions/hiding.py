"""What holds answers on this machine, and keeping it from models that are programs here and could read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from skillopt_es.config import RunConfig
from skillopt_es.config.backends import kind_of
from skillopt_es.config.dotenv import dotenv_files
from skillopt_es.engine.work import Work
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.events.plain import real_path
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import Json, Role
from skillopt_es.ports import Answers, ChatModel, Environment, Isolated, Onlooker, seen_by_code
from skillopt_es.projections.state import AnyState


async def hide_answers(
    models: Mapping[Role, ChatModel], config: RunConfig, run: Path, *, warn: Callable[[str], None]
) -> tuple[str, ...]:
    """Hides them from all models that could read them; warns of those that may. Raises ConfigError if it cannot."""
    notes = []
    for role, model in models.items():
        if not isinstance(model, Onlooker):
            continue
        own = config.role(role)
        if own.agent_answers == "visible":
            notes.append(
                f"the {role} ({own.backend}) can read the data with its answers, as model.agent_answers is visible: "
                "no score says anything unless it did not"
            )
            continue
        problem = await model.hide(answers_of(config, run))
        if problem:
            raise ConfigError(
                f"the answers cannot be hidden from the {role} ({own.backend}), which can read files here: {problem}",
                hint="run on a Linux that allows user name spaces, keep data and runs apart from what the agent needs, "
                "or set model.agent_answers: visible for an agent that will not look",
            )
    for note in notes:
        warn(note)
    return tuple(notes)


async def keys_within_reach(models: Mapping[Role, ChatModel], config: RunConfig) -> tuple[tuple[Role, str], ...]:
    """Which models are programs that can reach keys of the user's on this machine, each with a sentence."""
    said = [(role, await model.within_reach()) for role, model in models.items() if isinstance(model, Isolated)]
    return tuple((role, f"the {role} ({config.role(role).backend}) {what}") for role, what in said if what)


def check_walls(environment: Environment, config: RunConfig, run: Path) -> None:
    """Raises ConfigError where answers lie in what code behind an environment's walls reads."""
    problem = seen_by_code(environment, answers_of(config, run))
    if problem:
        raise ConfigError(
            f"answers cannot be kept from code behind walls: {problem}",
            hint="keep config, data and runs in a folder of their own, or set env.sandbox: unconfined, which lets that "
            "code do whatever you can do",
        )


def answers_of(config: RunConfig, run: Path) -> Answers:
    """The data, this run and others; around them the folders of config and data; the repositories that those are in."""
    home, runs = real_path(config.folder), run.resolve().parent
    named = [real_path(place) for place in _data(config)]
    data = [place for place in named if not home.is_relative_to(place)]
    logs = [log.parent for log in runs.glob(f"*/{LOG_FILE}")]
    # Around the root of the disk there is nothing.
    above = [place for place in named if home.is_relative_to(place) and place.parent != place]
    around = dict.fromkeys([home, runs, *above, *(place.parent for place in data)])
    kept = [found for folder in around for found in _repositories(folder)]
    return Answers(places=(*data, run.resolve(), *logs, *kept), around=tuple(around))


def _data(config: RunConfig) -> Iterator[Path]:
    """Files and folders that the environment's keys name."""
    env = config.env
    for value in (env.data_path, env.split_dir, *env.options.values()):
        for text in _texts(value):
            try:
                place = config.path(text)
                there = place.exists()
            except (OSError, ValueError):  # a text that is no path
                continue
            if there:
                yield place


def _texts(value: Json) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each.strip():
            yield each


def _repositories(folder: Path) -> Iterator[Path]:
    """The store of the git repository that a folder is in: it has the files, too, and earlier ones."""
    found = next((each / ".git" for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    if found is None:
        return
    yield found
    if found.is_file():  # a further working tree, whose store is elsewhere: …/.git/worktrees/NAME
        store = (found.parent / found.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
        if store.parent.name == "worktrees":
            yield store.parent.parent


class CoveredKeys:
    """
    An observer that says when a `.env` file was replaced while a program ran that it is covered for.

    What covers a file goes with that file, so the new one could be read.
    """

    def __init__(self, files: Sequence[Path], warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._seen = {file: _identity(file) for file in map(real_path, files)}

    def planned(self, work: Work, state: AnyState) -> None:
        """A task is about to begin: that says nothing of files."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """An event is durable: that says nothing of files."""

    def called(self, row: CallRow) -> None:
        """An attempt has ended, or another call."""
        for file, before in self._seen.items():
            now = _identity(file)
            if now != before:
                self._seen[file] = now
                if now is not None:
                    self._warn(f"{file} was replaced: an isolated agent that ran at that moment could read it")


def covered_keys(
    models: Mapping[Role, ChatModel], config: RunConfig, warn: Callable[[str], None]
) -> tuple[CoveredKeys, ...]:
    """The observer, where a program on this machine is isolated."""
    programs = [
        role
        for role, model in models.items()
        if isinstance(model, Isolated)
        and config.role(role).agent_isolated
        and kind_of(config.role(role).backend) not in ("http", "python")
    ]
    return (CoveredKeys(dotenv_files(config), warn),) if programs else ()


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:  # it is not there, or cannot be read from here either
        return None
    return found.st_dev, found.st_ino
