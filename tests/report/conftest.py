"""Runs of every kind as pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from skillopt_es.report.facts import Facts, facts_of
from skillopt_es.report.page import page
from skillopt_es.runs.reading import Reading


def facts(folder: Path) -> Facts:
    """The facts of a run."""
    with Reading.of(folder) as reading:
        return facts_of(reading, folder)


@pytest.fixture(scope="session")
def page_of() -> Callable[[Path], str]:
    """The page of a run that nobody writes to; made once."""
    return cache(lambda folder: page(facts(folder)))
