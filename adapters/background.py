"""Work on threads that nobody waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")


async def in_background(work: Callable[[threading.Event], T], *, seconds: float, wait_after_stop: float = 0.0) -> T:
    """
    What `work` returns, computed on a thread of its own; TimeoutError when it takes longer than `seconds`.

    On time-out or cancellation the event that `work` was given is set, and `work` has `wait_after_stop` seconds to
    clean up. The thread is a daemon: work that never ends does not keep the program from ending, as it would in
    `asyncio.to_thread`.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stop = threading.Event()

    def post(deliver: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(lambda: None if done.done() else deliver())
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def run() -> None:
        try:
            result = work(stop)
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits
            failure = error
            post(lambda: done.set_exception(failure))
        else:
            post(lambda: done.set_result(result))

    threading.Thread(target=run, daemon=True, name="skillopt-es-background").start()
    in_time = False
    try:
        in_time = bool((await asyncio.wait({done}, timeout=seconds))[0])
    finally:
        if not in_time:
            await _give_up(done, stop, wait_after_stop)
    if not in_time:
        raise TimeoutError
    return done.result()


async def _give_up(done: asyncio.Future[T], stop: threading.Event, wait: float) -> None:
    stop.set()
    if wait:
        await asyncio.wait({done}, timeout=wait)
    if not done.cancel():
        done.exception()  # seen, so that asyncio does not complain about it


def finished(work: Awaitable[T], *, seconds: float) -> T:
    """
    What `work` comes to, awaited on a loop of a thread of its own; TimeoutError when it takes longer than `seconds`.

    It is one loop for all: what a caller keeps open from one piece of work to the next can be used again.
    """
    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), _loop())
    return future.result()


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="skillopt-es-awaiting").start()
    return loop
