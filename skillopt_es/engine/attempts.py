"""
Attempts: items tried under a skill, in parallel, recorded in the order of the plan.

Between the environment and the target stand the trainer's own answers: skills that are opened, a reply that was cut.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from difflib import SequenceMatcher

from attrs import Factory, define, evolve, field, frozen

from skillopt_es.config import RunConfig, limits_answers
from skillopt_es.config.backends import is_own_agent
from skillopt_es.config.sections import Crashed
from skillopt_es.engine.call_records import Exchange
from skillopt_es.engine.calls import Answer, Calls
from skillopt_es.engine.trajectories import packed
from skillopt_es.engine.work import Emission, Rollouts, Unit
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Failed, Json, Measured, Outcome, Role, SkillTree, digest_of, text_digest
from skillopt_es.ports import (
    HANDED_OVER,
    CallFailed,
    ChatReply,
    ChatRequest,
    Elsewhere,
    Episode,
    Executor,
    Hands,
    Item,
    Message,
    Tool,
    TrajectoryRecord,
    told_agents,
)
from skillopt_es.skill.regions import without_empty_block
from skillopt_es.skill.tools import MOST_ROUNDS, Shelf, left_to, opened_words, understood

_MOST_DETAIL = 500  # characters of a failure in its event: a provider's error may quote a whole page
_CUT = "Your reply was cut off at the length limit. Answer again, and be brief."


@frozen(kw_only=True)
class RolloutPorts:
    """What a rollout needs of the world; a target that has its `own_skills` finds those of a folder among them."""

    hands: Hands
    items: Mapping[str, Item]
    executor: Executor
    calls: Calls
    untrusted: frozenset[str] = frozenset()
    own_skills: bool = False


async def run_rollouts(task: Rollouts, config: RunConfig, ports: RolloutPorts) -> AsyncGenerator[Emission, None]:
    """The units' results in plan order, as soon as the next ones are ready."""
    jobs = [Attempt(unit, config, ports) for unit in task.units]
    async with aclosing(ports.executor.stream(jobs, workers=jobs_at_once(config.env.workers))) as stream:
        async for done in stream:
            texts = [text for _, stored in done for text in stored]
            yield Emission([event for event, _ in done], texts)


def jobs_at_once(calls: int) -> int:
    """How many jobs to have open for so many calls in flight: while some wait for a commit, others make calls."""
    return calls * 2


@frozen
class Attempt:
    """One unit, ready to be tried: its event, and the texts that this names."""

    _unit: Unit
    _config: RunConfig
    _ports: RolloutPorts

    async def __call__(self) -> tuple[RolloutCompleted, tuple[str, ...]]:
        item = self._ports.items[self._unit.item]
        skill = _as_read(self._unit.skill)
        known: dict[str, tuple[ChatRequest, Answer]] = {}
        ask = self._target(known, None)

        def asking(elsewhere: Elsewhere | None) -> _Target:
            nonlocal ask
            ask = self._target(known, elsewhere)
            return ask

        shown = skill if ask.shelf is None else ask.shelf.shown
        try:
            episode = await self._ports.hands.attempt(item, shown, asking, seed=self._unit.seed, slot=ask.slot)
        except CallFailed as failure:
            return self._event(item, _without_answer(failure, self._config.rollout.crashed), "", ask), ()
        except _StillCutError:
            cut = Failed("truncated", _CUT_TWICE)
            return self._event(item, _ended(cut, cut.kind), "", ask), ()
        if ask.shelf is not None:
            episode = evolve(episode, records=_with_views(episode.records, ask.shelf))
        blob = packed(episode, ask.exchanges)
        return self._event(item, episode, text_digest(blob), ask), (blob,)

    def _target(self, known: dict[str, tuple[ChatRequest, Answer]], elsewhere: Elsewhere | None) -> _Target:
        """The target for one try: it counts from its first question, and no skill is open yet."""
        skill = self._unit.skill
        shelf = Shelf(skill, own=self._ports.own_skills) if skill.is_folder else None
        backend = self._config.target_model.backend
        own = is_own_agent(backend) or backend == HANDED_OVER
        fields = told_agents(self._ports.items[self._unit.item]) if own else {}
        return _Target(self._unit, self._config, self._ports.calls, shelf, known, fields, elsewhere)

    def _event(self, item: Item, episode: Episode, trajectory: str, target: _Target) -> RolloutCompleted:
        unit, shelf = self._unit, target.shelf
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
            calls=tuple(target.made),
            trust="untrusted" if self._is_doubtful(target) else episode.trust,
            near=_near(episode) if unit.near else None,
            truncated=target.truncated,
            viewed=() if shelf is None else tuple(shelf.viewed),
            injected=() if shelf is None else shelf.injected,
        )

    def _is_doubtful(self, target: _Target) -> bool:
        """Whether texts that others may have written were before the target, whatever the environment says."""
        config = self._config
        if config.env.trust == "untrusted" or self._unit.item in self._ports.untrusted:
            return True
        # An agent of the user's own need not report what it did.
        target_model = config.target_model
        return target_model.agent_on_the_web and (target.acted or is_own_agent(target_model.backend))


def _with_views(records: Sequence[TrajectoryRecord], shelf: Shelf) -> tuple[TrajectoryRecord, ...]:
    """The records, with what was opened before the first answer."""
    at = next((number for number, record in enumerate(records) if record.kind == "reply"), len(records))
    return (*records[:at], TrajectoryRecord("tool", opened_words(shelf.viewed)), *records[at:])


def _as_read(skill: SkillTree) -> SkillTree:
    """The skill without an empty place for guidance: a text that no gate has seen must not differ for the target."""
    files = {path: without_empty_block(text) for path, text in skill.files.items()}
    return skill if files == skill.files else evolve(skill, files=files)


# The target was there and gave no answer to this item: that is the skill's result, and a later try would not differ.
_MEASURED_AS_ZERO = {"timeout": "timeout", "empty": "no_answer", "context_length": "context_length"}


def _without_answer(failure: CallFailed, crashed: Crashed) -> Episode:
    """A late, missing or impossible answer measures 0; when the world was not there, nothing was measured."""
    code = _MEASURED_AS_ZERO.get(failure.kind)
    if failure.kind == "crash" and crashed == "zero":
        code = "crash"
    if code is not None:
        return _ended(Measured(0.0, 0.0), code, _short(failure.message))
    return _ended(Failed(failure.kind, _short(failure.message)), failure.kind)


def _ended(outcome: Outcome, code: str, detail: str = "") -> Episode:
    """An episode that ended without an answer to grade."""
    return Episode(outcome=outcome, task="", records=(), turns=0, failure=code, detail=detail)


def _near(episode: Episode) -> float | None:
    # A partial grade says more than how the answer looks.
    wrong = isinstance(episode.outcome, Measured) and not (episode.outcome.hard or episode.outcome.soft)
    return nearness(episode.prediction, episode.answers) if wrong else None


_MOST_COMPARED = 1_000  # of either text: longer ones are compared by their beginning
_NOT_RIGHT = 0.99  # also of an answer that reads the same: its grade said that it is wrong


def nearness(said: str, accepted: Sequence[str]) -> float | None:
    """The share of characters that an answer has in common with the nearest accepted one; None where there is none."""
    mine = said.strip()[:_MOST_COMPARED]
    if not accepted:
        return None
    likest = max(
        SequenceMatcher(None, mine, each.strip()[:_MOST_COMPARED], autojunk=False).ratio() for each in accepted
    )
    return min(_NOT_RIGHT, round(likest, 2))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_DETAIL else text[: _MOST_DETAIL - 1] + "…"


_CUT_TWICE = "the reply was cut off twice; `fork --set env.max_completion_tokens=N` makes a run with a higher limit"


class _StillCutError(Exception):
    """The target's reply was cut off, also when asked again: there is no answer to grade."""


@define(eq=False)
class _Target:
    """
    The target and the judge bound to one try of a unit; slots count its turns, those that open skills included.

    `known` is what the unit has been answered in earlier tries, whose worker was lost: it is not asked twice.
    """

    unit: Unit
    config: RunConfig
    calls: Calls
    shelf: Shelf | None
    known: dict[str, tuple[ChatRequest, Answer]]
    fields: Mapping[str, Json]
    elsewhere: Elsewhere | None
    slot: Place = Factory(lambda self: self.unit.place.of_item(self.unit.item), takes_self=True)
    judged: int = Factory(lambda self: self.unit.judged, takes_self=True)
    turn: int = 0
    made: list[CallRef] = field(factory=list)
    exchanges: list[Exchange] = field(factory=list)
    acted: bool = False
    truncated: bool = False

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
        whole, rounds = shelf.with_opened(messages), 0
        while True:
            offered = (*tools, *shelf.offered)
            # In the end it has to answer with what it has.
            choice = "none" if rounds >= MOST_ROUNDS or shelf.stuck else tool_choice or "auto"
            answered = await self._turn_with(whole, max_tokens, offered, choice if offered else "")
            reply = understood(answered, shelf.tree)
            said, again = shelf.answered(messages, reply, theirs)
            whole, rounds = shelf.with_opened(messages) if shelf.laid else [*whole, *said], rounds + 1
            if not again or choice == "none":
                return left_to(reply, theirs)

    async def _turn_with(
        self, messages: Sequence[Message], max_tokens: int | None, tools: Sequence[Tool], tool_choice: str
    ) -> ChatReply:
        config = self.config
        role = config.target_model
        self.turn += 1
        request = ChatRequest(
            slot=self.slot.turn(self.turn),
            stage="rollout",
            messages=tuple(messages),
            max_tokens=config.env.max_completion_tokens if max_tokens is None else max_tokens,
            temperature=role.temperature,
            effort=role.reasoning_effort,
            tools=tuple(tools),
            tool_choice=tool_choice,
            skill=_as_read(self.unit.skill),
            item=self.unit.item,
            fields=self.fields,
            seed=_seed(config.train.seed, self.slot),
            elsewhere=self.elsewhere,
        )
        answer = await self._ask(request)
        if answer.finish == "length" and self._is_limited(request, answer):
            self.truncated = True
            return ChatReply(
                text=answer.text, finish="stop", tool_calls=answer.tool_calls, steps=answer.steps, truncated=True
            )
        if answer.finish == "length":
            answer = await self._ask(_shorter(request, answer))
            if answer.finish == "length":
                raise _StillCutError
        return ChatReply(text=answer.text, finish=answer.finish, tool_calls=answer.tool_calls, steps=answer.steps)

    def _is_limited(self, request: ChatRequest, answer: Answer) -> bool:
        """Whether an answer was cut at the user's limit: it is the target's own, as it would be where it is used."""
        config, used = self.config, answer.usage.output
        own = limits_answers(config) and request.max_tokens == config.env.max_completion_tokens
        return own and (used is None or used >= request.max_tokens)

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        """What the judge says of the answer; its calls belong to this unit."""
        self.judged += 1
        role = self.config.judge_model
        request = ChatRequest(
            slot=self.slot.judged(self.judged),
            stage="judge",
            messages=tuple(messages),
            max_tokens=max_tokens,
            temperature=role.temperature,
            effort=role.reasoning_effort,
            schema=schema,
            item=self.unit.item,
        )
        answer = await self._kept("judge", request)
        return ChatReply(text=answer.text, finish=answer.finish)

    async def _ask(self, request: ChatRequest) -> Answer:
        answer = await self._kept("target", request)
        self.acted = self.acted or bool(answer.steps)
        if self.shelf is not None and self.shelf.own:
            self.shelf.note_opened(answer.steps)
        return answer

    async def _kept(self, role: Role, request: ChatRequest) -> Answer:
        earlier, answer = self.known.get(request.slot, (None, None))
        if answer is None or earlier != request:
            answer = await self.calls.ask(role, request)
            self.known[request.slot] = (request, answer)
        self.made.append(answer.ref)
        self.exchanges.append(Exchange(tuple(message.content for message in request.messages), answer.text))
        return answer


def _seed(seed: int, slot: str) -> int:
    """The seed of one attempt: the same in every process, and another one for each draw of an item."""
    return int(digest_of(f"{seed} {slot}".encode())[:8], 16)


def _shorter(request: ChatRequest, answer: Answer) -> ChatRequest:
    said = () if not answer.text else (Message("assistant", answer.text),)
    return evolve(request, slot=Place(request.slot).again, messages=(*request.messages, *said, Message("user", _CUT)))
