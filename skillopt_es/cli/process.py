"""How the process of a long run is set up."""

from __future__ import annotations

import sys

SWITCH_SECONDS = 0.0005


def prepare_process() -> None:
    """
    Lets the log's writer thread in quickly while the event loop is busy with replies.

    Python's default of 5 ms makes each commit wait longer than the disk takes (`tests/bench/bench_trainer.py`).
    """
    sys.setswitchinterval(SWITCH_SECONDS)
