"""One run of a comparison, in words."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.audit.side_by_side import side
from skillopt_es.presenting.sides import column, scores_of


def test_a_run_has_its_outcome_its_scores_and_what_it_used(demo_run: Path) -> None:
    """A dash for what was not measured."""
    found = side(demo_run)
    cells = column(found)
    assert cells["steps"] == "12 of 12"
    assert cells["best value"] == "1.0000"
    assert cells["cost"] == "-"
    assert {f"{name} hard" for name in scores_of(found)} <= set(cells)
