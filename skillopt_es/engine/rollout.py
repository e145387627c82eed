"""Rollouts: items tried under a skill, in parallel, recorded in the order of the plan."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from attrs import evolve, frozen

from skillopt_es.engine.call_records import Exchange
from skillopt_es.engine.calls import Answer, Calls
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.skill_tools import MOST_ROUNDS, Shelf, left_to, opened_words
from skillopt_es.engine.tasks import Rollouts, Unit
from skillopt_es.engine.trajectories import packed
from skillopt_es.events.catalog import Event, RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Failed, Measured, Outcome, text_digest
from skillopt_es.ports import (
    AsyncCall,
    CallFailed,
    ChatReply,
    ChatRequest,
    Environment,
    Episode,
    Executor,
    Item,
    Message,
    Tool,
    TrajectoryRecord,
)

_MOST_DETAIL = 500
_CUT = "Your reply was cut off at the length limit. Answer again, and be brief."


@frozen
class Emission:
    """Events that belong to the log next, with the texts they name."""

    events: list[Event]
    texts: list[str]


@frozen(kw_only=True)
class RolloutPorts:
    """What a rollout needs of the world."""

    environment: Environment
    items: Mapping[str, Item]
    executor: Executor
    calls: Calls
    untrusted: frozenset[str] = frozenset()


async def run_rollouts(task: Rollouts, run: RunData, ports: RolloutPorts) -> AsyncGenerator[Emission, None]:
    """The units' results in plan order, as soon as the next ones are ready."""
    jobs = [rollout_job(unit, run, ports) for unit in task.units]
    async with aclosing(ports.executor.stream(jobs, workers=jobs_at_once(run.config.env.workers))) as stream:
        async for done in stream:
            texts = [text for _, stored in done for text in stored]
            yield Emission([event for event, _ in done], texts)


def jobs_at_once(calls: int) -> int:
    """How many jobs to have open for so many calls in flight: while some wait for a commit, others make calls."""
    return calls * 2


class _Job:
    """One unit, ready to be started."""

    __slots__ = ("_ports", "_run", "_unit")

    def __init__(self, unit: Unit, run: RunData, ports: RolloutPorts) -> None:
        self._unit = unit
        self._run = run
        self._ports = ports

    async def __call__(self) -> tuple[RolloutCompleted, tuple[str, ...]]:
        item = self._ports.items[self._unit.item]
        skill = self._unit.skill
        shelf = Shelf(skill) if skill.is_folder else None
        ask = _Target(self._unit, self._run, self._ports.calls, shelf)
        shown = skill if shelf is None else shelf.shown
        try:
            episode = await self._ports.environment.attempt(item, shown, ask, seed=self._unit.seed)
        except CallFailed as failure:
            return self._event(item, _without_answer(failure), "", ask), ()
        except _StillCutError:
            cut = Failed("truncated", _CUT_TWICE)
            return self._event(item, _ended(cut, cut.kind), "", ask), ()
        if shelf is not None:
            episode = evolve(episode, records=_with_views(episode.records, shelf))
        blob = packed(episode, ask.exchanges)
        return self._event(item, episode, text_digest(blob), ask), (blob,)

    def _event(self, item: Item, episode: Episode, trajectory: str, ask: _Target) -> RolloutCompleted:
        fetched = ask.acted and self._run.config.target_model.agent_on_the_web
        doubtful = self._run.config.env.trust == "untrusted" or item.id in self._ports.untrusted
        if doubtful or fetched:
            episode = evolve(episode, trust="untrusted")
        event = _event(self._unit, item, episode, trajectory, tuple(ask.made))
        if ask.shelf is None:
            return event
        return evolve(event, viewed=tuple(ask.shelf.viewed), injected=ask.shelf.injected)


def _with_views(records: Sequence[TrajectoryRecord], shelf: Shelf) -> tuple[TrajectoryRecord, ...]:
    """The records, with what was opened before the first answer."""
    at = next((number for number, record in enumerate(records) if record.kind == "reply"), len(records))
    return (*records[:at], TrajectoryRecord("tool", opened_words(shelf.viewed)), *records[at:])


def rollout_job(unit: Unit, run: RunData, ports: RolloutPorts) -> AsyncCall[tuple[RolloutCompleted, tuple[str, ...]]]:
    """One unit, ready to be tried: its event, and the texts that this names."""
    return _Job(unit, run, ports)


# The target was there and gave no answer to this item: that is the skill's result, and a later try would not differ.
_MEASURED_AS_ZERO = {"timeout": "timeout", "empty": "no_answer", "context_length": "context_length"}


def _without_answer(failure: CallFailed) -> Episode:
    """A late, missing or impossible answer measures 0; when the world was not there, nothing was measured."""
    code = _MEASURED_AS_ZERO.get(failure.kind)
    if code is not None:
        return _ended(Measured(0.0, 0.0), code, _short(failure.message))
    return _ended(Failed(failure.kind, _short(failure.message)), failure.kind)


def _ended(outcome: Outcome, code: str, detail: str = "") -> Episode:
    """An episode that ended without an answer to grade."""
    return Episode(outcome=outcome, task="", records=(), turns=0, failure=code, detail=detail)


def _event(unit: Unit, item: Item, episode: Episode, trajectory: str, calls: tuple[CallRef, ...]) -> RolloutCompleted:
    return RolloutCompleted(
        place=unit.place,
        purpose=unit.purpose,
        item=unit.item,
        skill=unit.skill.hash,
        outcome=episode.outcome,
        task_type=item.task_type,
        turns=episode.turns,
        failure=episode.failure,
        detail=_short(episode.detail),
        prediction=_short(episode.prediction),
        trajectory=trajectory,
        calls=calls,
        trust=episode.trust,
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_DETAIL else text[: _MOST_DETAIL - 1] + "…"


_CUT_TWICE = "the reply was cut off twice; `resume --ask-again --set env.max_completion_tokens=N` raises its limit"


class _StillCutError(Exception):
    """The target's reply was cut off, also when asked again: there is no answer to grade."""


class _Target:
    """The target model bound to one unit; its slots count the unit's own turns, those that open skills included."""

    def __init__(self, unit: Unit, run: RunData, calls: Calls, shelf: Shelf | None) -> None:
        self._unit = unit
        self._slot = unit.place.of_item(unit.item)
        self._run = run
        self._calls = calls
        self._turn = 0
        self.made: list[CallRef] = []
        self.exchanges: list[Exchange] = []
        self.acted = False
        self.shelf = shelf

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: str = "",
    ) -> ChatReply:
        shelf = self.shelf
        if shelf is None or not shelf.tools:
            return await self._turn_with(messages, max_tokens, tools, tool_choice)
        theirs = frozenset(tool.name for tool in tools)
        offered, whole = (*tools, *shelf.tools), shelf.told(messages)
        rounds, goes_on = 0, True
        while goes_on:
            # In the end it has to answer with what it has.
            choice = "none" if rounds >= MOST_ROUNDS else tool_choice or "auto"
            reply = await self._turn_with(whole, max_tokens, offered, choice)
            said, goes_on = shelf.asked(messages, reply, theirs)
            whole, rounds = [*whole, *said], rounds + 1
            goes_on = goes_on and rounds <= MOST_ROUNDS
        return left_to(reply, theirs)

    async def _turn_with(
        self, messages: Sequence[Message], max_tokens: int | None, tools: Sequence[Tool], tool_choice: str
    ) -> ChatReply:
        config = self._run.config
        role = config.target_model
        self._turn += 1
        request = ChatRequest(
            slot=self._slot.turn(self._turn),
            stage="rollout",
            messages=tuple(messages),
            max_tokens=config.env.max_completion_tokens if max_tokens is None else max_tokens,
            temperature=role.temperature,
            effort=role.reasoning_effort,
            tools=tuple(tools),
            tool_choice=tool_choice,
            skill=self._unit.skill,
        )
        answer = await self._ask(request)
        if answer.finish == "length":
            answer = await self._ask(_shorter(request, answer))
            if answer.finish == "length":
                raise _StillCutError
        return ChatReply(text=answer.text, finish=answer.finish, tool_calls=answer.tool_calls)

    async def _ask(self, request: ChatRequest) -> Answer:
        answer = await self._calls.ask("target", request)
        self.made.append(answer.ref)
        self.acted = self.acted or answer.acted
        self.exchanges.append(Exchange(tuple(message.content for message in request.messages), answer.text))
        return answer


def _shorter(request: ChatRequest, answer: Answer) -> ChatRequest:
    said = () if not answer.text else (Message("assistant", answer.text),)
    return evolve(request, slot=Place(request.slot).again, messages=(*request.messages, *said, Message("user", _CUT)))
