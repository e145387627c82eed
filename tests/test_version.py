"""The software's name and version, as a run's first event has them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from skillopt_es import version
from skillopt_es.events.errors import SkillOptError


def test_it_is_that_of_the_installation() -> None:
    """Name and number."""
    assert version.software_version().startswith("skillopt-es 0")


def test_without_an_installation_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there can be read all the same."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(version, "version", missing)
    version.software_version.cache_clear()
    with pytest.raises(SkillOptError, match="not installed for this Python"):
        version.software_version()


def test_it_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a quarter of a millisecond, and a list of thousands of runs asks for each."""
    asked: list[str] = []

    def version_of(name: str) -> str:
        asked.append(name)
        return "1"

    monkeypatch.setattr(version, "version", version_of)
    version.software_version.cache_clear()
    assert {version.software_version() for _ in range(3)} == {"skillopt-es 1"}
    assert asked == ["skillopt-es"]
    version.software_version.cache_clear()
