"""
`report` on runs of 50 steps: `python tests/bench/bench_report.py [STEPS]`.

Prints the wall time of the command as a process of its own and the size of its page, for a made log (200 validation and
many training items, four edits a step) and for a run that the simulated models really trained, with its journal.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench_audit import made_log, write

from skillopt_es.config import load_config
from skillopt_es.events.log import EventLog
from skillopt_es.sessions.session import start
from skillopt_es.sessions.wiring import Session


def measured(folder: Path, title: str) -> None:
    """The best of three."""
    page = folder / "report.html"
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "skillopt_es.cli.main", "report", str(folder)], check=True, capture_output=True
        )
        times.append(time.perf_counter() - began)
    with EventLog.open(folder) as log:
        events = log.head().seq
    print(f"{title}: {events:,} events, {min(times):.2f} s, {page.stat().st_size / 1e6:.2f} MB")


def main(steps: int) -> None:
    """Makes the runs and measures."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "made"
        write(made, list(made_log(steps)))
        measured(made, f"made log of {steps} steps")
        trained = Path(name) / "trained"
        settings = [f"train.num_epochs={max(1, steps // 4)}", "optimizer.learning_rate=1"]
        asyncio.run(
            start(load_config(None, settings), trained, Session(now=lambda: datetime.now(UTC), clock=time.monotonic))
        )
        measured(trained, f"trained run of {max(1, steps // 4) * 4} steps")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
