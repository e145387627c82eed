"""The command under the machine's own clock, frozen: what is the same answers at the same time is the same bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from support.in_process import Cli
from support.logs import rows_of
from support.project import KEY, KEY_NAME, Endpoint, Project, files_of, plain_config

from skillopt_es.events.log import EventLog

BEGIN = "2026-01-02 03:04:05"
IN_ORDER = {"calls": ("n", "form", "prev_hash", "hash"), "forms": ("id",)}
SHORT = ("--set", "train.num_epochs=1")


def frozen(moment: str = BEGIN, **how: Any) -> AbstractContextManager[Any]:
    """The machine's clocks stand still there; asyncio's stays real, or nothing that waits would ever end."""
    return freeze_time(moment, real_asyncio=True, **how)


def tables_of(run: Path, but: Collection[str] = ()) -> dict[str, list[tuple[object, ...]]]:
    """
    Everything that a log holds, row by row; how SQLite lays it out depends on which commits came together.

    Left out are the numbers of calls and forms, and the chain along calls: they say which answer came first; and the
    columns of `but`.
    """
    tables = {}
    with EventLog.open(run) as log:
        for (name,) in log.reader.rows("select name from sqlite_schema where type = 'table'"):
            columns = [str(row[0]) for row in log.reader.rows(f"select name from pragma_table_info('{name}')")]
            kept = ", ".join(column for column in columns if column not in (*IN_ORDER.get(str(name), ()), *but))
            tables[str(name)] = sorted(log.reader.rows(f"select {kept} from {name}"), key=repr)
    return tables


def test_two_runs_at_the_same_time_leave_the_same_bytes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every table and every file, hashes and times included; only the order of lines of people's log may differ."""
    printed = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with frozen():
            printed.append(cli("run", *SHORT))
    assert printed[0].out == printed[1].out
    first, second = (tmp_path / name / "runs" / "demo-20260102-030405" for name in ("a", "b"))
    assert files_of(first) == files_of(second) == {"best", "head.json", "lock", "log.db", "logs.jsonl", "overview.json"}
    # Not overview.json: it says of which state of the file log.db it was read, and that is the disk's to say.
    for name in ("best/SKILL.md", "head.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    told = [sorted((run / "logs.jsonl").read_text(encoding="utf-8").splitlines()) for run in (first, second)]
    assert told[0] == told[1]
    assert len(rows_of(first)) > 100
    assert tables_of(first) == tables_of(second)
    assert "2026-01-02T03:04:05.000000Z" in rows_of(first)[0]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Both models behind one address on loopback."""
    monkeypatch.setenv(KEY_NAME, KEY)
    served = Endpoint()
    with served.server:
        yield served


@pytest.mark.slow
def test_over_http_how_long_answers_take_leaves_no_trace(
    cli: Cli, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for each call's milliseconds, which are measured on a clock that only ever goes on, and that nobody sets."""
    Project(tmp_path, plain_config(endpoint.base_url)).set(train={"num_epochs": 1})
    monkeypatch.chdir(tmp_path)
    for name, delay in (("quick", 0.0), ("slow", 0.003)):
        endpoint.delay = delay
        with frozen():
            assert cli("run", "config.yaml", "--run", "one", "--dir", name, "--quiet").code == 0
    quick, slow = (tables_of(tmp_path / name / "one", but=("latency_ms",)) for name in ("quick", "slow"))
    assert quick == slow


def test_what_is_made_from_a_run_does_not_say_when(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page, the exports and the frozen run have the same bytes a year later."""
    monkeypatch.chdir(tmp_path)
    assert cli("run", "--run", "one", *SHORT).code == 0
    made = []
    for moment in (BEGIN, "2027-05-06 07:08:09"):
        with frozen(moment):
            assert cli("report", "one", "--out", "page.html").code == 0
            assert cli("export", "one", "--format", "jsonl", "events.jsonl").code == 0
            assert cli("freeze", "one", "--out", "one.cassette").code == 0
        files = [tmp_path / name for name in ("page.html", "events.jsonl", "one.cassette")]
        made.append([file.read_bytes() for file in files])
        for file in files:
            file.unlink()
    assert made[0] == made[1]


def test_minutes_are_those_of_the_machine(cli: Cli, tmp_path: Path) -> None:
    """A budget of minutes is reached when the clock says so, and `resume` with more of them goes on."""
    runs = ("--dir", tmp_path, "--quiet")
    with frozen(auto_tick_seconds=1):
        done = cli("run", "--run", "one", *SHORT, "--max-minutes", "2", *runs)
        assert done.code == 3
        assert "budget.max_minutes" in done.err
        assert cli("resume", "one", "--max-minutes", "1000000", *runs).code == 0
