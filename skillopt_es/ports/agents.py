"""Agents: what one of the user's own gets for an attempt, where its calls go, and what coding agents' files hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from skillopt_es.events.values import Json
from skillopt_es.ports.chat import ChatModel, ChatReply, ChatRequest, Message


@frozen(kw_only=True)
class SkillFiles:
    """The skill as an agent gets it: all of its `text`, and its files by their paths, which also lie in `folder`."""

    text: str
    main: str
    files: Mapping[str, str]
    folder: str


@frozen(kw_only=True)
class Gateway:
    """Where an agent may ask the run's model, in OpenAI's format; the key is this attempt's alone."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


@frozen(kw_only=True)
class AgentTask:
    """
    One attempt, as an agent of the user's gets it.

    `task` is the last thing that is asked, `instructions` what stands before it but for the skill. `messages` are what
    a chat model would be sent, the skill among them. `fields` are those of the item that `env.agent_fields` names.
    With the same `seed` an attempt should be the same.
    """

    item: str
    task: str
    instructions: str
    messages: tuple[Message, ...]
    skill: SkillFiles
    seed: int
    deadline_seconds: float
    fields: Mapping[str, Json] = field(factory=dict)
    gateway: Gateway | None = None


AgentFunction = Callable[[AgentTask], object]
"""A function that is an agent: from an attempt to its answer, a text or the object of docs/agents.md; async or not."""


class OwnCalls(Protocol):
    """Where the calls go that an agent makes itself: each is journaled, priced and limited like any other."""

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The answer to a question of the attempt at `request.slot`; raises what a call of that model raises."""
        ...

    def over(self, slot: str, *, lost: bool = False) -> None:
        """The attempt at this slot asks no more; one that was lost is made anew, and finds the answers it has had."""
        ...


@runtime_checkable
class Fronting(Protocol):
    """An agent that asks a model through the run: what it spends is spent by its calls, never by itself."""

    @property
    def upstream(self) -> ChatModel:
        """The model that it asks."""
        ...

    def route(self, calls: OwnCalls) -> None:
        """From now on its calls go there."""
        ...


@frozen(kw_only=True)
class ToolUse:
    """One tool that a coding agent called on its way to an answer, with what it was given and what came back."""

    name: str
    given: str = ""
    result: str = ""


@frozen(kw_only=True)
class Turn:
    """What a person asked a coding agent, and what it did and answered."""

    asked: str
    answered: str = ""
    tools: tuple[ToolUse, ...] = ()


@frozen(kw_only=True)
class Conversation:
    """One conversation of a person with a coding agent, as the agent's own files have it; `when` as they write it."""

    agent: str
    id: str
    folder: str
    when: str
    turns: tuple[Turn, ...]


@frozen
class Unreadable:
    """A file of an agent that could not be read, or a part of it, and why."""

    agent: str
    file: str
    why: str
