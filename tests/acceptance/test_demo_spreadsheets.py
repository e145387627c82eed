"""The demo on workbooks: simulated models, real scripts, real walls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.desk import Desk
from support.environments import CONFINED
from support.extras import needs
from support.logs import events_of

from skillopt_es.events.catalog import RolloutCompleted, RunStarted
from skillopt_es.sessions.session import read_state

needs("openpyxl", extra="spreadsheet")

DEMO = Path(__file__).parents[2] / "configs" / "demo" / "spreadsheetbench.yaml"


@pytest.mark.slow
@pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
def test_the_demo_learns_to_write_scripts(desk: Desk) -> None:
    """A few of its items: the score rises, what scripts came to is recorded, all decisions can be derived again."""
    small = ["train.num_epochs=2", "train.batch_size=5", "env.limit=5", "optimizer.use_slow_update=false",
             "optimizer.use_meta_skill=false", "evaluation.eval_test=false"]  # fmt: skip
    settings = [word for setting in small for word in ("--set", setting)]
    done = desk.run("run", str(DEMO), "--run", "sheets", "--json", "--quiet", *settings)
    assert (done.code, done.err, done.json["status"]) == (0, "", "completed")
    folder = desk.folder / "runs" / "sheets"
    state = read_state(folder)
    assert state.best is not None
    assert state.best.value is not None
    assert state.started is not None
    assert state.best.value > state.measured[state.started.skill.hash].score.hard + 0.5
    assert "instead of formulas" in state.best.skill.text
    rollouts = [event for event in events_of(folder) if isinstance(event, RolloutCompleted)]
    assert {event.failure for event in rollouts} >= {"", "eval_mismatch"}
    assert any("a formula without a stored value" in event.detail for event in rollouts)
    started = events_of(folder)[0]
    assert isinstance(started, RunStarted)
    assert str(DEMO.parent) not in json.dumps(dict(started.config))
    assert desk.run("replay", "sheets", "--check").code == 0


@pytest.mark.slow
def test_the_workbooks_are_what_their_script_makes(tmp_path: Path) -> None:
    """Same instructions, same positions, a pair of workbooks for each."""
    from support.make_demo_spreadsheets import COUNTS, make_all

    made = make_all(tmp_path)
    there = json.loads((DEMO.parent / "spreadsheetbench" / "dataset.json").read_text())
    assert made == there
    assert len(there) == sum(map(sum, COUNTS.values()))
    for record in there:
        files = sorted(path.name for path in (DEMO.parent / "spreadsheetbench" / record["spreadsheet_path"]).iterdir())
        assert files == sorted(path.name for path in (tmp_path / record["spreadsheet_path"]).iterdir())
        assert len(files) == 2
