"""A limit on how many calls run at once; some of them start only when no other is waiting."""

from __future__ import annotations

import asyncio
from collections import deque

from skillopt_es.ports import NotStarted


class Places:
    """
    Places for calls in flight, first come first served.

    Who had one `before` gets the next one, who comes `last` waits until nobody else does.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._before: deque[asyncio.Future[None]] = deque()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._last: deque[asyncio.Future[None]] = deque()

    async def enter(self, *, before: bool = False, last: bool = False) -> None:
        """Wait for a place, which `leave` gives back; raises NotStarted when those who come last are sent away."""
        if self._free:  # then nobody waits
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._before if before else self._last if last else self._queue).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # who was sent away never had one
            raise

    def leave(self) -> None:
        """Give a place to the next in line."""
        self._free += 1
        while self._free and (queue := self._before or self._queue or self._last):
            place = queue.popleft()
            if not place.done():
                self._free -= 1
                place.set_result(None)

    def send_away(self) -> None:
        """Those who came last and still wait get no place."""
        while self._last:
            place = self._last.popleft()
            if not place.done():
                place.set_exception(NotStarted())
