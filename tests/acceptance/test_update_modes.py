"""The demo in the modes that rewrite the skill, with the installed command."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.desk import Desk

from skillopt_es.sessions.session import read_state

MODES = ("rewrite", "full_rewrite")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_demo_gets_better_and_its_decisions_follow(mode: str, tmp_path: Path) -> None:
    """It trains, says in words what it rewrote, and can be derived again."""
    desk = Desk(tmp_path / "desk")
    desk.folder.mkdir()
    done = desk.run("run", "--run", "demo", "--json", "--set", f"optimizer.skill_update_mode={mode}")
    assert done.code == 0
    assert "accept new best" in done.err
    state = read_state(desk.folder / "runs" / "demo")
    assert state.completed is not None
    assert state.completed.test_initial is not None
    assert state.completed.test_best is not None
    assert state.completed.test_best.hard > state.completed.test_initial.hard + 0.5
    lines = desk.run("log", "demo").out
    assert "rewritten, " in lines
    assert " kept, skill " in lines
    assert (" suggestions from " if mode == "rewrite" else " draft from ") in lines
    assert (" slow update put back" in lines) == (mode == "rewrite")
    assert "check      ok" in desk.run("replay", "demo", "--check").out
    assert "reject" in desk.run("status", "demo").out


def test_an_unknown_mode_is_named_with_the_ones_there_are(tmp_path: Path) -> None:
    """Before anything is asked."""
    desk = Desk(tmp_path / "desk")
    desk.folder.mkdir()
    done = desk.run("run", "--set", "optimizer.skill_update_mode=rewritten")
    assert done.code == 2
    assert "one of patch, rewrite_from_suggestions, full_rewrite_minibatch" in done.err
