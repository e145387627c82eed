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

from attrs import field, frozen

from skillopt_es.events.values import Json
from skillopt_es.ports import (
    AskOptions,
    CallFailed,
    ChatReply,
    DataSettings,
    EnvironmentSettings,
    Episode,
    FailureKind,
    Message,
    Try,
)

_ENVIRONMENTS = "skillopt_es.environments"


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
        return cls(error.kind, error.message, error.status, error.request_id, error.hint, error.latency_ms, error.tries,
                   error.perhaps_request, error.closed)  # fmt: skip

    def error(self) -> CallFailed:
        """The error again."""
        return CallFailed(
            self.kind,
            self.message,
            status=self.status,
            request_id=self.request_id,
            hint=self.hint,
            latency_ms=self.latency_ms,
            tries=self.tries,
            perhaps_request=self.perhaps_request,
            closed=self.closed,
        )


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


Told = Unit | Answered | Abandon


# --- from a worker ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Question:
    """What the attempt asks the target; `number` counts its questions. One with a `schema` is to the judge."""

    number: int
    messages: tuple[Message, ...]
    options: AskOptions
    schema: Mapping[str, Json] | None = None


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
Said = Question | End


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


@frozen(kw_only=True)
class Pack:
    """The data's own files, for workers that do not see them where the writer does."""

    files: Mapping[str, bytes] = field(repr=False)
    is_folder: bool


def place_of(software: str, settings: EnvironmentSettings, digests: Mapping[str, str]) -> Place:
    """The place as the writer's process has it."""
    return Place(software=software, code=code_digest(settings.name), settings=settings, digests=digests)


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
        sources = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
        for source in sorted(sources):
            found.update(source.name.encode() + b"\0" + source.read_bytes())
    return found.hexdigest()


def entry_of(name: str) -> EntryPoint:
    """The environment that is installed under a name; raises StopIteration where there is none."""
    return next(point for point in entry_points(group=_ENVIRONMENTS) if point.name == name)
