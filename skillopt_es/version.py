"""The version of the installed software."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from skillopt_es.events.errors import SkillOptError


@cache
def software_version() -> str:
    """Name and version, as recorded in a run's first event."""
    try:
        return f"skillopt-es {version('skillopt-es')}"
    except PackageNotFoundError:
        raise SkillOptError(
            "skillopt-es is not installed for this Python: what is there can be read, and nothing be run",
            hint="`pip install .` in its folder installs it",
        ) from None
