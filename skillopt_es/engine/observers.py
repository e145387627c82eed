"""Those who look on while a run works, as one observer, which never stops the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from skillopt_es.engine.work import Work
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.logs import logger
from skillopt_es.projections.state import AnyState


class Observer(Protocol):
    """Sees a run live, and never changes it; one that raises is left out from then on."""

    def planned(self, work: Work, state: AnyState) -> None:
        """Work is about to begin."""
        ...

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """An event is durable and folded."""
        ...

    def called(self, row: CallRow) -> None:
        """A call to a model is durable."""
        ...


class Observers:
    """
    All observers of a session.

    They are called between a commit and what follows from it, so what one of them raises must not end the run. Only
    what is no `Exception` passes, such as KeyboardInterrupt and a cancellation: it is meant for the whole process.
    """

    def __init__(self, observers: Sequence[Observer], warn: Callable[[str], None]) -> None:
        self._observers = list(observers)
        self._warn = warn

    def planned(self, work: Work, state: AnyState) -> None:
        """Work is about to begin."""
        self._each(lambda observer: observer.planned(work, state))

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """An event is durable and folded."""
        self._each(lambda observer: observer.happened(seq, event, state))

    def called(self, row: CallRow) -> None:
        """A call to a model is durable."""
        self._each(lambda observer: observer.called(row))

    def _each(self, tell: Callable[[Observer], None]) -> None:
        for observer in tuple(self._observers):
            try:
                tell(observer)
            except Exception as error:  # noqa: BLE001 -- it is the observer's own, and logged with its traceback
                # By identity: another one may be equal to it.
                self._observers = [each for each in self._observers if each is not observer]
                name, said = type(observer).__name__, f"{type(error).__name__}: {error}"
                logger().error("observer_failed", observer=name, exc_info=error)
                self._warn(f"the observer {name} raised {said}; the run continues without this observer")
