"""Killing a run at a chosen moment, in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from attrs import define

from skillopt_es.engine.work import Work
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.projections.state import AnyState


class Crash(BaseException):
    """Ends a session as a crash does: an observer's plain errors do not."""


@define
class KillAt:
    """An observer that kills its own process the moment the n-th thing has become durable."""

    event: int = -1
    call: int = -1
    calls_seen: int = 0

    def planned(self, work: Work, state: AnyState) -> None:
        """Nothing to do."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """After an event."""
        if seq == self.event:
            os.kill(os.getpid(), signal.SIGKILL)

    def called(self, row: CallRow) -> None:
        """After a call was recorded, before its answer is used."""
        self.calls_seen += 1
        if self.calls_seen == self.call:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], None]) -> int:
    """Runs work in a forked process; the signal that killed it, or 0."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
