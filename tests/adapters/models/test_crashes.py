"""An attempt that crashes is made again: how often, with what seed, and what is said of the tries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from attrs import evolve
from support.chat import question

from skillopt_es.adapters.models.crashes import despite_crashes
from skillopt_es.adapters.models.retry import ONCE, RetryPolicy
from skillopt_es.ports import Alone, CallFailed, ChatReply, ChatRequest, Course, Try, Wait

POLICY = RetryPolicy(attempts=8, base=0.01, cap=1.0, patience=0.0, seed=1)
CRASH = Try(kind="crash", status=None, message="oh", waited_ms=0)


class Rested(Alone):
    """A run that lets every call go on, or none, and in which no wait takes time."""

    def __init__(self, *, further: bool = True, rested: bool = True) -> None:
        self.further, self.rested = further, rested

    async def may_try_again(self, failed: Try) -> bool:
        """As it was made."""
        return self.further

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """At once."""
        return self.rested


def attempts(
    crashes: int, policy: RetryPolicy = POLICY, kind: str = "crash", course: Course | None = None
) -> tuple[ChatReply | CallFailed, list[ChatRequest]]:
    """What comes of a call whose first attempts crash, and the attempts that were made."""
    made: list[ChatRequest] = []

    async def once(request: ChatRequest) -> ChatReply:
        made.append(request)
        if len(made) <= crashes:
            raise CallFailed(kind, "oh", tries=(evolve(CRASH, kind=kind),))  # type: ignore[arg-type]
        return ChatReply(text="yes", finish="stop")

    request = evolve(question(seed=5), slot="baseline/item/a")
    try:
        return asyncio.run(despite_crashes(request, course or Rested(), once, policy)), made
    except CallFailed as failed:
        return failed, made


@pytest.mark.parametrize(("crashes", "tries"), [(0, 0), (1, 1), (2, 2)])
def test_it_has_three_tries(crashes: int, tries: int) -> None:
    """What is answered in the end says what came before, and how long was waited."""
    reply, made = attempts(crashes)
    assert isinstance(reply, ChatReply)
    assert [each.kind for each in reply.tries] == ["crash"] * tries
    assert all(each.waited_ms > 0 for each in reply.tries)
    assert [request.slot for request in made] == [
        "baseline/item/a",
        "baseline/item/a/try-2",
        "baseline/item/a/try-3",
    ][: tries + 1]
    assert len({request.seed for request in made}) == tries + 1


def test_a_crash_that_says_nothing_of_its_tries_was_one() -> None:
    """A function of the user's may raise it by itself."""

    async def once(_: ChatRequest) -> ChatReply:
        raise CallFailed("crash", "by hand")

    with pytest.raises(CallFailed) as caught:
        asyncio.run(despite_crashes(question(), Rested(), once, POLICY))
    assert [(each.kind, each.message) for each in caught.value.tries] == [("crash", "by hand")] * 3


def test_the_third_crash_is_the_last_word() -> None:
    """With the tries of all."""
    failed, made = attempts(9)
    assert isinstance(failed, CallFailed)
    assert (failed.kind, len(failed.tries), len(made)) == ("crash", 3, 3)


def test_the_same_call_is_tried_in_the_same_way() -> None:
    """In every process: seeds and waits follow from the call."""
    first, second = attempts(2), attempts(2)
    assert first[0] == second[0]
    assert [each.seed for each in first[1]] == [each.seed for each in second[1]]


@pytest.mark.parametrize("kind", ["timeout", "invalid_reply", "transport"])
def test_nothing_else_is_tried_again(kind: str) -> None:
    """What is no crash has its own rules."""
    failed, made = attempts(9, kind=kind)
    assert isinstance(failed, CallFailed)
    assert len(made) == 1


def test_fewer_attempts_are_kept_to() -> None:
    """As the config says."""
    assert len(attempts(9, ONCE)[1]) == 1
    assert len(attempts(9, evolve(POLICY, attempts=2))[1]) == 2


def test_a_budget_or_a_stop_ends_it() -> None:
    """Each is asked before the next try."""

    for course in (Rested(further=False), Rested(rested=False)):
        failed, made = attempts(9, course=course)
        assert isinstance(failed, CallFailed)
        assert (len(made), len(failed.tries)) == (1, 1)
