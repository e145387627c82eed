"""A run's calls under limits that it shares with other runs: each try waits for its place and what it may cost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from attrs import frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.budget import NOTHING, Amount, Payment, Reached
from skillopt_es.events.values import Role
from skillopt_es.ports import Wait
from skillopt_es.sessions.commons import ADDRESS, VARIABLE, Commons, Full, Grant, Granted, endpoint_of

_LOOK_AGAIN = 0.1  # seconds until others may have settled


class Till(Protocol):
    """Where a run asks for its part of what all runs share: a file on this machine, or the process that has it."""

    async def take(self, endpoint: str, more: Amount, tokens: int, number: int | None = None) -> Grant:
        """As `Commons.take`."""
        ...

    def settle(self, endpoint: str, number: int, came_to: Amount, tokens: int) -> None:
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

    def settle(self, endpoint: str, number: int, came_to: Amount, tokens: int) -> None:
        """At once."""
        self.commons.settle(endpoint, number, came_to, tokens)

    async def aclose(self) -> None:
        """Closes the file."""
        self.commons.close()


@frozen
class _Held:
    """What is set aside for a call, under which number, and the tokens of its place in the pace."""

    number: int | None = None
    amount: Amount = NOTHING
    paced: int = 0


class SharedAccount:
    """What all runs that share it may use of their endpoints, for the calls of one of them."""

    def __init__(self, till: Till, endpoints: Mapping[Role, str]) -> None:
        self.reached: Reached | None = None
        self._till = till
        self._endpoints = endpoints
        self._held: dict[Payment, _Held] = {}

    async def reserve(self, call: Payment, needed: Amount) -> bool:
        """Sets so much aside for a call in place of what is, and waits for its place in the pace."""
        if not call.sends:
            return True  # what an agent asks itself is counted
        held, tokens = self._held.get(call, _Held()), call.bound.input // 4 + call.bound.output
        while True:
            grant = await self._till.take(self._endpoints[call.role], needed - held.amount, tokens, held.number)
            match grant:
                case Granted(number, wait):
                    self._held[call] = _Held(number, needed, held.paced + tokens)
                    return await _waited(call, wait, holds=True)
                case Reached():
                    self.reached = self.reached or (None if call.ahead else grant)
                    return False
                case Full():
                    if call.ahead or not await _waited(call, _LOOK_AGAIN, holds=False):
                        return False

    def settle(self, call: Payment, came_to: Amount | None) -> None:
        """What was broken off stays set aside: it may have been paid for, and is spent once the run has ended."""
        held = self._held.pop(call, None)
        if held is not None and held.number is not None and came_to is not None:
            self._till.settle(self._endpoints[call.role], held.number, came_to, held.paced - came_to.tokens)

    def give_way(self, call: Payment) -> None:
        """Nothing is set aside for an attempt."""

    async def aclose(self) -> None:
        """Lets go of it."""
        await self._till.aclose()


async def _waited(call: Payment, seconds: float, *, holds: bool) -> bool:
    """Whether the call could wait so long; false when the run is stopping."""
    if seconds <= 0:
        return True
    return await call.rest(Wait(kind="pace", seconds=seconds, holds=holds), lambda: asyncio.sleep(seconds))


def open_shared(config: RunConfig, folder: Path, environ: Mapping[str, str]) -> SharedAccount | None:
    """The account that a run in this folder shares; None where the environment names no such limits."""
    path = environ.get(VARIABLE, "")
    if not path:
        return None
    return SharedAccount(_till(Path(path), folder), {role: endpoint_of(config, role) for role in config.roles})


def _till(path: Path, folder: Path) -> Till:
    if path.name != ADDRESS:
        return Here(Commons(path, folder))
    from skillopt_es.sessions.counter import Elsewhere  # noqa: PLC0415 -- an HTTP client and server, for few runs

    return Elsewhere(path, folder)
