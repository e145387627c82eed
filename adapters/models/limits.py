"""
One limiter per role's model, in front of the wire: calls in flight, calls and tokens a minute, pauses, the circuit.

Order: a slot first, then whatever wait the buckets and a pause ask for, then the circuit. A caller that waits keeps its
slot: nobody behind it could go earlier. Waiting for the next try of a failed call holds no slot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.retry import LONGEST_SERVER_WAIT
from skillopt_es.adapters.models.slots import Clock, Slots
from skillopt_es.ports import SYSTEMIC

Sleep = Callable[[float], Awaitable[None]]

# The part of a minute's allowance that may be used at once; no minute exceeds its allowance by more than this.
_BURST = 0.1
# What an older reply counts beside the next one, and the share of refused ones above which everybody waits.
_MEMORY = 0.9
_MOST_REFUSED = 0.5


class TokenBucket:
    """An allowance per minute that callers reserve in turn; who comes too early is told how long to wait."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._rate = per_minute / 60
        self._capacity = max(1.0, per_minute * _BURST)
        self._level = self._capacity
        self._clock = clock
        self._filled_at = clock()

    def reserve(self, amount: float) -> float:
        """Take the amount, going into debt if need be; the seconds until it may be used."""
        self._fill()
        # More than the bucket can ever hold is let through when it is full, and paid for by those that follow.
        missing = min(amount, self._capacity) - self._level
        self._level -= amount
        return max(0.0, missing / self._rate)

    def refund(self, amount: float) -> None:
        """Correct an earlier reservation; a negative amount takes more."""
        self._fill()
        self._level = min(self._capacity, self._level + amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._filled_at) * self._rate)
        self._filled_at = now


class Limiter:
    """Lets calls through to one endpoint; after a systemic failure it lets none through again."""

    def __init__(
        self, *, concurrency: int, requests_per_minute: int, tokens_per_minute: int, clock: Clock, sleep: Sleep
    ) -> None:
        self._slots = Slots(concurrency, clock)
        self._requests = TokenBucket(requests_per_minute, clock) if requests_per_minute > 0 else None
        self._tokens = TokenBucket(tokens_per_minute, clock) if tokens_per_minute > 0 else None
        self._clock = clock
        self._sleep = sleep
        self._paused_until = 0.0
        self._refused = self._replies = 0.0  # the last 429 and the last replies, older ones counting less
        self._failure: Failure | None = None

    @property
    def failure(self) -> Failure | None:
        """The systemic failure that opened the circuit, once there was one."""
        return self._failure

    @property
    def counts_tokens(self) -> bool:
        """Whether callers must estimate tokens."""
        return self._tokens is not None

    @property
    def room(self) -> int:
        """How many calls may be in flight just now."""
        return self._slots.room

    async def enter(self, tokens: int) -> Failure | None:
        """Wait for a slot and keep it until `leave`; a failure instead means: no slot, do not call."""
        if self._failure:
            return self._failure
        await self._slots.acquire()
        try:
            await self._wait(tokens)
        except BaseException:
            self._slots.release()
            raise
        if self._failure:
            self._slots.release()
        return self._failure

    def leave(self) -> None:
        """Give the slot back."""
        self._slots.release()

    def answered(self, spent_for: float | None = None) -> None:
        """A call went well; `spent_for` is for how long the endpoint will take no further one."""
        self._remember(0.0)
        self._slots.went_well()
        if spent_for is not None:
            self._pause(spent_for)

    def learn(self, failed: Failure, *, final: bool, began: float = 0.0) -> None:
        """
        Less room after a 429, and a pause for everybody when most calls are refused; the circuit when nothing can work.

        A single 429 among answers is that call's own affair: it waits, the others go on.
        """
        if failed.kind == "rate_limit":
            self._slots.too_many(began)
            self._remember(1.0)
            if self._refused > _MOST_REFUSED * self._replies:
                self._pause(failed.server_wait or 0.0)
        if final and failed.kind in SYSTEMIC and not failed.perhaps_request and not self._failure:
            self._failure = failed

    def settle(self, estimated: int, used: int) -> None:
        """Replace a call's estimated tokens by those it really used."""
        if self._tokens:
            self._tokens.refund(estimated - used)

    def _remember(self, refused: float) -> None:
        self._refused = self._refused * _MEMORY + refused
        self._replies = self._replies * _MEMORY + 1.0

    def _pause(self, seconds: float) -> None:
        if 0 < seconds <= LONGEST_SERVER_WAIT:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    async def _wait(self, tokens: int) -> None:
        wait = self._requests.reserve(1) if self._requests else 0.0
        if self._tokens:
            wait = max(wait, self._tokens.reserve(tokens))
        start = self._clock() + wait if wait else 0.0
        # Another 429 may prolong the pause meanwhile.
        while (left := max(start, self._paused_until) - self._clock()) > 0:
            if self._failure:
                return
            await self._sleep(left)
