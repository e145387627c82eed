"""A Python function as a model: its answers, and what becomes of what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from skillopt_es.adapters.models.function import FunctionModel
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, Message

REQUEST = ChatRequest(slot="s", stage="rollout", messages=(Message("user", "three"),), max_tokens=9)


def asked(function: Callable[[ChatRequest], Any], seconds: float = 60) -> ChatReply:
    """The model's reply."""
    return asyncio.run(FunctionModel(function=function, name="f", timeout_seconds=seconds).complete(REQUEST))


async def later(request: ChatRequest) -> str:
    """An async function."""
    return request.messages[0].content.upper()


def test_a_plain_and_an_async_function_answer() -> None:
    """With a text, or a whole reply."""
    assert asked(lambda request: request.messages[0].content).text == "three"
    assert asked(later).text == "THREE"
    whole = ChatReply(text="x", finish="length", model="m", latency_ms=5)
    assert asked(lambda _: whole) == whole


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (lambda _: 1 / 0, "crash", "f raised ZeroDivisionError"),
        (lambda _: 7, "config", "f returned int"),
        (lambda _: asyncio.sleep(900), "timeout", "f took longer than 0.01 seconds"),
    ],
)
def test_what_goes_wrong_is_a_failed_call(function: Callable[[ChatRequest], Any], kind: str, said: str) -> None:
    """Of this request; what is no answer at all stops the run."""
    with pytest.raises(CallFailed, match=said) as failed:
        asked(function, 0.01 if kind == "timeout" else 60)
    assert failed.value.kind == kind


def test_its_own_failure_is_passed_on() -> None:
    """It may stop the run."""

    def refused(_: ChatRequest) -> str:
        raise CallFailed("auth", "no key")

    with pytest.raises(CallFailed, match="no key") as failed:
        asked(refused)
    assert failed.value.kind == "auth"
