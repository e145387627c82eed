"""Work on a thread that nobody waits for: its result, its error, or the end of its time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from skillopt_es.adapters.background import finished, in_background


def test_what_work_returns_or_raises_comes_back() -> None:
    """As if it had been awaited."""
    assert asyncio.run(in_background(lambda stop: 7, seconds=60)) == 7
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_background(lambda stop: 1 / 0, seconds=60))


def test_work_that_takes_too_long_is_told_to_stop() -> None:
    """And has a moment to clean up."""
    cleaned = threading.Event()

    def work(stop: threading.Event) -> None:
        stop.wait()
        cleaned.set()

    with pytest.raises(TimeoutError):
        asyncio.run(in_background(work, seconds=0.01, wait_after_stop=60))
    assert cleaned.is_set()


def test_all_async_work_shares_one_loop() -> None:
    """What it keeps open can be used again."""

    async def here() -> int:
        return id(asyncio.get_running_loop())

    assert finished(here(), seconds=60) == finished(here(), seconds=60)
