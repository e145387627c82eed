"""
One limiter per role's model, in front of the wire: calls in flight, calls and tokens a minute, pauses, the circuit.

Others are held back only by evidence that they would be refused, too. A single refusal is its own call's affair. A row
of them closes the endpoint for as long as it said, but for one caller per answer that still comes in; an answer to a
call that was sent during the pause ends it. Room in flight grows by a place a round and is halved by a burst of 429s,
as TCP does (V. Jacobson, Congestion Avoidance and Control, 1988), whose acknowledgements let packets out one by one,
too. Where one threshold explains nine tenths of the refusals, it is the room. Allowances a minute are token buckets.

Order: a slot first, then whatever wait the buckets and a pause ask for, then the circuit. A caller that waits keeps its
slot: nobody behind it could go earlier. Waiting for the next try of a failed call holds no slot.

Tried and dropped (docs/dev/decisions/0018-a-rate-limit-is-patience.md):

- Every 429 held everybody back: a run with faults took 3.5 times as long as one without, and 2.3 times since.
- A backoff of ours on top of what the endpoint says: 508 calls of which a fifth is refused took 32 s instead of 12.4.
- Callers that held their worker between two tries: on 16 workers a fifth of refusals left most of them idle.
- Not done: asking twice at once (paid twice), and pacing by `x-ratelimit-remaining` before it is 0, because a limit
  that others share moves meanwhile.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from attrs import frozen

from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.retry import puts_off
from skillopt_es.ports import calls_within

Clock = Callable[[], float]

_GROWTH = 0.1  # of the room, given back by a round of answers on top of one place: a large room is back sooner
_HALVE_AT_MOST_EVERY = 1.0  # seconds: more often, six refusals in a moment would make one place of 64
# After so long without a refusal one call more at once is tried, where the endpoint has shown that it counts them.
_TRY_MORE_AFTER = 30.0


class Slots:
    """
    Room for so many calls in flight: fewer after a 429, one in ten more for every round that went well.

    A burst of 429s is one piece of news, so only one within a second, and only for a call that began after the last
    one, halves the room: that of the most calls that were in flight, for what was never used says nothing. Where
    the refusals show how many calls an endpoint takes at once, that is the room.
    """

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._room = float(most)
        self._clock = clock
        self._inside = self._peak = 0
        self._shrunk_at = self._found_at = -math.inf
        self._seen: deque[Seen] = deque(maxlen=LOOKED_AT)
        self._ceiling = most
        self._queue: deque[asyncio.Future[None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def room(self) -> int:
        """How many calls may be in flight just now."""
        return int(self._room)

    @property
    def inside(self) -> int:
        """How many are in flight."""
        return self._inside

    async def acquire(self) -> None:
        """Wait for a place, first come first served."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # futures belong to one event loop, the adapter may outlive it
            self._loop, self._inside, self._peak = loop, 0, 0
            self._queue.clear()
        if self._inside < self.room and not self._queue:
            self._came_in()
            return
        place = loop.create_future()
        self._queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            # It was let in and cancelled at the same moment: the place goes to the next one.
            if place.done() and not place.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the place to the next in the queue."""
        self._inside -= 1
        self._let_in()

    def went_well(self, level: int = 0) -> None:
        """An answer came to a call that was one of so many: a little more room."""
        self._note(level, refused=False)
        if self._ceiling < self._most and self._clock() - self._found_at >= _TRY_MORE_AFTER:
            self._ceiling, self._found_at = self._ceiling + 1, self._clock()
            self._seen.clear()
        if self._room < self._ceiling:
            # So a round of as many answers as there is room adds one place, and a tenth.
            self._room = min(float(self._ceiling), self._room + 1 / self._room + _GROWTH)
            self._let_in()

    def refused(self, level: int = 0) -> None:
        """A call that was one of so many was refused: perhaps that is why."""
        self._note(level, refused=True)
        found = ceiling(self._seen)
        if found is not None:
            self._ceiling, self._found_at = found, self._clock()
            self._room = float(found)

    def _note(self, level: int, *, refused: bool) -> None:
        if level:
            self._seen.append(Seen(level, refused))

    def too_many(self, began: float) -> None:
        """The endpoint said 429 to a call that began then: half the room."""
        now = self._clock()
        if began > self._shrunk_at and now - self._shrunk_at >= _HALVE_AT_MOST_EVERY:
            self._room = max(1.0, min(self._room, self._peak or self._room) / 2)
            self._shrunk_at, self._peak = now, self._inside

    def _came_in(self) -> None:
        self._inside += 1
        self._peak = max(self._peak, self._inside)

    def _let_in(self) -> None:
        while self._queue and self._inside < self.room:
            place = self._queue.popleft()
            # Who was cancelled while waiting is passed over.
            if not place.done():
                self._came_in()
                place.set_result(None)


# How many calls are looked at; how many of each kind say anything; which part of them chance may explain.
LOOKED_AT = 32
_FEWEST = 4  # with three of a kind, one that is there by chance would already be a third
_MOST_WRONG = 0.1  # nine of ten calls fit the level, then: refusals by chance fit none so well


@frozen
class Seen:
    """What became of a call, and how many were in flight when it was sent, itself included."""

    level: int
    refused: bool


def ceiling(seen: Sequence[Seen]) -> int | None:
    """
    The most calls at once that were not refused; None where the refusals have nothing to do with how many there were.

    An endpoint that counts refuses nearly all that are sent above its limit and nearly none below; one that counts
    calls a minute, or fails by chance, refuses at any level.
    """
    refused = sum(one.refused for one in seen)
    if refused < _FEWEST or len(seen) - refused < _FEWEST:
        return None
    best, fewest = None, len(seen)
    for level in sorted({one.level for one in seen if one.refused}):
        wrong = sum(one.refused != (one.level >= level) for one in seen)
        if wrong < fewest:
            best, fewest = level, wrong
    if best is None or fewest > _MOST_WRONG * len(seen):
        return None
    above = [one for one in seen if one.level >= best]
    enough = sum(one.refused for one in above) >= max(_FEWEST, (1 - _MOST_WRONG) * len(above))
    return max(1, best - 1) if enough else None


def most_connections(roles: int) -> int | None:
    """As many as each of so many roles may have open, so that files are left for all else; None for no limit."""
    with suppress(ImportError):  # Windows has neither the module nor the limit
        import resource  # noqa: PLC0415

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed != resource.RLIM_INFINITY:
            return calls_within(allowed, roles)
    return None


Sleep = Callable[[float], Awaitable[None]]


class Naps:
    """Those who sleep, in the order in which they lay down."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._sleepers: dict[asyncio.Future[None], None] = {}

    async def nap(self, seconds: float) -> bool:
        """Sleeps so long; whether it was woken before that."""
        woken = asyncio.get_running_loop().create_future()
        sleeping = asyncio.ensure_future(self._sleep(seconds))
        self._sleepers[woken] = None
        try:
            await asyncio.wait((sleeping, woken), return_when=asyncio.FIRST_COMPLETED)
            return woken.done()
        finally:
            self._sleepers.pop(woken, None)
            woken.cancel()
            sleeping.cancel()
            # What is cancelled here is awaited here: no sleeper stays behind in the loop.
            await asyncio.gather(sleeping, return_exceptions=True)

    def wake(self, most: int | None = None) -> int:
        """Wakes them all, or so many of those who have slept longest; how many were woken."""
        chosen = list(self._sleepers)[:most]
        for woken in chosen:
            del self._sleepers[woken]
            if not woken.done() and not woken.get_loop().is_closed():  # the adapter may outlive an event loop
                woken.set_result(None)
        return len(chosen)


# How a caller sleeps: it is told why and for how long at most; false means that the run is stopping.
Rest = Callable[[str, float, Callable[[], Awaitable[object]]], Awaitable[bool]]

# The part of a minute's allowance that may be used at once; no minute exceeds its allowance by more than this.
_BURST = 0.1
# So many refusals in a row, without an answer between them, are no chance: the endpoint takes nobody now.
_CLOSED_AFTER = 8
# So many failures in a row that nobody explains are an outage: the first answer after them is news for all who wait.
_DOWN_AFTER = 4


_STOPPED = Failure(kind="rate_limit", message="the run is stopping", retry=False)


async def _sleep_out(_why: str, _seconds: float, sleep: Callable[[], Awaitable[object]]) -> bool:
    await sleep()
    return True


class TokenBucket:
    """An allowance per minute that callers reserve in turn; who comes too early is told how long to wait."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._rate = per_minute / 60
        # At least one whole call, or a small allowance would never let any through.
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
        self._pausing, self._pacing, self._retrying = Naps(sleep), Naps(sleep), Naps(sleep)
        self._spent_until = self._closed_until = self._closed_at = -math.inf
        self._let_in = 0  # callers that may pass a pause
        self._refused = _CLOSED_AFTER - 1  # in a row; an endpoint that has answered nobody yet is believed at once
        self._unexplained = 0  # in a row
        self._answered_at = -math.inf
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

    async def enter(self, tokens: int, rest: Rest = _sleep_out) -> Failure | None:
        """Wait for a slot and keep it until `leave`; a failure instead means: no slot, do not call."""
        if self._failure:
            return self._failure
        await self._slots.acquire()
        try:
            goes_on = await self._wait(tokens, rest)
        except BaseException:
            # A wait that is cancelled gives its slot back, too.
            self._slots.release()
            raise
        failed = self._failure if goes_on else _STOPPED
        if failed:
            self._slots.release()
        return failed

    @property
    def level(self) -> int:
        """How many calls are in flight."""
        return self._slots.inside

    def leave(self) -> None:
        """Give the slot back."""
        self._slots.release()

    async def before_next_try(self, seconds: float) -> None:
        """Sleeps so long, or until an endpoint that answered nobody does so again."""
        await self._retrying.nap(seconds)

    def answered(self, spent_for: float | None = None, *, began: float = 0.0, level: int = 0) -> None:
        """
        A call that began then, as one of so many in flight, went well.

        `spent_for` is for how long the endpoint will take no further one.
        """
        self._answered_at = self._clock()
        self._slots.went_well(level)
        self._refused = 0
        if self._unexplained >= _DOWN_AFTER:
            self._retrying.wake()
        self._unexplained = 0
        if self._closed_until > self._clock():
            if began > self._closed_at:
                self._closed_until = -math.inf
                self._pausing.wake()
            elif not self._pausing.wake(1):
                self._let_in += 1
        if spent_for is not None:
            self._spent_until = max(self._spent_until, self._clock() + spent_for)

    @property
    def has_answered(self) -> bool:
        """Whether the endpoint has answered anybody."""
        return self._answered_at > -math.inf

    def answered_since(self, moment: float) -> bool:
        """Whether the endpoint has answered anybody since then."""
        return self._answered_at > moment

    def learn(self, failed: Failure, *, final: bool, began: float = 0.0, level: int = 0) -> None:
        """
        Less room and a pause for everybody when calls are refused one after another; the circuit when nothing can work.

        A single 429 among answers is that call's own affair: it waits, the others go on. A reply that was cut is none
        of the endpoint's load at all.
        """
        if puts_off(failed):
            self._slots.refused(level)
            self._refused += 1
            if self._refused >= _CLOSED_AFTER:
                self._close(failed.server_wait or 0.0, began)
        elif failed.retry:
            self._unexplained += 1
        if final and failed.systemic and not self._failure:
            self._failure = failed
            # Those who wait go on, and find the circuit open.
            self._pausing.wake()
            self._pacing.wake()

    def settle(self, estimated: int, used: int) -> None:
        """Replace a call's estimated tokens by those it really used."""
        if self._tokens:
            self._tokens.refund(estimated - used)

    def _close(self, seconds: float, began: float) -> None:
        now = self._clock()
        self._slots.too_many(began)
        if self._closed_until <= now:
            self._closed_at, self._let_in = now, 0
        self._closed_until = max(self._closed_until, now + seconds)

    async def _wait(self, tokens: int, rest: Rest) -> bool:
        """Whether the call may start, once everything that it has to wait for is over."""
        # Reserved before the wait, so that whoever comes later waits behind it.
        wait = self._requests.reserve(1) if self._requests else 0.0
        if self._tokens:
            wait = max(wait, self._tokens.reserve(tokens))
        if wait:
            start = self._clock() + wait
            if not await self._until("pace", lambda: start, rest):
                return False
        return await self._pass(rest)

    async def _pass(self, rest: Rest) -> bool:
        """Sits out the pauses; who is woken from one may go in the place of a call that was answered."""
        if not await self._until("rate_limit", lambda: self._spent_until, rest):
            return False
        while (left := self._closed_until - self._clock()) > 0 and not self._failure:
            if self._let_in:
                self._let_in -= 1
                return True
            nap = _Nap(self._pausing, left)
            if not await rest("rate_limit", left, nap):
                return False
            if nap.woken:
                return True
        return True

    async def _until(self, why: str, moment: Callable[[], float], rest: Rest) -> bool:
        # The moment may be put off meanwhile.
        while (left := moment() - self._clock()) > 0 and not self._failure:
            if not await rest(why, left, _Nap(self._pacing, left)):
                return False
        return True


class _Nap:
    """One nap; `woken` says whether it ended early."""

    def __init__(self, naps: Naps, seconds: float) -> None:
        self._naps, self._seconds = naps, seconds
        self.woken = False

    async def __call__(self) -> None:
        self.woken = await self._naps.nap(self._seconds)
