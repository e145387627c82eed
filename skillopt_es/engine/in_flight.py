"""What is said of the calls under way: how many there are, which of them only wait, and what is left of a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from skillopt_es.ports import Wait


@frozen(kw_only=True)
class Left:
    """What is left of a limit (`calls`, `tokens`, `cost`, `minutes`), in words; `aside` of it is for open calls."""

    limit: str
    left: str
    most: str
    aside: str = ""


class InFlight:
    """
    How many calls are on their way right now, and what the others wait for, for whoever wants to know.

    `left` says what is left of the session's own budget.
    """

    def __init__(self, waits: Callable[[Wait], None] = lambda wait: None) -> None:
        self.count = 0
        self.waiting = 0
        self.waits = waits
        self.left: Callable[[], Sequence[Left]] = tuple
