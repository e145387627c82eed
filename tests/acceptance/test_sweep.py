"""A small dose of `python -m tests.sweep`: signals, damaged bytes and failing disks at drawn moments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sweep.dose import KINDS, Sweep

TRIALS = 16
OF_DISKS = 5  # a trial of these takes ten times as long as one of the others

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and forks are the trial")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbed_run_ends_like_an_undisturbed_one(tmp_path: Path, kind: str) -> None:
    """Or says what is damaged; the report names each trial that did neither."""
    with Sweep(tmp_path, seed=20260) as sweep:
        for number in range(OF_DISKS if kind == "disk" else TRIALS):
            sweep.trial(number, [kind])
        assert not sweep.failures, sweep.report()
