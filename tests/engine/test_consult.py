"""One question, one parsed answer; a useless one is asked for once more, with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from attrs import define

from skillopt_es.engine.algorithm import Consulted
from skillopt_es.engine.calls import Answer
from skillopt_es.engine.loop import consult
from skillopt_es.events.values import CallRef, Role
from skillopt_es.ports import CallFailed, ChatRequest, Message
from skillopt_es.replies.json_reader import Unusable

QUESTION = ChatRequest(slot="s1/analyst/0", stage="analyst", messages=(Message("user", "why?"),), max_tokens=9)


@define
class Said:
    """Answers one after the other; keeps what was asked."""

    replies: Iterator[Answer | CallFailed]
    asked: list[ChatRequest]

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """The next one."""
        self.asked.append(request)
        reply = next(self.replies)
        if isinstance(reply, CallFailed):
            raise reply
        return reply


def answer(text: str, *, cut: bool = False) -> Answer:
    """A reply that is recorded."""
    return Answer(text, "length" if cut else "stop", CallRef("s1/analyst/0", text))


def consulted(
    *replies: Answer | CallFailed, again: bool = True, silence_fails: bool = False
) -> tuple[Consulted[str], Sequence[ChatRequest]]:
    """What asking came to where only "good" can be used."""
    said = Said(iter(replies), [])

    def read(text: str) -> str | Unusable:
        return text if text == "good" else Unusable("it is not good")

    asking = consult(said, QUESTION, read, again=again, silence_fails=silence_fails)  # type: ignore[arg-type]
    return asyncio.run(asking), said.asked


def test_a_useless_answer_is_asked_for_once_more_with_the_reason() -> None:
    """At a place of its own; both calls are named."""
    found, asked = consulted(answer("bad"), answer("good"))
    assert (found.value, len(found.calls)) == ("good", 2)
    assert asked[1].slot != asked[0].slot
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "user"]
    assert "it is not good" in asked[1].messages[-1].content


def test_two_useless_answers_are_none() -> None:
    """No outage: somebody was there."""
    found, asked = consulted(answer("bad"), answer("bad"))
    assert (found.value, found.failed, found.why, len(asked)) == (None, False, "it is not good", 2)
    assert len(consulted(answer("bad"), again=False)[1]) == 1


def test_what_was_cut_off_is_not_read_and_not_repeated_whole() -> None:
    """All of it would take the room that the next one needs."""
    found, asked = consulted(answer("good" * 500, cut=True), answer("good"))
    assert found.value == "good"
    assert len(asked[1].messages[1].content) < 400
    assert "much shorter" in asked[1].messages[-1].content


def test_an_outage_is_told_from_a_question_that_cannot_be_answered() -> None:
    """Silence is one where nobody says anything."""
    assert consulted(CallFailed("server", "down"))[0].failed
    assert not consulted(CallFailed("context_length", "too long"))[0].failed
    assert not consulted(CallFailed("empty", "nothing"))[0].failed
    assert consulted(CallFailed("empty", "nothing"), silence_fails=True)[0].failed
