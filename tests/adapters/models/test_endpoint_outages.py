"""An outage between answers: a call outlives it whatever its waits come to, or it pauses the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from attrs import evolve
from support.chat import open_chat, question, settings
from support.fake_time import FakeTime
from support.model_server import Answer, ModelServer

from skillopt_es.ports import Alone, CallFailed, ChatReply, Message, Wait

DOWN = Answer(status=500, error={"message": "down"})
Change = Callable[[FakeTime, str], Answer]


def asked(change: Change, numbers: list[int], **changes: object) -> list[ChatReply | CallFailed]:
    """One question after another on a clock that the waits move; the first one makes the endpoint known."""
    time = FakeTime()

    async def scenario(url: str) -> list[ChatReply | CallFailed]:
        given = settings(url, attempts=8, backoff_seconds=0.03, backoff_cap_seconds=30.0, **changes)
        model = open_chat(given, {}, clock=time.clock, sleep=time.sleep)
        found: list[ChatReply | CallFailed] = []
        try:
            for number in numbers:
                try:
                    found.append(await model.complete(question(number)))
                except CallFailed as failed:
                    found.append(failed)
        finally:
            await model.aclose()
        return found

    def answer(body: Mapping[str, object], _headers: object) -> Answer:
        return change(time, str(body["messages"]))

    with ModelServer(answer) as server:
        return asyncio.run(scenario(server.base_url))


@pytest.mark.parametrize("seconds", [15.0, 60.0, 800.0])
def test_a_question_outlives_an_outage(seconds: float) -> None:
    """Though its eight tries would have been over after twenty seconds."""
    answers = iter([Answer()])
    first, second = asked(
        lambda time, _: next(answers, None) or (DOWN if time.now - 1000.0 < seconds else Answer()), [1, 2]
    )
    assert isinstance(first, ChatReply)
    assert isinstance(second, ChatReply)


def test_an_outage_that_lasts_pauses_the_run() -> None:
    """Nothing is decided without the answer."""
    answers = iter([Answer()])
    _, lost = asked(lambda time, _: next(answers, DOWN), [1, 2])
    assert isinstance(lost, CallFailed)
    assert lost.systemic
    assert "it has answered no call for" in lost.message
    assert "patience_seconds) is 15 min" in lost.message


def test_without_patience_a_question_is_given_up_after_its_tries() -> None:
    """Which is the way out where one question alone always fails."""
    answers = iter([Answer()])
    _, lost = asked(lambda time, _: next(answers, DOWN), [1, 2], patience_seconds=0)
    assert isinstance(lost, CallFailed)
    assert (lost.systemic, len(lost.tries)) == (False, 8)


@pytest.mark.parametrize("deadline", [0, 1])
def test_an_optimizer_that_never_answered_pauses_the_run(deadline: int) -> None:
    """After its tries: it may be the wrong address, or an outage in which a run is resumed, and no question is lost."""
    [lost] = asked(lambda time, _: DOWN, [1], role="optimizer", deadline_seconds=deadline)
    assert isinstance(lost, CallFailed)
    assert lost.systemic
    assert len(lost.tries) == 8 if not deadline else len(lost.tries) < 8
    assert "it has answered no call yet" in lost.message


def test_a_target_that_never_answered_is_not_waited_for() -> None:
    """Its attempt is not measured, and too many of these pause the run."""
    [lost] = asked(lambda time, _: DOWN, [1], role="target")
    assert isinstance(lost, CallFailed)
    assert (lost.systemic, len(lost.tries)) == (False, 8)


def test_without_patience_a_question_to_an_endpoint_that_never_answered_is_given_up() -> None:
    """The run goes on with the next one: this one alone may be what fails."""
    answers = iter([*[DOWN] * 8, Answer()])
    lost, second = asked(lambda time, _: next(answers), [1, 2], role="optimizer", patience_seconds=0)
    assert isinstance(lost, CallFailed)
    assert (lost.systemic, len(lost.tries)) == (False, 8)
    assert isinstance(second, ChatReply)


def test_a_question_that_fails_while_others_are_answered_is_its_own_affair() -> None:
    """It has its tries, and the run goes on."""
    time = FakeTime()

    async def scenario(url: str) -> CallFailed:
        given = settings(url, attempts=8, backoff_seconds=0.03, backoff_cap_seconds=30.0)
        model = open_chat(given, {}, clock=time.clock, sleep=time.sleep)

        class Meanwhile(Alone):
            """A run in which another call is answered while this one waits."""

            async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
                """The other call, and then the wait."""
                await model.complete(question(1))
                return await super().rest(wait, sleep)

        try:
            await model.complete(question(1))
            with pytest.raises(CallFailed) as lost:
                await model.complete(evolve(question(2), messages=(Message("user", "poison"),)), Meanwhile())
            return lost.value
        finally:
            await model.aclose()

    def answer(body: Mapping[str, object], _headers: object) -> Answer:
        time.now += 0.001
        return DOWN if "poison" in str(body["messages"]) else Answer()

    with ModelServer(answer) as server:
        lost = asyncio.run(scenario(server.base_url))
    assert (lost.systemic, len(lost.tries)) == (False, 8)
