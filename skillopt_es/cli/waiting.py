"""Telling a user what a run waits for, when it is long enough to wonder about."""

from __future__ import annotations

import time
from collections.abc import Callable

from skillopt_es.ports import Wait

WONDER_SECONDS = 5.0
AT_MOST_EVERY = 30.0
_MOST_MESSAGE = 200


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
