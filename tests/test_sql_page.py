"""Every example of docs/sql.md runs on the demo, and finds something."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import chdir, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlite_utils import Database
from sqlite_utils.cli import cli as sqlite_utils_command
from support.doc_commands import shell_commands

from skillopt_es.cli.main import main
from skillopt_es.events.catalog import CandidateGated, Recorded, RunSteered
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Setting
from skillopt_es.projections.table_rows import steering_row
from skillopt_es.projections.tables import rebuild_tables
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.forking import make_fork

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"
EXAMPLES = re.findall(r"^```sql( log)?\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def two_runs(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of the demo and of a fork of it, exported as the page says."""
    folder = tmp_path_factory.mktemp("two")
    make_fork(demo_run, step_end(demo_run, 4), folder / "second", now=lambda: datetime.now(UTC))
    words = [str(demo_run), str(folder / "second"), "--format", "sqlite", "--out", str(folder / "runs.db")]
    with pytest.raises(SystemExit) as done:
        main(["export", *words, "--trajectories"])
    assert done.value.code == 0
    return folder


@pytest.mark.parametrize(
    "command", [each.line for each in shell_commands("docs/sql.md") if "sqlite-utils" in each.line]
)
def test_sqlite_utils_finds_what_it_knows(command: str, two_runs: Path) -> None:
    """Its own command, as the page types it; a table without a row has its two lines of headers."""
    assert len(sqlite_utils(two_runs, *shlex.split(command)[1:]).splitlines()) > 2


def sqlite_utils(folder: Path, *words: str) -> str:
    """What `sqlite-utils` prints."""
    with chdir(folder):
        done = CliRunner().invoke(sqlite_utils_command, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_runs_lie_side_by_side_in_one_database(two_runs: Path) -> None:
    """Each row is that of one run, a skill that both have is one row, and a search finds whole texts of either."""
    rows = json.loads(sqlite_utils(two_runs, "query", "runs.db", "select run, count(*) as n from steps group by run"))
    assert [row["run"] for row in rows] == ["demo", "second"]
    assert rows[0]["n"] > rows[1]["n"] == 4
    shared = "select count(distinct run) as runs from evaluations where skill = (select initial from runs limit 1)"
    assert json.loads(sqlite_utils(two_runs, "query", "runs.db", shared)) == [{"runs": 2}]
    kinds = "select distinct kind from texts order by kind"
    found = [row["kind"] for row in json.loads(sqlite_utils(two_runs, "query", "runs.db", kinds))]
    assert found == ["edit", "guidance", "memory", "skill", "trajectory"]
    hit = json.loads(sqlite_utils(two_runs, "search", "runs.db", "texts", "dates", "--limit", "1"))
    assert {"run", "kind", "ref", "text"} <= hit[0].keys()
    with closing(sqlite3.connect(two_runs / "runs.db")) as connection:
        database = Database(connection)
        named = {(key.table, key.column, key.other_table) for table in database.tables for key in table.foreign_keys}
    assert {("steps", "run", "runs"), ("rollouts", "skill", "skills"), ("runs", "best", "skills")} <= named


def test_one_run_is_not_put_there_twice(demo_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is a copy of it; two runs of one name have their ids beside it."""
    with pytest.raises(SystemExit) as done:
        main(["export", str(demo_run), str(demo_run), "--format", "sqlite", "--out", str(tmp_path / "x.db")])
    assert done.value.code != 0
    assert "are the same run" in capsys.readouterr().err
    other = make_fork(demo_run, step_end(demo_run, 2), tmp_path / demo_run.name, now=lambda: datetime.now(UTC)).folder
    with EventLog.open(demo_run) as one, EventLog.open(other) as two:
        tables = rebuild_tables([one, two], tmp_path / "x.db")
        names = {f"{log.run.name} {log.run.run_id}" for log in (one, two)}
    with closing(sqlite3.connect(tables)) as database:
        assert {row[0] for row in database.execute("select distinct run from steps")} == names


@pytest.fixture(scope="module")
def tables(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's tables, under the name that the page has for it."""
    with EventLog.open(demo_run) as log:
        return rebuild_tables([log], tmp_path_factory.mktemp("sql") / "run.db")


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
        file = rebuild_tables([log], tmp_path / "run.db")
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


def test_a_run_is_added_to_an_earlier_export(demo_run: Path, two_runs: Path, tmp_path: Path) -> None:
    """Or replaced; a run of the same name is told apart, and foreign files are refused."""
    tables, fork = tmp_path / "runs.db", two_runs / "second"
    other = tmp_path / "elsewhere" / demo_run.name
    other.parent.mkdir()
    make_fork(demo_run, step_end(demo_run, 2), other, now=lambda: datetime.now(UTC))
    assert exported(demo_run, tables) == 0
    whole = counts(tables)
    for run in (fork, demo_run, other, fork):
        assert exported(run, tables) == 0
    after = counts(tables)
    names = {name for _, name in after}
    assert len(names) == 3
    assert {name for name in names if name.startswith(demo_run.name)} > {demo_run.name}
    assert {key: count for key, count in after.items() if key[1] == demo_run.name} == whole
    with closing(sqlite3.connect(tables)) as database:
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert not database.execute("pragma foreign_key_check").fetchall()
        found = (
            "select distinct run from texts_fts join texts on texts.id = texts_fts.rowid where texts_fts match 'date'"
        )
        assert {row[0] for row in database.execute(found)} == names
        seeds = database.execute("select value from settings where key = 'train.seed'").fetchall()
        assert len(seeds) == 3
    for name in ("notes.txt", "other.db"):
        foreign = tmp_path / name
        with closing(sqlite3.connect(tmp_path / "other.db")) as database:
            database.execute("create table if not exists runs (run text)")
        (tmp_path / "notes.txt").write_text("mine")
        before = foreign.read_bytes()
        assert exported(demo_run, foreign) == 2
        assert foreign.read_bytes() == before


def exported(run: Path, tables: Path) -> int:
    """The exit code of an export."""
    with pytest.raises(SystemExit) as done:
        main(["export", str(run), "--format", "sqlite", "--out", str(tables)])
    assert isinstance(done.value.code, int)
    return done.value.code


def counts(tables: Path) -> dict[tuple[str, str], int]:
    """How many rows each run has in each table."""
    found = {}
    with closing(sqlite3.connect(tables)) as database:
        for name in ("runs", "steps", "evaluations", "rollouts", "edits", "calls", "texts"):
            for run, count in database.execute(f"select run, count(*) from {name} group by run"):
                found[name, run] = count
    return found


def test_who_steered_is_a_row() -> None:
    """With the limits that were changed."""
    event = RunSteered(
        name="o1", order="budget", by="ann", why="more", text="", settings=(Setting("budget.max_calls", 40),)
    )
    row = steering_row(Recorded(seq=7, recorded_at="2026-11-20T05:00:00Z", event=event, hash="a", prev_hash="b"), event)
    assert (row["seq"], row["command"], row["given_by"], row["settings"]) == (
        7,
        "budget",
        "ann",
        '{"budget.max_calls": 40}',
    )
