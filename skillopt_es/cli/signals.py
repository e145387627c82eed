"""
Ctrl-C: the first one finishes what is in flight and stops, the second one stops at once.

SIGTERM and SIGHUP are a first one, however often they come: a closing terminal and `timeout` send theirs twice.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from skillopt_es.cli.terminal import print_warning, tell
from skillopt_es.cli.waiting import WaitTeller
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.errors import Interrupted
from skillopt_es.sessions.opening import Session

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@asynccontextmanager
async def command_session() -> AsyncIterator[Session]:
    """The session of a command: the real world and clock, warnings and waits on the terminal, ended by signals."""
    in_flight = InFlight(WaitTeller(partial(tell, "waiting")))
    async with until_stopped(partial(tell, "stopping"), in_flight) as stopping:
        yield Session(
            now=lambda: datetime.now(UTC),
            clock=time.monotonic,
            warn=print_warning,
            stopping=stopping,
            in_flight=in_flight,
        )


@asynccontextmanager
async def until_stopped(say: Callable[[str], None], in_flight: InFlight) -> AsyncIterator[Callable[[], bool]]:
    """A function that answers whether to stop; a second signal cancels the work inside and raises Interrupted."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    asked = at_once = False

    def on_signal(number: signal.Signals) -> None:
        nonlocal asked, at_once
        if not asked:
            asked = True
            say(f"stopping: {_calls(in_flight.count)} in flight (Ctrl-C once more to stop at once)")
        elif number == signal.SIGINT:
            at_once = True
            task.cancel()

    # What the caller had us ignore (nohup, a background job of a script) stays ignored.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield lambda: asked
    except asyncio.CancelledError:
        if not at_once:
            raise
        raise Interrupted("stopped at once, as asked; calls in flight may be paid again") from None
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _calls(count: int) -> str:
    return f"finishing {'the 1 call' if count == 1 else f'the {count} calls'}" if count else "no call is"
