"""How the process of a long run is set up."""

from __future__ import annotations

import gc
import sys

from skillopt_es.events.lock import require_locks

SWITCH_SECONDS = 0.0005
GARBAGE_THRESHOLD = 20_000


def prepare_process() -> None:
    """
    Refuses a system on which no run can be written.

    Lets the log's writer thread in quickly while the event loop is busy with replies, and looks for garbage less often.

    Python's default of 5 ms makes each commit wait longer than the disk takes; a collection for every 700 new objects
    costs a few percent and finds next to nothing (`tests/bench/bench_trainer.py`).
    """
    require_locks()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)
