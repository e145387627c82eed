"""The calls that an agent makes itself: where each of them has its place."""

from __future__ import annotations

import asyncio

import pytest
from attrs import define, evolve, field

from skillopt_es.engine.agent_calls import AgentCalls
from skillopt_es.engine.calls import Answer
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Role
from skillopt_es.ports import CallFailed, ChatRequest, Message, Usage

HERE = Place("e1/s2/gate").of_item("a/b")


@define
class Recording:
    """Calls that say where they were made; `fails` of them do not end well."""

    fails: int = 0
    slots: list[str] = field(factory=list)

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """An answer that repeats the question."""
        self.slots.append(request.slot)
        if self.fails:
            self.fails -= 1
            raise CallFailed("server", "no")
        return Answer(request.messages[0].content, "stop", CallRef(request.slot, "0" * 32), usage=Usage(input=1))


def question(text: str) -> ChatRequest:
    """What an agent asks in its attempt at this item."""
    return ChatRequest(slot=HERE, stage="rollout", messages=(Message("user", text),), max_tokens=5)


def asked(calls: AgentCalls, *texts: str) -> None:
    """Questions of one attempt."""

    async def all_of_them() -> None:
        for text in texts:
            assert (await calls.ask(question(text))).usage == Usage(input=1)

    asyncio.run(all_of_them())


def test_a_call_has_its_place_by_what_it_asks() -> None:
    """In whatever order: an attempt that begins anew finds what it had. The same question again is another draw."""
    first, second = Recording(), Recording()
    asked(AgentCalls(first), "one", "two", "one")
    calls = AgentCalls(second)
    asked(calls, "two", "one", "one")
    assert sorted(first.slots) == sorted(second.slots)
    assert len(set(first.slots)) == 3
    assert {Place(slot).item for slot in first.slots} == {"a/b"}
    assert {Place(slot).stage for slot in first.slots} == {"gate"}
    calls.over(HERE)
    asked(calls, "one")
    assert second.slots[-1] == first.slots[0]


def test_an_attempt_that_was_lost_finds_what_it_has_had() -> None:
    """And asks only what is new; after its end nothing is kept."""
    recording = Recording()
    calls = AgentCalls(recording)
    asked(calls, "one", "one")
    calls.over(HERE, lost=True)
    asked(calls, "one", "two", "one")
    assert len(recording.slots) == len(set(recording.slots)) == 3
    calls.over(HERE)
    asked(calls, "one")
    assert recording.slots[-1] == recording.slots[0]


def test_what_failed_is_asked_again_at_its_place() -> None:
    """It has had no answer there."""
    recording = Recording(fails=1)
    calls = AgentCalls(recording)
    with pytest.raises(CallFailed):
        asked(calls, "one")
    asked(calls, "one")
    assert recording.slots[0] == recording.slots[1]


def test_what_makes_another_question_makes_another_place() -> None:
    """Fields that are handed on, too."""
    recording = Recording()

    async def both() -> None:
        calls = AgentCalls(recording)
        await calls.ask(question("one"))
        await calls.ask(evolve(question("one"), extra={"top_p": 0.5}))

    asyncio.run(both())
    assert len(set(recording.slots)) == 2
    assert not any(slot.endswith("-2") for slot in recording.slots)
