"""Sleeping until a time, or until somebody has news."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

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
            await asyncio.gather(sleeping, return_exceptions=True)

    def wake(self, most: int | None = None) -> int:
        """Wakes them all, or so many of those who have slept longest; how many were woken."""
        chosen = list(self._sleepers)[:most]
        for woken in chosen:
            del self._sleepers[woken]
            if not woken.done() and not woken.get_loop().is_closed():  # the adapter may outlive an event loop
                woken.set_result(None)
        return len(chosen)
