"""The command in the test's own process, for all tests of commands."""

from __future__ import annotations

from functools import partial

import pytest
from support.in_process import Cli, called

from skillopt_es.audit import calibrating


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process."""
    return called(capsys)


@pytest.fixture
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the gate's rules are worth is simulated with few trials: a second each time else."""
    for name in ("calibrate", "own_null"):
        monkeypatch.setattr(calibrating, name, partial(getattr(calibrating, name), trials=60))
