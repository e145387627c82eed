"""A run as a column beside others: the results of its steps, and what is no training run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripted import NOON
from support.tamper import cut_off

from skillopt_es.audit.side_by_side import side
from skillopt_es.errors import ConfigError
from skillopt_es.events.writer import RunWriter


def test_every_step_is_counted_once(demo_run: Path) -> None:
    """Accepted, rejected or skipped."""
    found = side(demo_run)
    assert (found.name, found.status, found.problem) == ("demo", "completed", None)
    assert found.accepted + found.rejected + found.indecisive + found.skipped == found.step == found.steps
    assert found.baseline is not None
    assert found.best is not None
    assert found.best.hard > found.baseline.hard
    assert found.spent is not None
    assert found.there is None


def test_a_run_that_goes_on_has_no_final_tests(demo_run: Path, tmp_path: Path) -> None:
    """What is not there yet is no zero."""
    found = side(cut_off(demo_run, tmp_path / "cut", 60))
    assert (found.test_best, found.test_final) == (None, None)
    assert found.step < found.steps


def test_what_never_began_cannot_be_compared(tmp_path: Path) -> None:
    """It says so by name."""
    RunWriter.create(tmp_path / "empty", run_id="e", name="empty", now=lambda: NOON).close()
    with pytest.raises(ConfigError, match="empty stopped before it began"):
        side(tmp_path / "empty")
