"""One real attempt by an agent of the user's own, before a run makes many: from a task to its grade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from attrs import define, field, frozen

from skillopt_es.config import RunConfig
from skillopt_es.counting import counted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.places import checked
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import (
    AskOptions,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Environment,
    Episode,
    Fronting,
    Item,
    Message,
    judge_calls,
    told_agents,
)
from skillopt_es.sessions.checks import Check, problem
from skillopt_es.sessions.opening import open_environment
from skillopt_es.sessions.skills import load_skill

_MOST_SHOWN = 80  # one line of a terminal


@define
class _Asking:
    """The target of one attempt: what it asks goes to the agent and is recorded nowhere."""

    config: RunConfig
    model: ChatModel
    item: Item
    skill: SkillTree
    replies: list[ChatReply] = field(factory=list)

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        most = options.get("max_tokens")
        request = ChatRequest(
            slot=checked("target").turn(len(self.replies) + 1),
            stage="probe",
            messages=tuple(messages),
            max_tokens=self.config.env.max_completion_tokens if most is None else most,
            skill=self.skill,
            item=self.item.id,
            fields=told_agents(self.item),
            seed=self.config.train.seed,
        )
        self.replies.append(await self.model.complete(request))
        return self.replies[-1]


@frozen
class _Straight:
    """Where the calls go that an agent makes in this one attempt: to its model, and into no journal."""

    model: ChatModel

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The model's answer."""
        return await self.model.complete(request)

    def over(self, slot: str, *, lost: bool = False) -> None:
        """Nothing is kept."""


async def try_agent(config: RunConfig, model: ChatModel) -> Check | CallFailed:
    """What came of the first training item under the skill that a run begins with; its failure, if it has one."""
    try:
        skill, _ = load_skill(config)
        environment = open_environment(config)
    except SkillOptError as error:
        return problem("target", error)
    try:
        items = _items(environment)
        if not items:
            return Check("target", "warning", "the agent was not tried: there is no training item")
        if isinstance(model, Fronting):
            model.route(_Straight(model.upstream))
        ask = _Asking(config, model, items[0], skill)
        episode = await environment.attempt(items[0], skill, ask, seed=config.train.seed)
    except SkillOptError as error:
        return problem("target", error)
    except CallFailed as failure:
        return failure
    finally:
        await environment.aclose()
    return _verdict(config, ask, episode, judged=judge_calls(environment) > 0)


def _items(environment: Environment) -> tuple[Item, ...]:
    """Those for training; none where the data cannot be read, which the data's own check says."""
    try:
        return tuple(environment.load().train)
    except SkillOptError:
        return ()


def _verdict(config: RunConfig, ask: _Asking, episode: Episode, *, judged: bool) -> Check:
    item, outcome = ask.item.id, episode.outcome
    if isinstance(outcome, Measured):
        return Check("target", "ok", f"{_said(config, item, ask.replies)}, score {outcome.soft:.2f}")
    if judged and ask.replies:
        graded = "a judge grades it: `doctor --grade` tries that"
        return Check("target", "ok", f"{_said(config, item, ask.replies)}, {graded}")
    return Check("target", "problem", f"item {item!r} got no grade: {episode.detail}", "check env.grader")


def _said(config: RunConfig, item: str, replies: Sequence[ChatReply]) -> str:
    text = " ".join(replies[-1].text.split()) if replies else ""
    shown = text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
    took = sum(reply.latency_ms for reply in replies)
    steps = counted(sum(len(reply.steps) for reply in replies), "step")
    return f"{config.target_model.model} tried item {item!r} in {took:,} ms: {shown!r}, {steps} reported"
