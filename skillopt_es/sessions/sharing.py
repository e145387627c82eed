"""A run's calls under limits that it shares with other runs: each try waits for its place and what it may cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from attrs import evolve, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.budget import NOTHING, Amount, Bound, CutShort, Reached, Tariff, attempts_made, longest_answer
from skillopt_es.events.values import Role
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, NotStarted, Try, Unanswered, Wait, may_try_again, rest
from skillopt_es.projections.prices import prices_in
from skillopt_es.projections.usage import TryTokens, requests_sent
from skillopt_es.sessions.commons import ADDRESS, VARIABLE, Commons, Full, Grant, Granted, endpoint_of

_LOOK_AGAIN = 0.1  # seconds until others may have settled


class Till(Protocol):
    """Where a run asks for its part of what all runs share: a file on this machine, or whoever has it."""

    async def take(self, endpoint: str, more: Amount, tokens: int, number: int | None = None) -> Grant:
        """As `Commons.take`."""
        ...

    async def settle(self, endpoint: str, number: int, came_to: Amount, tokens: int) -> None:
        """As `Commons.settle`."""
        ...

    async def aclose(self) -> None:
        """Lets go of it."""
        ...


@frozen
class Here:
    """The file on this machine."""

    commons: Commons

    async def take(self, endpoint: str, more: Amount, tokens: int, number: int | None = None) -> Grant:
        """At once."""
        return self.commons.take(endpoint, more, tokens, number)

    async def settle(self, endpoint: str, number: int, came_to: Amount, tokens: int) -> None:
        """At once."""
        self.commons.settle(endpoint, number, came_to, tokens)

    async def aclose(self) -> None:
        """Closes the file."""
        self.commons.close()


class SharedPurse:
    """What a session may use of what all runs share; `reached` says why nothing starts any more, once that is so."""

    def __init__(self, till: Till, endpoints: Mapping[Role, str], tariffs: Mapping[Role, Tariff]) -> None:
        self.reached: Reached | None = None
        self.till = till
        self.endpoints = endpoints
        self.tariffs = tariffs

    async def pay(
        self,
        role: Role,
        request: ChatRequest,
        bound: Bound,
        ask: Callable[[ChatRequest], Awaitable[ChatReply]],
        *,
        ahead: bool = False,
    ) -> ChatReply:
        """The answer; raises NotStarted or CutShort where the budget does not cover it, and what `ask` raises."""
        course = _Course(self, role, request, bound, ahead=ahead)
        if not await course.begins():
            await course.never_sent()
            raise NotStarted
        try:
            reply = await ask(evolve(request, further=course.goes_on))
        except CallFailed as failure:
            tried = attempts_made(failure.tries, None, failure.kind)
            await course.settle(tried, requests_sent(len(failure.tries), failure.kind))
            if course.refused:
                raise CutShort(failure) from failure
            raise
        except (NotStarted, Unanswered):
            await course.never_sent()
            raise
        # Whatever else ends it (a second Ctrl-C) leaves what it holds: it may have been paid for.
        await course.settle(attempts_made(reply.tries, reply.usage, ""), requests_sent(len(reply.tries) + 1, ""))
        return reply

    async def aclose(self) -> None:
        """Lets go of it."""
        await self.till.aclose()


class _Course:
    """One call's way: what is set aside for it, and what its failed tries have come to."""

    def __init__(self, purse: SharedPurse, role: Role, request: ChatRequest, bound: Bound, *, ahead: bool) -> None:
        self.refused = False
        self._purse, self._request, self._bound, self._ahead = purse, request, bound, ahead
        self._endpoint, self._tariff = purse.endpoints[role], purse.tariffs[role]
        self._number: int | None = None
        self._held = NOTHING
        self._tries = 0
        self._paced = 0
        self._failed: list[TryTokens] = []

    async def begins(self) -> bool:
        """Whether the first try may start."""
        return await self._next(self._tariff.worst(self._bound))

    async def goes_on(self, failed: Try) -> bool:
        """Whether another try may start after this one: as the run's own budget says, and then as this one does."""
        if not await may_try_again(self._request, failed):
            self.refused = True
            return False
        self._tries += 1
        self._failed += attempts_made((failed,), None, failed.kind)
        came_to = self._tariff.charged(self._failed, self._tries, self._bound)
        return await self._next(came_to + self._tariff.worst(self._bound))

    async def never_sent(self) -> None:
        """Nothing of the call has reached anybody."""
        if self._number is not None:
            await self.settle([], 0)

    async def settle(self, attempts: list[TryTokens], sent: int) -> None:
        """The call is over."""
        assert self._number is not None
        came_to = self._tariff.charged(attempts, sent, self._bound)
        await self._purse.till.settle(self._endpoint, self._number, came_to, self._paced - came_to.tokens)

    async def _next(self, needed: Amount) -> bool:
        more, tokens = needed - self._held, self._bound.input // 4 + self._bound.output
        while True:
            grant = await self._purse.till.take(self._endpoint, more, tokens, self._number)
            if isinstance(grant, Granted):
                self._number, self._held, self._paced = grant.number, needed, self._paced + tokens
                return await self._waited(grant.wait)
            if isinstance(grant, Reached) and not self._ahead:
                self._purse.reached = self._purse.reached or grant
            if not isinstance(grant, Full) or self._ahead or not await self._waited(_LOOK_AGAIN):
                self.refused = True
                return False

    async def _waited(self, seconds: float) -> bool:
        """Whether it could wait so long; false when the run is stopping."""
        if seconds <= 0:
            return True
        return await rest(self._request, Wait(kind="pace", seconds=seconds), lambda: asyncio.sleep(seconds))


def open_shared(config: RunConfig, folder: Path, environ: Mapping[str, str]) -> SharedPurse | None:
    """The purse of what a run in this folder shares; None where the environment names no such limits."""
    path = environ.get(VARIABLE, "")
    if not path:
        return None
    prices = prices_in(config.resolved).by_role
    return SharedPurse(
        _till(Path(path), folder),
        {role: endpoint_of(config, role) for role in config.roles},
        {
            role: Tariff(price=prices.get(role), most_output=longest_answer(config.role(role).extra_body))
            for role in config.roles
        },
    )


def _till(path: Path, folder: Path) -> Till:
    if path.name != ADDRESS:
        return Here(Commons(path, folder))
    from skillopt_es.sessions.counter import Elsewhere  # noqa: PLC0415 -- an HTTP client and server, for few runs

    return Elsewhere(path, folder)
