"""`export --format datasette`: the metadata names what there is, all of it, and its queries run."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.in_process import Cli

from skillopt_es.exports.datasette import metadata

DATABASES = ("run", "log")


@pytest.fixture(scope="module")
def databases(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, sqlite3.Connection]]:
    """The demo's tables, and a copy of its log."""
    from skillopt_es.events.log import EventLog
    from skillopt_es.projections.tables import rebuild_tables

    folder = tmp_path_factory.mktemp("tables")
    with EventLog.open(demo_run) as log:
        rebuild_tables([log], folder / "run.db")
    with (
        closing(sqlite3.connect(folder / "run.db")) as run,
        closing(sqlite3.connect(f"file:{demo_run / 'log.db'}?mode=ro", uri=True)) as log_db,
    ):
        yield {"run": run, "log": log_db}


def described(name: str) -> dict[str, Any]:
    """A database's part of the metadata."""
    found: Any = metadata()["databases"]
    return dict(found[name])


@pytest.mark.parametrize("name", DATABASES)
def test_the_metadata_names_what_there_is(name: str, databases: dict[str, sqlite3.Connection]) -> None:
    """Every table and view with every column, and nothing else; of the log, its views."""
    kinds = "'view'" if name == "log" else "'table', 'view'"
    there = {row[0] for row in databases[name].execute(f"select name from sqlite_master where type in ({kinds})")}
    tables = described(name)["tables"]
    assert set(tables) == {table for table in there if not table.startswith(("sqlite_", "texts_fts"))}
    for table, said in tables.items():
        columns = [row[1] for row in databases[name].execute(f"pragma table_info({table})")]
        if "columns" in said:
            assert list(said["columns"]) == columns
        assert said["description"]
        assert said.get("sort", columns[0]) in columns


@pytest.mark.parametrize(
    ("name", "query"), [(name, query) for name in DATABASES for query in described(name)["queries"]]
)
def test_its_queries_run(name: str, query: str, databases: dict[str, sqlite3.Connection]) -> None:
    """And find something in the demo."""
    said = described(name)["queries"][query]
    values = {"item": "date-08", "words": "date"}
    assert databases[name].execute(said["sql"], values).fetchall()
    assert said["title"]


def test_the_folder_is_whole(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Tables, metadata, and the queries where newer versions look."""
    done = cli("export", demo_run, tmp_path / "look", "--format", "datasette")
    assert [Path(line).name for line in done.lines] == ["run.db", "metadata.yaml", "datasette.yaml"]
    config = yaml.safe_load((tmp_path / "look" / "datasette.yaml").read_text(encoding="utf-8"))
    assert config["databases"]["run"]["queries"] == described("run")["queries"]
    assert "exists already" in cli("export", demo_run, tmp_path / "look", "--format", "datasette").err
    assert cli("export", demo_run, tmp_path / "look", "--format", "datasette", "--force").code == 0
    assert cli("export", demo_run, "-", "--format", "datasette").code == 2


@pytest.mark.filterwarnings("ignore")
def test_datasette_itself_answers(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """Its API has tables, views and queries."""
    app = pytest.importorskip("datasette.app")
    assert cli("export", demo_run, tmp_path / "look", "--format", "datasette").code == 0

    async def asked() -> tuple[Any, Any]:
        served = app.Datasette([], config_dir=tmp_path / "look")
        await served.invoke_startup()
        first = await served.client.get("/run.json")
        second = await served.client.get("/run/score_curve.json?_shape=array")
        return first.json(), second.json()

    database, curve = asyncio.run(asked())
    assert {"steps", "rollouts", "calls"} <= {table["name"] for table in database["tables"]}
    assert len(curve) == 12
