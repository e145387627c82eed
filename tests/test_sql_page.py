"""Every example of docs/sql.md runs on the demo, and finds something."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillopt_es.events.catalog import CandidateGated
from skillopt_es.events.log import EventLog
from skillopt_es.projections.tables import rebuild_tables
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.forking import make_fork

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"
EXAMPLES = re.findall(r"^```sql( log)?\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def tables(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's tables."""
    with EventLog.open(demo_run) as log:
        return rebuild_tables(log, tmp_path_factory.mktemp("sql") / "run.db")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tables: Path, demo_run: Path) -> None:
    """Read-only, as it stands."""
    where, sql = EXAMPLES[number]
    file = demo_run / "log.db" if where else tables
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        assert database.execute(sql).fetchall()


def test_what_a_step_cost_is_a_forks_own(demo_run: Path, tmp_path: Path) -> None:
    """By the example of the page and by that of the log: a fork that has done nothing has cost nothing."""
    make_fork(demo_run, step_end(demo_run, 4), tmp_path / "fork", now=lambda: datetime.now(UTC))
    with EventLog.open(tmp_path / "fork") as log:
        file = rebuild_tables(log)
        inherited = spent(tmp_path / "fork").inherited
    for where, sql in EXAMPLES:
        if "count(*) as calls" in sql:
            source = tmp_path / "fork" / "log.db" if where else file
            with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as database:
                assert database.execute(sql).fetchall() == []
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("select inherited, count(*) from calls group by 1").fetchall() == [(1, inherited)]


def step_end(folder: Path, step: int) -> int:
    """The number of the event that ended a step."""
    with EventLog.open(folder) as log:
        gates = [(each.seq, each.event) for each in log.read(types={"CandidateGated"})]
    return next(seq for seq, event in gates if isinstance(event, CandidateGated) and event.step == step)


def test_there_are_examples_of_both() -> None:
    """The page was found."""
    assert {where for where, _ in EXAMPLES} == {"", " log"}
