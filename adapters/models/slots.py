"""Room for calls in flight, which adapts to what an endpoint bears."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

Clock = Callable[[], float]

# How much room a round of answers gives back, and how often a 429 may take half of it.
_GROWTH = 0.1
_HALVE_AT_MOST_EVERY = 1.0


class Slots:
    """
    Room for so many calls in flight: fewer after a 429, one in ten more for every round that went well.

    A burst of 429s is one piece of news, so only one within a second, and only for a call that began after the last
    one, halves the room: that of the most calls that were in flight, for what was never used says nothing.
    """

    def __init__(self, most: int, clock: Clock) -> None:
        self._most = most
        self._room = float(most)
        self._clock = clock
        self._inside = self._peak = 0
        self._shrunk_at = -math.inf
        self._queue: deque[asyncio.Future[None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def room(self) -> int:
        """How many calls may be in flight just now."""
        return int(self._room)

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
            if place.done() and not place.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the place to the next in the queue."""
        self._inside -= 1
        self._let_in()

    def went_well(self) -> None:
        """An answer came: a little more room."""
        if self._room < self._most:
            self._room = min(float(self._most), self._room + 1 / self._room + _GROWTH)
            self._let_in()

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
            if not place.done():
                self._came_in()
                place.set_result(None)
