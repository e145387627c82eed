"""
What travels between the writer and a worker elsewhere: all of it values, so it can be done by another process.

An attempt is a lease (its place in the run, a digest of what is to be done, and which try of it this is), an item's id,
the skill and a seed. Then both sides speak: the worker says what the attempt asks the target, the writer answers, until
the worker says what came of it.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

from attrs import asdict, field, fields, frozen

from skillopt_es.events.values import Json
from skillopt_es.ports import (
    AskOptions,
    CallFailed,
    ChatReply,
    ChatRequest,
    DataSettings,
    EnvironmentSettings,
    Episode,
    FailureKind,
    Message,
    TravellingAgent,
    Try,
    Workplace,
)

_ENVIRONMENTS = "skillopt_es.environments"
_CODE = (".md", ".py", ".yaml")  # what a benchmark says to the target is text beside its modules


class LineClosed(Exception):
    """Nobody is at the other end of a line any more."""


class Line(Protocol):
    """A connection between the writer and one worker; what is sent arrives in order, or the line is closed."""

    def send(self, value: object) -> None:
        """Sends a value; on a closed line it is lost, and `hear` says so."""
        ...

    async def hear(self) -> object:
        """The next value from the other end; raises LineClosed."""
        ...

    def close(self) -> None:
        """Hangs up."""
        ...


# --- from the writer -------------------------------------------------------------------------------------------------


@frozen
class Lease:
    """Who may work on what: a place in the run, a digest of the work, and which try of it this is."""

    slot: str
    digest: str
    attempt: int


@frozen
class Unit:
    """One attempt to be made, under a skill that the worker has been given already."""

    lease: Lease
    item: str
    seed: int
    skill: str


@frozen
class Thrown:
    """The question had no answer, for a reason of the writer's own; `stops` as NotStarted does."""

    stops: bool


@frozen
class FailedCall:
    """A `CallFailed` as a value."""

    kind: FailureKind
    message: str
    status: int | None = None
    request_id: str = ""
    hint: str = ""
    latency_ms: int = 0
    tries: tuple[Try, ...] = ()
    perhaps_request: bool = False
    closed: bool = False

    @classmethod
    def of(cls, error: CallFailed) -> FailedCall:
        """Everything that an error says."""
        return cls(**{each.name: getattr(error, each.name) for each in fields(cls)})

    def error(self) -> CallFailed:
        """The error again."""
        return CallFailed(**asdict(self, recurse=False))


Answer = ChatReply | FailedCall | Thrown


@frozen
class Answered:
    """The answer to one of the attempt's questions, by its number."""

    lease: Lease
    number: int
    answer: Answer


@frozen
class Abandon:
    """Nobody waits for the attempt any more; the worker says when it has let go of it."""


@frozen
class Errand:
    """
    What the target's agent is asked, to be done by the worker itself; `number` is of its own count.

    The skill that the agent works under is named, for it is there already.
    """

    lease: Lease
    number: int
    request: ChatRequest
    skill: str


Told = Unit | Answered | Errand | Abandon


# --- from a worker ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Question:
    """What the attempt asks the target; `number` counts its questions. One with a `schema` is to the judge."""

    number: int
    messages: tuple[Message, ...]
    options: AskOptions
    schema: Mapping[str, Json] | None = None


@frozen
class OwnQuestion:
    """What an agent on an errand asks its model itself; `number` is of the questions' count."""

    errand: int
    number: int
    request: ChatRequest


@frozen
class Ran:
    """What came of an errand: the agent's answer, why there is none, or the question whose answer ended it."""

    errand: int
    result: ChatReply | FailedCall | Escaped | Broke


@frozen
class Finished:
    """The attempt's own result."""

    episode: Episode


@frozen
class Escaped:
    """What the answer to this question raised came out of the attempt."""

    number: int


@frozen(kw_only=True)
class Broke:
    """The environment itself raised something: an error of ours with its hint, any other by its name."""

    message: str
    hint: str = ""
    ours: bool = False


End = Finished | Escaped | FailedCall | Broke
Said = Question | OwnQuestion | Ran | End


@frozen
class Report:
    """What a worker says about the attempt that it holds the lease of."""

    lease: Lease
    said: Said


@frozen
class LetGo:
    """The attempt that was to be abandoned is over."""


# --- the place -------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Place:
    """What a worker needs to open the environment, and what must be the same there as in the writer's process."""

    software: str
    code: str
    settings: EnvironmentSettings
    digests: Mapping[str, str]
    agent: TravellingAgent | None = None
    agent_code: str = ""


@frozen(kw_only=True)
class Pack:
    """The data's own files, for workers that do not see them where the writer does."""

    files: Mapping[str, bytes] = field(repr=False)
    is_folder: bool


def place_of(workplace: Workplace) -> Place:
    """The place as the writer's process has it."""
    return Place(
        software=workplace.software,
        code=code_digest(workplace.settings.name),
        settings=workplace.settings,
        digests=workplace.digests,
        agent=workplace.agent,
        agent_code="" if workplace.agent is None else agent_digest(workplace.agent),
    )


def pack_of(data: DataSettings) -> Pack | None:
    """The files of the data; None where an environment has none."""
    path = Path(data.data_path or data.split_dir)
    if not (data.data_path or data.split_dir) or not path.exists():
        return None
    if path.is_file():
        return Pack(files={path.name: path.read_bytes()}, is_folder=False)
    files = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
    return Pack(files=files, is_folder=True)


def place_digest(place: Place) -> str:
    """What tells one place from another: its software, the environment's code and settings, and its data."""
    words = [place.software, place.code, repr(place.settings), repr(sorted(place.digests.items()))]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def unit_digest(item: str, skill: str, seed: int, place: str) -> str:
    """What tells one piece of work from another: item, skill, seed, and the digest of the place."""
    return hashlib.sha256("\0".join((item, skill, str(seed), place)).encode()).hexdigest()


def code_digest(name: str) -> str:
    """The digest of an environment's code as it is installed here, and of what it leans on."""
    opener = entry_of(name).load()
    modules = {str(getattr(opener, "__module__", "")), "skillopt_es.ports", "skillopt_es.adapters.environments"}
    found = hashlib.sha256()
    for module in sorted(modules):
        file = Path(str(importlib.import_module(module).__file__))
        beside = file.parent.rglob("*") if file.name == "__init__.py" else [file]
        for source in sorted(each for each in beside if each.suffix in _CODE):
            found.update(source.name.encode() + b"\0" + source.read_bytes())
    return found.hexdigest()


def agent_digest(agent: TravellingAgent) -> str:
    """The digest of the files that an agent's command or function names, as they are here."""
    assert agent.settings.agent is not None
    named = [*agent.settings.agent.argv, agent.settings.backend.partition(":")[2].rpartition(":")[0]]
    files = [Path(agent.settings.agent.folder) / name for name in named if name]
    found = hashlib.sha256()
    for file in files:
        if file.is_file():
            found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def entry_of(name: str) -> EntryPoint:
    """The environment that is installed under a name; raises StopIteration where there is none."""
    return next(point for point in entry_points(group=_ENVIRONMENTS) if point.name == name)
