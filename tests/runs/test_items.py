"""One item of a run, found without reading those of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.runs.items import history_of, results_of, split_of
from skillopt_es.runs.reading import Reading


def test_an_item_has_its_split_its_results_and_its_history(demo_run: Path) -> None:
    """Its results are those of its history."""
    with Reading.of(demo_run) as reading:
        item = reading.started.splits.val[0]
        assert split_of(item, reading) == "validation"
        rows = [row for row in results_of(item, reading) if isinstance(row.event, RolloutCompleted)]
        assert rows
        assert {row.event.item for row in rows if isinstance(row.event, RolloutCompleted)} == {item}
        assert [seen.seq for seen in history_of(item, reading).results] == [row.seq for row in rows]


def test_an_item_that_the_run_does_not_have_is_said_with_those_that_are_like_it(demo_run: Path) -> None:
    """A slip of the hand is the usual reason."""
    with Reading.of(demo_run) as reading, pytest.raises(NotInRun, match="no item") as told:
        split_of(reading.started.splits.val[0][:-1], reading)
    assert "did you mean" in told.value.hint
