"""Calls under way: how many there are, which of them only wait, and the seats that those who wait leave to others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from attrs import frozen

from skillopt_es.ports import NotStarted, Try, Wait

# How late a call that waits may notice that the run is to stop.
_LOOK_EVERY = 0.2


class Seats:
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
        """Wait for a seat, which `leave` gives back; raises NotStarted when those who come last are sent away."""
        if self._free:  # then nobody waits
            self._free -= 1
            return
        seat: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._before if before else self._last if last else self._queue).append(seat)
        try:
            await seat
        except asyncio.CancelledError:
            if seat.done() and not seat.cancelled() and seat.exception() is None:
                self.leave()  # who was sent away never had one
            raise

    def leave(self) -> None:
        """Give a seat to the next in line."""
        self._free += 1
        while self._free and (queue := self._before or self._queue or self._last):
            seat = queue.popleft()
            if not seat.done():
                self._free -= 1
                seat.set_result(None)

    def send_away(self) -> None:
        """Those who came last and still wait get no seat."""
        while self._last:
            seat = self._last.popleft()
            if not seat.done():
                seat.set_exception(NotStarted())


@frozen(kw_only=True)
class Left:
    """What is left of a limit (`calls`, `tokens`, `cost`, `minutes`), in words; `aside` of it is for open calls."""

    limit: str
    left: str
    most: str
    aside: str = ""


class InFlight:
    """
    How many calls are on their way right now, and what the others wait for, for whoever wants to know.

    `left` says what is left of the session's own budget.
    """

    def __init__(self, waits: Callable[[Wait], None] = lambda wait: None) -> None:
        self.count = 0
        self.waiting = 0
        self.waits = waits
        self.left: Callable[[], Sequence[Left]] = tuple


class Held:
    """
    One call's seat: given back while the call waits, so that another can be made.

    What is asked ahead of its time keeps its seat, because nobody would give it back; so does what holds something
    that others wait for. `stopped` says that a wait was broken off because the run is stopping.
    """

    def __init__(self, seats: Seats, in_flight: InFlight, stopping: Callable[[], bool], *, last: bool = False) -> None:
        self.stopped = False
        self._seats = seats
        self._in_flight = in_flight
        self._stopping = stopping
        self._last = last
        self._inside = False

    async def __aenter__(self) -> Self:
        await self._seats.enter(last=self._last)
        self._came_in()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inside:
            self._went_out()

    async def may_try_again(self, failed: Try) -> bool:
        """A seat limits no tries."""
        return True

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Sleeps while others have the seat; false when the run stops meanwhile."""
        keeps = self._last or wait.holds
        self._in_flight.waits(wait)
        self._in_flight.waiting += 1
        if not keeps:
            self._went_out()
        try:
            self.stopped = not await self._slept(sleep)
        finally:
            self._in_flight.waiting -= 1
        if self.stopped:
            return False
        if not keeps:
            await self._seats.enter(before=True)
            self._came_in()
        return True

    async def _slept(self, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Whether it could sleep to its end: a wait of minutes must not keep a run from stopping."""
        if self._stopping():
            return False
        sleeping = asyncio.ensure_future(sleep())
        try:
            while not sleeping.done():
                await asyncio.wait((sleeping,), timeout=_LOOK_EVERY)
                if not sleeping.done() and self._stopping():
                    return False
            await sleeping
            return True
        finally:
            sleeping.cancel()
            await asyncio.gather(sleeping, return_exceptions=True)

    def _came_in(self) -> None:
        self._inside = True
        self._in_flight.count += 1

    def _went_out(self) -> None:
        self._inside = False
        self._in_flight.count -= 1
        self._seats.leave()
