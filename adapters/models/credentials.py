"""Secrets that change while a run goes on: a cache that renews a token before it ends, for whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from attrs import frozen

from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.limits import Clock
from skillopt_es.adapters.models.reading import Object, as_object, as_text, parsed_json

RENEW_BEFORE = 300.0  # as azure-identity does: a call of some minutes still arrives with a token that is good
# They live for an hour at least: this is a little less.
_UNKNOWN_LIFE = 3000.0


class Credential(Protocol):
    """Bearer tokens of one role; safe to ask concurrently."""

    async def token(self) -> str | Failure:
        """A token that is valid now, or why there is none."""
        ...

    def forget(self, token: str) -> None:
        """The endpoint refused this token: get another one next time."""
        ...


@frozen(repr=False)
class Token:
    """A token and when it ends (wall clock)."""

    text: str
    expires: float


Source = Callable[[float], Awaitable[Token | Failure]]


class TokenCache:
    """Keeps a token until it is about to end; callers that come together cause one request."""

    def __init__(self, source: Source, *, wall_clock: Clock) -> None:
        self._source = source
        self._wall_clock = wall_clock
        self._known: Token | None = None
        self._asking: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def token(self) -> str | Failure:
        """A token that is good for five minutes at least, or why there is none."""
        known = self._good()
        if known is not None:
            return known
        async with self._lock():
            # Whoever had the lock before may have renewed it.
            known = self._good()
            if known is not None:
                return known
            found = await self._source(self._wall_clock())
            if isinstance(found, Token):
                self._known = found
                return found.text
            old = self._known  # it may still do while new ones cannot be had
            return old.text if old is not None and old.expires > self._wall_clock() else found

    def forget(self, token: str) -> None:
        """The endpoint refused this token; one that came since then stays."""
        if self._known is not None and self._known.text == token:
            self._known = None

    def _good(self) -> str | None:
        known = self._known
        return known.text if known is not None and known.expires - self._wall_clock() > RENEW_BEFORE else None

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        # A lock belongs to one event loop, which the adapter may outlive.
        if self._asking is None or self._asking[0] is not loop:
            self._asking = (loop, asyncio.Lock())
        return self._asking[1]


def read_token(body: bytes, now: float, who: str) -> Token | Failure:
    """The token in an answer of any of these sources."""
    said = as_object(parsed_json(body))
    text = as_text(said.get("access_token")) or as_text(said.get("accessToken"))
    # It goes into a header: a line end in it would begin another one.
    if not text or not text.isascii() or not text.isprintable():
        return failure("auth", f"{who} answered without a token")
    return Token(text, _expiry(said, now))


def _expiry(said: Object, now: float) -> float:
    at = _number(said.get("expires_on"))
    if at is not None:
        return at
    seconds = _number(said.get("expires_in"))
    if seconds is not None:
        return now + seconds
    try:  # older command lines only tell the local time
        return datetime.fromisoformat(as_text(said.get("expiresOn"))).timestamp()
    except ValueError:
        return now + _UNKNOWN_LIFE


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None
