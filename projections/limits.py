"""How many calls a run may make: as it was started, and as somebody who resumed, forked or steered it has said."""

from __future__ import annotations

from collections.abc import Iterable

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json, Setting

KEY = "budget.max_calls"


def calls_allowed(started: RunStarted) -> int | None:
    """The calls that a run was started with; None for any number."""
    budget = started.config.get("budget")
    return _limit(budget.get("max_calls")) if isinstance(budget, dict) else None


def still_allowed(most: int | None, settings: Iterable[Setting]) -> int | None:
    """The calls that it may make after these settings were changed."""
    for setting in settings:
        most = _limit(setting.value) if setting.key == KEY else most
    return most


def _limit(value: Json) -> int | None:
    return value if isinstance(value, int) else None
