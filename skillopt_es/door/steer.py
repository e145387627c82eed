"""Orders to a run that is open: checked against its state, left for its writer, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import evolve

from skillopt_es.engine.steering import Asked, OrderRefused, check_order
from skillopt_es.events.values import Json, Order
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.folders import dir_option, is_written
from skillopt_es.runs.inbox import Inbox, leave
from skillopt_es.sessions.session import read_state

_LOOK_EVERY = 0.1  # a writer follows orders between two calls; each look reads one folder


def steer(
    folder: Path, order: Order, *, by: str, why: str, text: str = "", settings: Mapping[str, Json] | None = None
) -> Asked:
    """
    Leaves an order for the writer of a run, who follows it between two tasks; a run at rest does when it is resumed.

    Raises OrderRefused for what cannot be done with the run as it stands; the writer looks once more.
    """
    asked = Asked(name="", order=order, by=by, why=why, text=text, settings=settings or {})
    check_order(asked, _with_pins(read_state(folder), Inbox(folder).waiting()))
    if order == "pause" and not is_written(folder):
        raise OrderRefused(f"nobody is working on {folder.name}: there is nothing to pause")
    return leave(folder, order, by=by, why=why, text=text, settings=settings)


def _with_pins(state: AnyState | None, waiting: Iterable[Asked]) -> AnyState | None:
    """The state with the lines that are pinned once the waiting orders are followed: a pin may be taken back before."""
    if state is None:
        return None
    pins = state.steering.pins
    for asked in waiting:
        if asked.order == "pin":
            pins = (*pins, asked.text)
        elif asked.order == "unpin":
            pins = tuple(pin for pin in pins if pin != asked.text)
    return evolve(state, steering=evolve(state.steering, pins=pins))


def awaited(folder: Path, asked: Asked, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Whether an order was followed within so many seconds; raises OrderRefused where the writer refused it."""
    inbox = Inbox(folder)
    for _ in range(max(1, round(seconds / _LOOK_EVERY))):
        found = inbox.outcome(asked.name)
        if found is not None:
            if found:
                raise OrderRefused(found)
            return True
        if not is_written(folder):
            return False
        sleep(_LOOK_EVERY)
    return False


def how_it_goes_on(folder: Path) -> str:
    """What becomes of an order that nobody has followed yet, in a sentence."""
    if is_written(folder):
        return "It is followed once what is under way is done."
    return f"It is followed when the run goes on: `skillopt-es resume {folder.name}{dir_option(folder.parent)}`."
