"""What a new run is called where nobody says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pytest
from support.event_runs import create
from support.in_process import Cli

from skillopt_es.runs.folders import fork_folder, new_run_folder

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RACERS = 8


def test_runs_that_start_in_the_same_second_have_names_of_their_own(tmp_path: Path) -> None:
    """A name is taken in one step, so none of them meets another one's folder."""
    line = Barrier(RACERS)

    def race(_: int) -> str:
        line.wait()
        with new_run_folder(None, "demo", NOW, tmp_path / "runs") as folder:
            create(folder).close()
            line.wait()
            return folder.name

    with ThreadPoolExecutor(RACERS) as pool:
        names = set(pool.map(race, range(RACERS)))
    assert names == {"demo-20260102-030405", *(f"demo-20260102-030405-{n}" for n in range(2, RACERS + 1))}


def test_a_name_that_came_to_nothing_is_free_again(tmp_path: Path) -> None:
    """And nothing is left of it, not even the directory that was made for it."""
    with pytest.raises(KeyError), new_run_folder(None, "demo", NOW, tmp_path / "runs"):
        raise KeyError
    assert not list(tmp_path.iterdir())
    with fork_folder(None, tmp_path / "parent", "step-3") as folder:
        assert folder == tmp_path / "parent-step-3"
    assert not folder.exists()


def test_a_run_that_cannot_start_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    """Such as one whose data is not there."""
    missing = f"env.data_path={tmp_path / 'none.jsonl'}"
    done = cli("run", "--set", missing, "--set", "env.name=tasks", "--dir", tmp_path / "runs", "--quiet")
    assert done.code == 2, done.err
    assert not (tmp_path / "runs").exists()
