"""The files of a run as the original would have written them, and the walk that finds a false import."""

from __future__ import annotations

from pathlib import Path

from support.exchange import exported, imported

from skillopt_es.algorithms.imported.algorithm import Recheck
from skillopt_es.engine.algorithms import evolve
from skillopt_es.events.log import EventLog
from skillopt_es.interchange.run_files import result_files
from skillopt_es.sessions.session import read_state


def test_a_run_has_its_files_and_the_same_ones_again(demo_run: Path, tmp_path: Path) -> None:
    """A folder for each step, the history and the summary."""
    with EventLog.open(demo_run) as log:
        files, again = dict(result_files(log, tmp_path)), dict(result_files(log, tmp_path))
    assert files == again
    assert {"config.json", "history.json", "summary.json", "best_skill.md"} <= files.keys()
    assert len({file.split("/")[1] for file in files if file.startswith("steps/")}) == 12


def test_an_import_that_is_whole_follows_to_its_end(demo_run: Path, tmp_path: Path) -> None:
    """And leads to the state that was read."""
    imported(exported(demo_run, tmp_path / "out"), tmp_path / "again")
    with EventLog.open(tmp_path / "again") as log:
        events = log.read()
        walk = Recheck(evolve(None, next(events).event))
        walk.run(events)
    assert (walk.problems, walk.state) == ([], read_state(tmp_path / "again"))
    assert walk.derived > 0
