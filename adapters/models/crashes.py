"""An attempt that crashed is made again: what was reported of it and what it took stands among the call's tries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from attrs import evolve

from skillopt_es.adapters.models.errors import failure
from skillopt_es.adapters.models.retry import PastTries, RetryPolicy
from skillopt_es.ports import (
    CallFailed,
    ChatReply,
    ChatRequest,
    Course,
    ModelSettings,
    Try,
    Usage,
    Wait,
    another_attempt,
)

_UNTOLD = Usage()
Once = Callable[[ChatRequest], Awaitable[ChatReply]]


def policy_of(settings: ModelSettings) -> RetryPolicy:
    """How one role's calls are tried again."""
    return RetryPolicy(
        attempts=settings.attempts,
        base=settings.backoff_seconds,
        cap=settings.backoff_cap_seconds,
        patience=settings.patience_seconds,
        seed=settings.seed,
    )


def tries_of(failed: CallFailed, used: Usage = _UNTOLD) -> tuple[Try, ...]:
    """The tries of a call that failed; where nothing is said of them (by code of the user's), there was one."""
    only = Try(kind=failed.kind, status=failed.status, message=failed.message, waited_ms=0, usage=used)
    return failed.tries or (only,)


async def despite_crashes(request: ChatRequest, course: Course, once: Once, policy: RetryPolicy) -> ChatReply:
    """
    The answer of the first attempt that does not crash; raises what the last one raised, with the tries of all.

    A further attempt is another draw: it has another seed, and the calls that it makes itself have places of their own.
    """
    tries: tuple[Try, ...] = ()
    past, attempt = PastTries(), request
    while True:
        try:
            reply = await once(attempt)
        except CallFailed as failed:
            if failed.kind != "crash":
                failed.tries = (*tries, *failed.tries)
                raise
            failed.tries = (*tries, *tries_of(failed))
            crash = evolve(failure("crash", failed.message), status=failed.status)
            wait = policy.wait_after(crash, request.slot, past)
            if wait is None:
                raise
            past = past.and_then(crash, wait)
            last = evolve(failed.tries[-1], waited_ms=round(1000 * wait))
            failed.tries = tries = (*failed.tries[:-1], last)
            told = Wait(kind="crash", seconds=wait, message=failed.message)
            if not await course.may_try_again(last) or not await course.rest(told, partial(asyncio.sleep, wait)):
                raise
            attempt = another_attempt(request, past.blind + 1)
        else:
            return evolve(reply, tries=(*tries, *reply.tries)) if tries else reply
