"""
A workbench: one open environment in a process elsewhere, at which one attempt after another is made.

A worker has no key, asks no model and decides nothing: it says what its attempt asks, and goes on with the answer.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Unpack

from attrs import evolve, frozen

from skillopt_es.adapters.executors.travels import (
    Abandon,
    Answer,
    Answered,
    Broke,
    Errand,
    Escaped,
    FailedCall,
    Finished,
    LetGo,
    Line,
    LineClosed,
    OwnQuestion,
    Pack,
    Place,
    Question,
    Ran,
    Report,
    Said,
    Thrown,
    Unit,
    agent_digest,
    code_digest,
    entry_of,
)
from skillopt_es.errors import SettingRefused, SkillOptError
from skillopt_es.events.values import Json, SkillTree
from skillopt_es.ports import (
    MODELS,
    AskOptions,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Environment,
    EnvironmentSettings,
    Fronting,
    Item,
    Message,
    OpenModel,
)

_US = "skillopt-es"


class Bench:
    """One environment, open; one attempt at a time."""

    def __init__(self, place: Place, pack: Pack | None) -> None:
        self._place, self._pack = place, pack
        self._environment: Environment | None = None
        self._items: Mapping[str, Item] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._skills: dict[str, SkillTree] = {}
        self._agent: ChatModel | None = None
        self._talk: _Talk | None = None

    def open(self) -> str:
        """Opens the environment and loads its data; why it must not be used, where that is so."""
        return self._other_software() or self._open() or self._open_agent()

    def learn(self, skill: SkillTree) -> None:
        """A skill that attempts will be made under."""
        self._skills[skill.hash] = skill

    async def serve(self, line: Line) -> None:
        """Makes the attempts that the writer asks for, until the line is closed."""
        try:
            while True:
                match await line.hear():
                    case Unit() as unit:
                        await self._abandon()
                        self._begin(unit, line)
                    case Answered(lease, number, answer) if self._talk is not None and self._talk.unit.lease == lease:
                        self._talk.hear(number, answer)
                    case Errand(lease) as errand if self._talk is not None and self._talk.unit.lease == lease:
                        self._run(errand, self._talk)
                    case Abandon():
                        await self._abandon()
                        line.send(LetGo())
        except LineClosed:
            await self._abandon()

    def _begin(self, unit: Unit, line: Line) -> None:
        assert self._environment is not None

        def say(said: Said) -> None:
            line.send(Report(unit.lease, said))

        self._talk = _Talk(self._environment, self._items[unit.item], unit, self._skills[unit.skill], say)

    def _run(self, errand: Errand, talk: _Talk) -> None:
        assert self._agent is not None
        skill = self._skills[errand.skill] if errand.skill else None
        talk.run(self._agent, errand.number, evolve(errand.request, skill=skill))

    async def _abandon(self) -> None:
        """Ends an attempt that nobody waits for."""
        if self._talk is not None:
            await self._talk.end()
            self._talk = None

    async def close(self) -> None:
        """Gives back what the environment has."""
        await self._abandon()
        if self._environment is not None:
            await self._environment.aclose()
        if self._agent is not None:
            await self._agent.aclose()
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
            self._environment = entry_of(settings.name).load()(settings)
            assert self._environment is not None
            splits = self._environment.load()
        except SkillOptError as error:
            return f"it cannot open the environment: {error.message}"
        for split, digest in self._place.digests.items():
            if splits.digests.get(split) != digest:
                return f"its {split} items are not those of the run"
        self._items = {item.id: item for part in (splits.train, splits.val, splits.test) for item in part}
        return ""

    def _open_agent(self) -> str:
        """Opens the target's agent, where it is to work here."""
        agent = self._place.agent
        if agent is None:
            return ""
        if agent_digest(agent) != self._place.agent_code:
            return f"its files of the agent {agent.settings.backend} differ"
        try:
            opener: OpenModel = next(iter(entry_points(group=MODELS, name=agent.kind))).load()
            opened = opener(agent.settings, os.environ)
        except (SkillOptError, SettingRefused) as error:
            return f"it cannot open the agent: {error.message}"
        if agent.gateway:
            from skillopt_es.adapters.agents.gateway import on_worker  # noqa: PLC0415 -- a server, for few runs

            opened = on_worker(opened, agent.settings.model)
        self._agent = opened
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


@frozen
class _OwnCalls:
    """Where the calls of an agent on an errand go: to the writer."""

    talk: _Talk
    errand: int

    async def ask(self, request: ChatRequest) -> ChatReply:
        return await self.talk.ask_own(self.errand, request)

    def over(self, slot: str, *, lost: bool = False) -> None:
        """The writer knows when that is."""


class _Talk:
    """One attempt and what it says; questions are answered in any order."""

    def __init__(
        self, environment: Environment, item: Item, unit: Unit, skill: SkillTree, say: Callable[[Said], None]
    ) -> None:
        self.unit = unit
        self._say = say
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._count = 0
        self._raised: dict[int, CallFailed] = {}
        self._task = asyncio.create_task(self._attempt(environment, item, skill))
        self._errands: set[asyncio.Task[None]] = set()

    def hear(self, number: int, answer: Answer) -> None:
        """An answer from the writer."""
        waiting = self._asked.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def end(self) -> None:
        """Breaks it off."""
        tasks = [self._task, *self._errands]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def run(self, agent: ChatModel, number: int, request: ChatRequest) -> None:
        """Has the target's agent do its work here."""
        if isinstance(agent, Fronting):
            agent.route(_OwnCalls(self, number))
        task = asyncio.create_task(self._errand(agent, number, request))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _errand(self, agent: ChatModel, number: int, request: ChatRequest) -> None:
        result: ChatReply | FailedCall | Escaped | Broke
        try:
            result = await agent.complete(request)
        except (_NoAnswer, _NoAnswerStop) as error:
            result = Escaped(error.number)
        except CallFailed as error:
            result = self._failed(error)
        except SkillOptError as error:
            result = Broke(message=error.message, hint=error.hint, ours=True)
        except Exception as error:  # noqa: BLE001 -- told to the writer, which raises it
            result = Broke(message=f"{type(error).__name__}: {error}")
        self._say(Ran(number, result))

    async def _attempt(self, environment: Environment, item: Item, skill: SkillTree) -> None:
        try:
            self._say(Finished(await environment.attempt(item, skill, _Asks(self), seed=self.unit.seed)))
        except (_NoAnswer, _NoAnswerStop) as error:
            self._say(Escaped(error.number))
        except CallFailed as error:
            self._say(self._failed(error))
        except SkillOptError as error:
            self._say(Broke(message=error.message, hint=error.hint, ours=True))
        except Exception as error:  # noqa: BLE001 -- told to the writer, which raises it
            self._say(Broke(message=f"{type(error).__name__}: {error}"))

    def _failed(self, error: CallFailed) -> Escaped | FailedCall:
        """One of the writer's own errors, or another."""
        numbers = [number for number, raised in self._raised.items() if raised is error]
        return Escaped(numbers[0]) if numbers else FailedCall.of(error)

    async def ask(
        self, messages: Sequence[Message], options: AskOptions, schema: Mapping[str, Json] | None = None
    ) -> ChatReply:
        """The answer of the target, or of the judge, which the writer asks."""
        number = self._next()
        question = Question(number=number, messages=tuple(messages), options=options, schema=schema)
        return await self._answer_to(number, question)

    async def ask_own(self, errand: int, request: ChatRequest) -> ChatReply:
        """The answer to what an agent on an errand asks its model."""
        number = self._next()
        return await self._answer_to(number, OwnQuestion(errand, number, request))

    def _next(self) -> int:
        self._count += 1
        return self._count

    async def _answer_to(self, number: int, question: Said) -> ChatReply:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        self._say(question)
        answer = await future
        if isinstance(answer, ChatReply):
            return answer
        if isinstance(answer, Thrown):
            raise (_NoAnswerStop if answer.stops else _NoAnswer)(number)
        self._raised[number] = answer.error()
        raise self._raised[number]
