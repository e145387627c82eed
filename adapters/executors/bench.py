"""
A workbench: one open environment in a process elsewhere, at which one attempt after another is made.

An attempt travels as a value: a lease (its place in the run, a digest of what is to be done, and which try of it this
is), an item's id, the skill and a seed. It is a conversation: the worker says what the attempt asks the target, the
writer answers, until the worker says what came of it. A worker has no key, asks no model and decides nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Unpack

from attrs import evolve, field, frozen

from skillopt_es.errors import SkillOptError
from skillopt_es.events.values import Json, SkillTree
from skillopt_es.ports import (
    AskOptions,
    CallFailed,
    ChatReply,
    DataSettings,
    Environment,
    EnvironmentSettings,
    Episode,
    FailureKind,
    Item,
    Message,
    Try,
)

_ENVIRONMENTS = "skillopt_es.environments"
_US = "skillopt-es"


# --- what travels ----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Lease:
    """Who may work on what: a place in the run, a digest of the work, and which try of it this is."""

    slot: str
    digest: str
    attempt: int


@frozen(kw_only=True)
class Unit:
    """One attempt to be made; its skill travels beside it."""

    lease: Lease
    item: str
    seed: int


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


@frozen(kw_only=True)
class Broke:
    """The environment itself raised something: an error of ours with its hint, any other by its name."""

    message: str
    hint: str = ""
    ours: bool = False


@frozen
class Thrown:
    """The question had no answer, for a reason of the writer's own; `stops` as NotStarted does."""

    stops: bool


Said = Question | Finished | Escaped | FailedCall | Broke
Answer = ChatReply | FailedCall | Thrown


@frozen
class Report:
    """What a worker says next, about the attempt that it holds the lease of."""

    lease: Lease
    said: tuple[Said, ...]


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


def unit_digest(item: str, skill: str, seed: int, place: Place) -> str:
    """What tells one piece of work from another: item, skill, seed, the environment's settings and its data."""
    words = [
        item,
        skill,
        str(seed),
        place.software,
        place.code,
        repr(place.settings),
        repr(sorted(place.digests.items())),
    ]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def code_digest(name: str) -> str:
    """The digest of an environment's code as it is installed here, and of what it leans on."""
    opener = _entry(name).load()
    modules = {str(getattr(opener, "__module__", "")), "skillopt_es.ports", "skillopt_es.adapters.environments"}
    found = hashlib.sha256()
    for module in sorted(modules):
        file = Path(str(importlib.import_module(module).__file__))
        sources = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
        for source in sorted(sources):
            found.update(source.name.encode() + b"\0" + source.read_bytes())
    return found.hexdigest()


def _entry(name: str) -> EntryPoint:
    return next(point for point in entry_points(group=_ENVIRONMENTS) if point.name == name)


# --- the worker's side -----------------------------------------------------------------------------------------------


class Bench:
    """One environment, open; one attempt at a time."""

    def __init__(self, place: Place, pack: Pack | None) -> None:
        self._place, self._pack = place, pack
        self._environment: Environment | None = None
        self._items: Mapping[str, Item] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._talk: _Talk | None = None

    def open(self) -> str:
        """Opens the environment and loads its data; why it must not be used, where that is so."""
        return self._other_software() or self._open()

    async def begin(self, unit: Unit, skill: SkillTree) -> Report:
        """Begins an attempt, in place of any other; what it says first."""
        await self.abandon()
        assert self._environment is not None
        self._talk = _Talk(self._environment, self._items[unit.item], unit, skill)
        return await self._talk.next()

    async def answer(self, lease: Lease, number: int, answer: Answer) -> Report:
        """Hands on an answer; what the attempt says next. Of another attempt's nothing is said."""
        if self._talk is None or self._talk.unit.lease != lease:
            return Report(lease, ())
        self._talk.hear(number, answer)
        return await self._talk.next()

    async def abandon(self) -> None:
        """Ends an attempt that nobody waits for."""
        if self._talk is not None:
            await self._talk.end()
            self._talk = None

    async def close(self) -> None:
        """Gives back what the environment has."""
        await self.abandon()
        if self._environment is not None:
            await self._environment.aclose()
        if self._folder is not None:
            self._folder.cleanup()

    def _other_software(self) -> str:
        try:
            here = f"{_US} {version(_US)}"
        except PackageNotFoundError:
            return f"it has no {_US}"
        if here != self._place.software:
            return f"it has {here}, and the run {self._place.software}"
        try:
            code = code_digest(self._place.settings.name)
        except StopIteration:
            return f"it has no environment {self._place.settings.name}"
        return "" if code == self._place.code else f"its code of the environment {self._place.settings.name} differs"

    def _open(self) -> str:
        settings = self._settings()
        try:
            self._environment = _entry(settings.name).load()(settings)
            assert self._environment is not None
            splits = self._environment.load()
        except SkillOptError as error:
            return f"it cannot open the environment: {error.message}"
        for split, digest in self._place.digests.items():
            if splits.digests.get(split) != digest:
                return f"its {split} items are not those of the run"
        self._items = {item.id: item for part in (splits.train, splits.val, splits.test) for item in part}
        return ""

    def _settings(self) -> EnvironmentSettings:
        """The environment's settings; where the data is not where the writer has it, with the files that came along."""
        settings, pack = self._place.settings, self._pack
        data = settings.data
        if pack is None or Path(data.data_path or data.split_dir).exists():
            return settings
        self._folder = tempfile.TemporaryDirectory(prefix="skillopt-data-")
        there = Path(self._folder.name)
        for name, content in pack.files.items():
            file = there / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        if pack.is_folder:
            return evolve(settings, data=evolve(data, split_dir=str(there)))
        return evolve(settings, data=evolve(data, data_path=str(there / next(iter(pack.files)))))


class _NoAnswer(Exception):
    """Raised in an attempt in place of what the writer's process raised; `number` is the question's."""

    def __init__(self, number: int) -> None:
        super().__init__("there is no answer")
        self.number = number


class _NoAnswerStop(BaseException):
    """The same where the run is stopping: no `except Exception` of an environment may turn it into an outcome."""

    def __init__(self, number: int) -> None:
        super().__init__("the run is stopping")
        self.number = number


@frozen
class _Asks:
    """How an attempt asks: the target by calling it, and the judge."""

    talk: _Talk

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        return await self.talk.ask(messages, options)

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        return await self.talk.ask(messages, {"max_tokens": max_tokens}, schema)


class _Talk:
    """One attempt and what it says; questions are answered in any order."""

    def __init__(self, environment: Environment, item: Item, unit: Unit, skill: SkillTree) -> None:
        self.unit = unit
        self._said: list[Said] = []
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._count = 0
        self._raised: dict[int, CallFailed] = {}
        self._more = asyncio.Event()
        self._task = asyncio.create_task(self._attempt(environment, item, skill))

    async def next(self) -> Report:
        """What is said next: at once where another question waits for its answer, and else once there is something."""
        if not self._said and not self._asked and not self._task.done():
            await self._more.wait()
        else:
            await asyncio.sleep(0)
        self._more.clear()
        said, self._said = tuple(self._said), []
        return Report(self.unit.lease, said)

    def hear(self, number: int, answer: Answer) -> None:
        """An answer from the writer."""
        waiting = self._asked.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def end(self) -> None:
        """Breaks it off."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _attempt(self, environment: Environment, item: Item, skill: SkillTree) -> None:
        try:
            self._say(Finished(await environment.attempt(item, skill, _Asks(self), seed=self.unit.seed)))
        except (_NoAnswer, _NoAnswerStop) as error:
            self._say(Escaped(error.number))
        except CallFailed as error:
            numbers = [number for number, raised in self._raised.items() if raised is error]
            self._say(Escaped(numbers[0]) if numbers else FailedCall.of(error))
        except SkillOptError as error:
            self._say(Broke(message=error.message, hint=error.hint, ours=True))
        except Exception as error:  # noqa: BLE001 -- told to the writer, which raises it
            self._say(Broke(message=f"{type(error).__name__}: {error}"))

    async def ask(
        self, messages: Sequence[Message], options: AskOptions, schema: Mapping[str, Json] | None = None
    ) -> ChatReply:
        """The answer of the target, or of the judge, which the writer asks."""
        self._count += 1
        number = self._count
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        self._say(Question(number=number, messages=tuple(messages), options=options, schema=schema))
        answer = await future
        if isinstance(answer, ChatReply):
            return answer
        if isinstance(answer, Thrown):
            raise (_NoAnswerStop if answer.stops else _NoAnswer)(number)
        self._raised[number] = answer.error()
        raise self._raised[number]

    def _say(self, said: Said) -> None:
        self._said.append(said)
        self._more.set()
