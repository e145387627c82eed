"""
The process of a long run: how it is set up, how many files it may have open, and what Ctrl-C does.

The first Ctrl-C finishes what is in flight and stops, the second one stops at once. SIGTERM does the same, but a second
one right after the first is its echo, as `timeout` sends it. SIGHUP never counts twice: a closing terminal repeats it.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import math
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from attrs import define

from skillopt_es.cli.terminal import print_note, print_warning, tell
from skillopt_es.door.work import Watch
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.errors import Interrupted
from skillopt_es.events.lock import require_locks
from skillopt_es.ports import Wait, files_needed

SWITCH_SECONDS = 0.0005  # Python's own 5 ms make each commit wait longer than the disk takes
# New objects: a collection for every 700, Python's own, costs a few percent and finds next to nothing
# (`tests/bench/bench_trainer.py`).
GARBAGE_THRESHOLD = 20_000
# Some thousands of calls of each role at once; a limit that is higher, or none, is of no more use.
MOST_OPEN_FILES = 8192
# SQLite says the same of other causes: below this limit, too many open files is the likely one.
_FEW = 1024


def prepare_process() -> None:
    """
    Refuses a system on which no run can be written.

    Lets the log's writer thread in quickly while the event loop is busy with replies, and looks for garbage less often.
    As many files may be open as the system lets us have.
    """
    require_locks()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)
    with suppress(ImportError):  # Windows has neither the module nor the limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):
                # A kernel may refuse what its limit seems to allow; `too_few_files` says what that means.
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def too_few_files(workers: int, roles: int) -> str:
    """What to tell a user whose shell allows fewer open files than so many workers need; empty where it does not."""
    most, needed = _most_files(), files_needed(workers, roles)
    if most >= needed:
        return ""
    return (
        f"this shell allows {most} open files, and {workers} workers need more: fewer will run at once "
        f"(`ulimit -n {needed}` allows them)"
    )


def few_files(error: BaseException) -> str:
    """The sentence for an error that comes from too many open files, whoever raised it; empty for any other."""
    seen: BaseException | None = error
    most = _most_files()
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in {errno.EMFILE, errno.ENFILE}:
            return f"too many open files: this shell allows {most} at once"
        if isinstance(seen, sqlite3.OperationalError) and "unable to open database file" in str(seen) and most < _FEW:
            return f"the log cannot be opened, most likely for too many open files: this shell allows {most} at once"
        seen = seen.__cause__ or seen.__context__
    return ""


def _most_files() -> float:
    """How many files this process may have open."""
    with suppress(ImportError):  # Windows has neither the module nor the limit
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return math.inf if soft == resource.RLIM_INFINITY else soft
    return math.inf


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The command `timeout` sends SIGTERM twice, to the program and to its group: an echo is no second request to stop.
ECHO_SECONDS = 2.0


@define
class StopRequests:
    """How often a signal asked to stop: once, and calls in flight are finished; twice, and nothing is waited for."""

    clock: Callable[[], float] = time.monotonic
    times: int = 0
    _first: float = 0.0

    def hear(self, number: int) -> None:
        """A signal has come."""
        now = self.clock()
        if not self.times:
            self._first = now
        elif number != signal.SIGINT and (number != signal.SIGTERM or now - self._first <= ECHO_SECONDS):
            return
        self.times += 1


def heard_signals() -> list[signal.Signals]:
    """Those that ask to stop; what the caller had us ignore (nohup, a background job of a script) stays ignored."""
    return [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


@asynccontextmanager
async def command_watch() -> AsyncIterator[Watch]:
    """A command looks on: warnings and waits go to the terminal, and signals end the work."""
    in_flight = InFlight(WaitTeller(partial(tell, "waiting")))
    async with until_stopped(partial(tell, "stopping"), in_flight) as stopping:
        yield Watch(warn=print_warning, note=print_note, stopping=stopping, in_flight=in_flight)


@asynccontextmanager
async def until_stopped(say: Callable[[str], None], in_flight: InFlight) -> AsyncIterator[Callable[[], bool]]:
    """A function that answers whether to stop; a second signal cancels the work inside and raises Interrupted."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    asked, stop = StopRequests(), threading.Event()

    def on_signal(number: signal.Signals) -> None:
        before = asked.times
        asked.hear(number)
        stop.set()
        if not before:
            say(f"stopping: {_calls(in_flight.count)} in flight (Ctrl-C once more to stop at once)")
        elif asked.times > before:
            task.cancel()

    heard = heard_signals()
    for number in heard:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield stop.is_set
    except asyncio.CancelledError:
        # Cancelled by somebody else: that is not the user who asked to stop.
        if asked.times < 2:
            raise
        raise Interrupted("stopped at once, as asked; calls in flight may be paid again") from None
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _calls(count: int) -> str:
    return f"finishing {'the 1 call' if count == 1 else f'the {count} calls'}" if count else "no call is"


# A wait this long looks like a hang; shorter ones are counted and told together.
WONDER_SECONDS = 5.0
AT_MOST_EVERY = 30.0  # a line of output for each of a thousand short waits would hide all else
_MOST_MESSAGE = 200  # two lines of a terminal; an endpoint may answer a refusal with a whole page


class WaitTeller:
    """Says why calls wait: long waits at once, short ones from time to time, and nothing twice while it lasts."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._began = clock()
        self._quiet_until = self._began + AT_MOST_EVERY
        self._long_until = self._began
        self._count = 0

    def __call__(self, wait: Wait) -> None:
        """A call begins to wait."""
        if wait.kind == "pace":  # that is what the user asked for
            return
        self._count += 1
        now = self._clock()
        why = f" ({wait.message[:_MOST_MESSAGE]})" if wait.message else ""
        if wait.seconds >= WONDER_SECONDS:
            if now >= self._long_until:
                self._long_until = now + max(wait.seconds, AT_MOST_EVERY)
                self._quiet_until = self._long_until
                self._say(f"waiting: the next try is in {wait.seconds:.0f} s{why}")
        elif now >= self._quiet_until:
            self._quiet_until = now + AT_MOST_EVERY
            self._say(f"calls had to wait {self._count:,} times so far{why}")
