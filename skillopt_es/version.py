"""What is installed: this software's version, and what packages bring for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version

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


def installed_for(group: str) -> Mapping[str, EntryPoint]:
    """What the installed packages bring for a group of entry points, by name and in that order."""
    return _installed_for(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _installed_for(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    # Every start of a run asks several times, and each answer reads the description of every package on the path.
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}
