"""Every example of docs/sql.md runs on the demo, and finds something."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"
EXAMPLES = re.findall(r"^```sql( log)?\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def tables(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's tables."""
    from skillopt_es.events.log import EventLog
    from skillopt_es.projections.tables import rebuild_tables

    with EventLog.open(demo_run) as log:
        return rebuild_tables(log, tmp_path_factory.mktemp("sql") / "run.db")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tables: Path, demo_run: Path) -> None:
    """Read-only, as it stands."""
    where, sql = EXAMPLES[number]
    file = demo_run / "log.db" if where else tables
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        assert database.execute(sql).fetchall()


def test_there_are_examples_of_both() -> None:
    """The page was found."""
    assert {where for where, _ in EXAMPLES} == {"", " log"}
