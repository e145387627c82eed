"""The command in the test's own process, for all tests of commands."""

from __future__ import annotations

import pytest
from support.in_process import Cli, called


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process."""
    return called(capsys)
