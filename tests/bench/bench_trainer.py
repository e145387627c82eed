"""
The whole trainer against a local endpoint: wall time over the ideal critical path, calls per CPU second, bytes on disk.

    python tests/bench/bench_trainer.py                  every table
    python tests/bench/bench_trainer.py wall cpu size    some of them (faults: bench_faults.py)

Each run is a process of its own; figures are ratios within one invocation, because machines differ and are noisy.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import yaml
from attrs import define

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))


@contextmanager
def endpoint(delay_ms: float) -> Iterator[str]:
    """The base URL of an endpoint in its own process."""
    command = [sys.executable, "-m", "support.quick_server", "--delay-ms", str(delay_ms)]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def write_project(
    folder: Path, base_url: str, *, workers: int, epochs: int, sizes: dict[str, int], context: int = 1500
) -> Path:
    """A SearchQA project of made items."""
    from support.made_searchqa import made_searchqa, write_split_dir

    items = made_searchqa(sum(sizes.values()), size=context)
    splits, used = {}, 0
    for name, count in sizes.items():
        splits[name], used = items[used : used + count], used + count
    write_split_dir(folder / "split", splits)
    config = {
        "model": {
            "backend": "openai",
            "base_url": base_url,
            "optimizer": "big",
            "target": "small",
        },
        "train": {"num_epochs": epochs},
        "gradient": {"analyst_workers": workers},
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "split", "workers": workers},
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


@define
class CriticalPath:
    """An observer that adds up the rounds of calls that have to follow each other."""

    workers: int
    rounds: int = 0
    calls: int = 0

    def planned(self, task: object, state: object) -> None:
        """A phase of calls."""
        from skillopt_es.engine.work import Questions, Rollouts

        if isinstance(task, Rollouts | Questions):
            count = len(task.units) if isinstance(task, Rollouts) else len(task.jobs)
            self.rounds += math.ceil(count / self.workers)

    def happened(self, seq: int, event: object, state: object) -> None:
        """Nothing to add."""

    def called(self, row: object) -> None:
        """A call."""
        self.calls += 1


def child(config: str, folder: str, workers: str) -> None:
    """One run in this process; prints its figures."""
    from skillopt_es.cli.process import prepare_process
    from skillopt_es.config import load_config
    from skillopt_es.sessions.session import start
    from skillopt_es.sessions.wiring import Session

    prepare_process()

    path = CriticalPath(int(workers))
    wall, cpu = time.perf_counter(), time.process_time()
    state = asyncio.run(
        start(
            load_config(Path(config)),
            Path(folder),
            Session(now=lambda: datetime.now(UTC), clock=time.monotonic, observers=(path,)),
        )
    )
    figures = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "calls": path.calls,
        "rounds": path.rounds,
        "status": state.status,
        "best": state.best.skill.hash if state.best else "",
    }
    print(json.dumps(figures))


def measured(
    delay_ms: float, workers: int, *, epochs: int, sizes: dict[str, int], context: int = 1500
) -> dict[str, float]:
    """The figures of one run."""
    with tempfile.TemporaryDirectory() as name, endpoint(delay_ms) as base_url:
        config = write_project(Path(name), base_url, workers=workers, epochs=epochs, sizes=sizes, context=context)
        command = [sys.executable, __file__, "--child", str(config), str(Path(name) / "run"), str(workers)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures: dict[str, float] = json.loads(done.stdout)
        figures["database"] = sum(file.stat().st_size for file in (Path(name) / "run").glob("log.db*"))
        figures["json"] = plain_json_bytes(Path(name) / "run")
        return figures


def plain_json_bytes(folder: Path) -> int:
    """What JSON files with every call's messages and answer would take."""
    from skillopt_es.events.journal import Journal
    from skillopt_es.events.log import EventLog

    total = 0
    with EventLog.open(folder) as log:
        for row in Journal(log.reader).read():
            messages = [[role, log.text(digest)] for role, digest in row.call.request.messages]
            reply = log.text(row.call.response) if row.call.response else ""
            total += len(json.dumps({"slot": row.call.slot, "messages": messages, "reply": reply}).encode())
    return total


SIZES = {"train": 400, "val": 200, "test": 200}
RELEASED = {"train": 400, "val": 200, "test": 1400}  # as SearchQA was split by the original


def wall() -> None:
    """Wall time over the ideal critical path."""
    print("wall / ideal (400 train, 200 val, 200 test, batch 40)")
    for delay, epochs in ((50, 4), (200, 1)):
        for workers in (8, 16, 64):
            figures = measured(delay, workers, epochs=epochs, sizes=SIZES)
            ideal = figures["rounds"] * delay / 1000
            print(
                f"  {delay:3d} ms, {epochs} epochs, {workers:2d} workers: {figures['wall'] / ideal:.3f}"
                f"  ({figures['calls']:.0f} calls, {figures['rounds']:.0f} rounds, {figures['wall']:.1f} s)"
            )


def cpu() -> None:
    """Calls per CPU second with an endpoint that answers at once."""
    for _ in range(3):
        figures = measured(0, 64, epochs=4, sizes=RELEASED)
        rate = figures["calls"] / figures["cpu"]
        print(f"no delay, 64 workers: {rate:.0f} calls per CPU second ({figures['calls']:.0f} calls)")


def size() -> None:
    """Bytes of the database over bytes of plain JSON files."""
    for context, epochs in ((1500, 2), (6000, 2), (6000, 4)):
        figures = measured(0, 64, epochs=epochs, sizes=SIZES, context=context)
        share, database, plain = figures["database"] / figures["json"], figures["database"] / 1e6, figures["json"] / 1e6
        print(f"contexts of {context}, {epochs} epochs: {share:.3f} of plain JSON ({database:.1f} of {plain:.1f} MB)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        tables = {"wall": wall, "cpu": cpu, "size": size}
        for name in sys.argv[1:] or tables:
            tables[name]()
