"""What a run used, by role and step, and what the rest may take."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.asking import Asking
from support.scripted import ScriptedWorld, config

from skillopt_es.sessions.session import start


def test_each_role_and_each_step_has_its_row(asking: Asking) -> None:
    """A run that is complete has nothing left to foretell."""
    text = asking.get("/run/demo/cost").text
    for words in ("By role", ">target<", ">optimizer<", 'href="/run/demo/step/12"'):
        assert words in text
    assert "Forecast" not in text


def test_an_open_run_is_told_what_the_rest_may_take(tmp_path: Path) -> None:
    """By what its steps took so far."""
    calls = iter(range(10_000))
    session = ScriptedWorld().session(stopping=lambda: next(calls) > 150)
    with pytest.raises(Exception, match="stopped as asked"):
        asyncio.run(start(config(tmp_path), tmp_path / "runs" / "run", session))
    text = Asking(directory=tmp_path / "runs").get("/run/run/cost").text
    assert "are left. If each takes as much as the" in text
