"""Room for calls in flight, which adapts to what an endpoint bears."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from attrs import frozen

Clock = Callable[[], float]

# How much room a round of answers gives back, and how often a 429 may take half of it.
_GROWTH = 0.1
_HALVE_AT_MOST_EVERY = 1.0
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
_FEWEST = 4
_MOST_WRONG = 0.1


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


# The log and its readers, pipes, the event loop, the files that an environment opens.
_KEPT_FREE = 32
_ROLES = 2


def most_connections() -> int | None:
    """As many as one role may have open, so that files are left for all else; None for no limit."""
    with suppress(ImportError):  # Windows has neither the module nor the limit
        import resource  # noqa: PLC0415

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if allowed != resource.RLIM_INFINITY:
            return max(1, (allowed - _KEPT_FREE) // _ROLES)
    return None
