"""Ctrl-C: the first one finishes what is in flight and stops, the second one stops at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from skillopt_es.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@asynccontextmanager
async def until_stopped(say: Callable[[str], None]) -> AsyncIterator[Callable[[], bool]]:
    """A function that answers whether to stop; a second signal cancels the work inside and raises Interrupted."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    asked = 0

    def on_signal() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            say("stopping: finishing the calls in flight (once more to stop at once)")
        else:
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield lambda: asked > 0
    except asyncio.CancelledError:
        if asked < 2:
            raise
        raise Interrupted(
            "stopped at once; calls in flight may be paid again", hint="`skillopt-es resume` goes on"
        ) from None
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
