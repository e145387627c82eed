"""Calls that wait: their places serve others, a run that stops does not wait for them, and the user is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve
from support.chat import open_chat, question, settings
from support.logs import events_of
from support.model_server import Answer, ModelServer
from support.scripted import ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.cli.process import WaitTeller
from skillopt_es.engine.calls import Held, Seats
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.errors import Interrupted
from skillopt_es.events.catalog import RunPaused
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ALONE, CallFailed, ChatReply, ChatRequest, Course, NotStarted, Try, Wait
from skillopt_es.sessions.session import read_state, resume, start

PUT_OFF = Wait(kind="rate_limit", seconds=300, message="HTTP 429: slow down")


def test_a_call_that_waits_leaves_its_place_to_another() -> None:
    """With a single place: the second is made while the first waits, and the first comes before the third."""

    async def scenario() -> list[str]:
        places, told, done = Seats(1), [], asyncio.Event()
        in_flight = InFlight(told.append)
        order: list[str] = []

        async def waiting() -> None:
            async with (held := Held(places, in_flight, lambda: False)):
                assert await held.rest(PUT_OFF, done.wait)
                order.append("first")
                assert in_flight.count == 1

        async def other(name: str) -> None:
            async with Held(places, in_flight, lambda: False):
                order.append(name)
                done.set()
                await asyncio.sleep(0.01)

        first = asyncio.create_task(waiting())
        await asyncio.sleep(0)
        await asyncio.gather(first, other("second"), other("third"))
        assert (in_flight.count, in_flight.waiting, told) == (0, 0, [PUT_OFF])
        return order

    assert asyncio.run(asyncio.wait_for(scenario(), 5)) == ["second", "first", "third"]


def test_a_cancelled_wait_takes_no_place_with_it() -> None:
    """Asleep, or on its way back."""

    async def scenario() -> None:
        places, in_flight = Seats(1), InFlight()

        async def waiting(sleep: float) -> None:
            async with (held := Held(places, in_flight, lambda: False)):
                await held.rest(PUT_OFF, lambda: asyncio.sleep(sleep))

        asleep = asyncio.create_task(waiting(60))
        await asyncio.sleep(0.01)
        awake = asyncio.create_task(waiting(0))
        async with Held(places, in_flight, lambda: False):
            await asyncio.sleep(0.01)
            asleep.cancel()
            awake.cancel()
            await asyncio.gather(asleep, awake, return_exceptions=True)
        async with Held(places, in_flight, lambda: False):
            assert in_flight.count == 1
        assert (in_flight.count, in_flight.waiting) == (0, 0)

    asyncio.run(asyncio.wait_for(scenario(), 5))


def test_who_holds_a_slot_of_the_model_keeps_its_place() -> None:
    """Else the one with the slot would wait for a place, and those with the places for the slot, for ever."""

    async def scenario() -> None:
        places, in_flight, slot = Seats(1), InFlight(), asyncio.Lock()

        async def call() -> None:
            async with (held := Held(places, in_flight, lambda: False)), slot:
                assert await held.rest(evolve(PUT_OFF, holds=True), lambda: asyncio.sleep(0.01))

        await asyncio.gather(*(call() for _ in range(3)))

    asyncio.run(asyncio.wait_for(scenario(), 5))


def test_a_model_with_little_room_serves_many_workers() -> None:
    """Two places, a single slot, refusals that hold everybody back: all calls come to their end."""
    refusals = iter([Answer(status=429, error="slow", headers={"Retry-After": "0.05"})] * 12)

    async def scenario(base_url: str) -> list[ChatReply]:
        model = open_chat(settings(base_url, concurrency=1), {})
        places, in_flight = Seats(2), InFlight()

        async def call(number: int) -> ChatReply:
            async with (held := Held(places, in_flight, lambda: False)):
                return await model.complete(question(number), held)

        try:
            return await asyncio.gather(*(call(number) for number in range(8)))
        finally:
            await model.aclose()

    with ModelServer(lambda _body, _headers: next(refusals, Answer())) as server:
        replies = asyncio.run(asyncio.wait_for(scenario(server.base_url), 20))
    assert sum(len(reply.tries) for reply in replies) == 12


class PutOffModel(ScriptedModel):
    """A target that is put off for minutes before each answer."""

    def __init__(self) -> None:
        super().__init__("scripted target", target_reply)
        self.waits = 0

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The answer, after a long wait."""
        self.waits += 1
        refused = Try(kind="rate_limit", status=429, message="HTTP 429: slow down", waited_ms=300_000)
        if not await course.rest(PUT_OFF, lambda: asyncio.sleep(300)):
            raise CallFailed("rate_limit", refused.message, status=429, tries=(refused,))
        raise NotStarted


def test_a_run_that_stops_does_not_sit_out_a_wait(tmp_path: Path) -> None:
    """Interrupted in the middle of five minutes; what was tried is recorded, and resuming asks it all."""
    model = PutOffModel()
    world = ScriptedWorld(target=model)
    session = world.session(stopping=lambda: model.waits >= 3)
    with pytest.raises(Interrupted):
        asyncio.run(asyncio.wait_for(start(config(tmp_path), tmp_path / "run", session), 20))
    run = tmp_path / "run"
    *_, last = events_of(run)
    assert isinstance(last, RunPaused)
    assert last.reason == "interrupt"
    with EventLog.open(run) as log:
        rows = list(Journal(log.reader).read())
    assert {row.call.error_kind for row in rows} == {"rate_limit"}
    assert len(rows) == model.waits
    asyncio.run(resume(run, ScriptedWorld().session()))
    assert read_state(run).status == "completed"


def test_a_long_wait_is_told_once_while_it_lasts() -> None:
    """Sixteen calls wait for the same minute; the next minute is told again."""
    now, said = [0.0], list[str]()
    tell = WaitTeller(said.append, lambda: now[0])
    for _ in range(16):
        tell(Wait(kind="rate_limit", seconds=60, message="HTTP 429: slow down"))
    assert said == ["waiting: the next try is in 60 s (HTTP 429: slow down)"]
    now[0] = 61
    tell(Wait(kind="rate_limit", seconds=60))
    assert said[1:] == ["waiting: the next try is in 60 s"]


def test_short_waits_are_told_from_time_to_time() -> None:
    """Every half minute, with how many there were; a pace that the user set is not news."""
    now, said = [0.0], list[str]()
    tell = WaitTeller(said.append, lambda: now[0])
    for second in range(65):
        now[0] = second
        tell(Wait(kind="rate_limit", seconds=0.5, message="HTTP 429"))
        tell(Wait(kind="pace", seconds=50))
    assert said == [
        "calls had to wait 31 times so far (HTTP 429)",
        "calls had to wait 61 times so far (HTTP 429)",
    ]
