"""`--notify`: who is told what, when a run or a sweep pauses or ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import command
from support.doc_commands import ROOT

from skillopt_es.cli.notify import Ending, notice_of

DEMO = ROOT / "configs" / "demo"
SMALL = f"_base_: {DEMO}/demo.yaml\ntrain: {{num_epochs: 1}}\nenv: {{data_path: {DEMO}/tasks.jsonl, skill_init: ''}}\n"
QUICK = ("--set", "train.num_epochs=1", "--quiet")


def told(folder: Path) -> list[dict[str, Any]]:
    """The notices, one after another."""
    return [json.loads(line) for line in (folder / "told.txt").read_text().splitlines()]


def test_somebody_is_told_at_a_pause_and_at_the_end(tmp_path: Path) -> None:
    """With why, and with what was reached; a way that fails is a warning, and no exit code."""
    way = "sh -c 'cat >> told.txt'"
    paused = command("run", "--run", "one", "--max-calls", "5", "--notify", way, *QUICK, cwd=tmp_path)
    assert paused.code == 3
    done = command("resume", "one", "--max-calls", "5000", "--quiet", "--notify", way, "--notify=no-such", cwd=tmp_path)
    assert done.code == 0
    assert "--notify: no-such cannot be started" in done.err
    first, last = told(tmp_path)
    assert (first["run"], first["status"], first["reason"]) == ("one", "paused", "budget")
    assert first["text"].startswith("skillopt-es: run one paused (budget): budget.max_calls is 5")
    assert (last["status"], last["reason"], last["best"] > 0) == ("completed", None, True)


def test_a_way_that_tells_nobody_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    """No folder is left."""
    refused = command("run", "--run", "one", "--notify", "env:NO_SUCH", *QUICK, cwd=tmp_path)
    assert (refused.code, "NO_SUCH, which is not set" in refused.err) == (2, True)
    assert not (tmp_path / "runs" / "one" / "log.db").exists()


@pytest.mark.slow
def test_a_sweep_tells_of_itself(tmp_path: Path) -> None:
    """Once, and not of each of its runs."""
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "grid.yaml").write_text("config: small.yaml\nseeds: [1]\n")
    way = "sh -c 'cat >> told.txt'"
    done = command("sweep", "grid.yaml", "--quiet", "--notify", way, cwd=tmp_path)
    assert done.code == 0, done.err
    assert [(each["sweep"], each["status"]) for each in told(tmp_path)] == [("grid", "completed")]


def test_whatever_else_ends_it_is_told_too() -> None:
    """An error of ours has no state to speak of."""
    notice = notice_of(Ending(message="the disk is full"), "run", "one", "runs/one")
    assert notice["text"] == "skillopt-es: run one failed: the disk is full"
