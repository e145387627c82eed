"""A clock that a test moves, and a sleep that obeys it."""

from __future__ import annotations

import asyncio


class FakeTime:
    """Time that passes only in sleeps (`jump`, the default) or only by `advance`; every sleep is kept in `waits`."""

    def __init__(self, *, jump: bool = True, now: float = 1000.0) -> None:
        self.now = now
        self.waits: list[float] = []
        self._jump = jump
        self._someone_slept = asyncio.Event()
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def clock(self) -> float:
        """The monotonic time."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Return when that much of this time has passed."""
        self.waits.append(seconds)
        self._someone_slept.set()
        if self._jump:
            self.now += seconds
            await asyncio.sleep(0)
            return
        awake = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, awake))
        await awake

    async def slept(self) -> None:
        """Return as soon as there was a first sleep."""
        await self._someone_slept.wait()

    async def advance(self, seconds: float) -> None:
        """Let time pass, wake who is due, and let everybody run until nothing moves."""
        await settle()
        self.now += seconds
        due = [awake for at, awake in self._sleepers if at <= self.now]
        self._sleepers = [(at, awake) for at, awake in self._sleepers if at > self.now]
        for awake in due:
            if not awake.done():
                awake.set_result(None)
        await settle()


async def settle() -> None:
    """Let every task run until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)
