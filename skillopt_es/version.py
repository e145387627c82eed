"""The version of the installed software."""

from __future__ import annotations

from importlib.metadata import version


def software_version() -> str:
    """Name and version, as recorded in a run's first event."""
    return f"skillopt-es {version('skillopt-es')}"
