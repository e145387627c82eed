"""
The whole trainer against endpoints that fail, refuse, break off or go away: wall time over what it has to be.

    python tests/bench/bench_faults.py                 every fault
    python tests/bench/bench_faults.py 429 all down    some of them

For faults by chance the bound is simulated from the run's own record: the same calls in the same phases, on as many
workers, where a call that fails is asked again after what the endpoint told it to wait, and at once where it was told
nothing. A limit of the endpoint's own (calls at once, calls a second, a time away) gives the bound by itself. The
goal is 1.3. What a run needs beside its calls (start-up, reading, the log) is in the wall time and not in the bound:
where nobody is told to wait, `over none`, the same over the fault-free run, says more.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(Path(__file__).resolve().parent)]

DELAY = 0.05
WORKERS = 16
SIZES = {"train": 80, "val": 60, "test": 60}


@frozen(kw_only=True)
class Fault:
    """What goes wrong: arguments of the model server, and for how long it is not there at all."""

    server: tuple[str, ...] = ()
    told: float = 0.0
    at_once: int = 0
    a_second: float = 0.0
    away: float = 0.0
    stream: bool = False


def by_chance(faults: str, told: str = "", **more: Any) -> Fault:
    """A share of the requests fails, each with what is told."""
    seconds = float(told.partition(":")[2] or 0)
    return Fault(server=("--faults", faults, "--told", told), told=seconds, **more)


FAULTS = {
    "none": by_chance("429:0"),
    "429": by_chance("429:0.2", "429:0.5"),
    "500": by_chance("500:0.05"),
    "drop": by_chance("drop:0.02"),
    "cut": by_chance("cut:0.05"),
    "all": by_chance("429:0.2,500:0.05,drop:0.02,cut:0.05", "429:0.5"),
    "streamed": by_chance("429:0.2,500:0.05,drop:0.02,cut:0.05", "429:0.5", stream=True),
    "half": by_chance("429:0.5", "429:2"),
    "untold": by_chance("429:0.2"),
    "zero": by_chance("429:0.2", "429:0"),
    "503": by_chance("503:0.1", "503:1"),
    "529": by_chance("529:0.1"),
    "at-once": Fault(server=("--at-once", "4", "--told", "429:1"), at_once=4),
    "at-once-untold": Fault(server=("--at-once", "4", "--told", ""), at_once=4),
    "a-second": Fault(server=("--a-second", "50", "--told", "429:1"), a_second=50),
    "a-second-untold": Fault(server=("--a-second", "50", "--told", ""), a_second=50),
    "down": Fault(away=5.0),
}


@contextmanager
def endpoint(fault: Fault) -> Iterator[str]:
    """The base URL of an endpoint in a process of its own, which goes away for a while if it should."""
    command = [sys.executable, "-m", "support.model_server", "--handler", "support.bench_models:answer"]
    command += ["--delay-ms", str(1000 * DELAY), *fault.server]
    processes = [subprocess.Popen(command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)]
    assert processes[0].stdout is not None
    url = processes[0].stdout.readline().strip()
    over = threading.Event()

    def away() -> None:
        if over.wait(1.5):
            return
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        over.wait(fault.away)
        again = [*command, "--port", url.rpartition(":")[2].partition("/")[0]]
        processes.append(subprocess.Popen(again, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    thread = threading.Thread(target=away)
    try:
        if fault.away:
            thread.start()
        yield url
    finally:
        over.set()
        if fault.away:
            thread.join()
        for process in processes:
            process.kill()
            process.wait()


@define
class Phases:
    """An observer that keeps, for each phase, the status of each call's failed tries."""

    phases: list[list[list[int | None]]] = field(factory=list)

    def planned(self, task: object, state: object) -> None:
        """A phase begins."""
        self.phases.append([])

    def happened(self, seq: int, event: object, state: object) -> None:
        """Nothing to keep."""

    def called(self, row: Any) -> None:
        """A call has come to its end."""
        self.phases[-1].append([one["status"] for one in json.loads(row.call.tries)])


def makespan(calls: Sequence[Sequence[float]], workers: int, delay: float) -> float:
    """How long these calls take on so many workers; one that waits for its next try leaves its worker to others."""
    fresh = deque(enumerate(calls))
    waiting: list[tuple[float, int, int]] = []  # (when, call, tries made)
    busy: list[float] = []
    now = end = 0.0
    while fresh or waiting:
        while busy and busy[0] <= now:
            heapq.heappop(busy)
        due = bool(waiting) and waiting[0][0] <= now
        if len(busy) < workers and (due or fresh):
            _, number, made = heapq.heappop(waiting) if due else (now, fresh.popleft()[0], 0)
            done = now + delay
            heapq.heappush(busy, done)
            end = max(end, done)
            if made < len(calls[number]):
                heapq.heappush(waiting, (done + calls[number][made], number, made + 1))
            continue
        moments = [busy[0]] if busy and len(busy) >= workers else [*busy[:1], *[when for when, *_ in waiting[:1]]]
        now = min(moment for moment in moments if moment > now)
    return end


def child(config: str, folder: str) -> None:
    """One run in this process; prints its figures."""
    from skillopt_es.cli.process import prepare_process
    from skillopt_es.config import load_config
    from skillopt_es.sessions.session import start
    from skillopt_es.sessions.wiring import Session

    prepare_process()
    phases = Phases()
    began = time.perf_counter()
    session = Session(now=lambda: datetime.now(UTC), clock=time.monotonic, observers=(phases,))
    state = asyncio.run(start(load_config(Path(config)), Path(folder), session))
    figures = {
        "wall": time.perf_counter() - began,
        "phases": phases.phases,
        "status": state.status,
        "best": state.best.skill.hash if state.best else "",
        "why": state.paused.message if state.paused else "",
    }
    print(json.dumps(figures))


def measured(fault: Fault) -> dict[str, Any]:
    """The figures of one run, with its bound."""
    from bench_trainer import write_project

    with tempfile.TemporaryDirectory() as name, endpoint(fault) as base_url:
        config = write_project(Path(name), base_url, workers=WORKERS, epochs=1, sizes=SIZES)
        config.write_text(config.read_text().replace("model:\n", f"model:\n  stream: {str(fault.stream).lower()}\n"))
        command = [sys.executable, __file__, "--child", str(config), str(Path(name) / "run")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        figures: dict[str, Any] = json.loads(done.stdout)
    figures["bound"] = bound(fault, figures["phases"])
    return figures


def bound(fault: Fault, phases: Sequence[Sequence[Sequence[int | None]]]) -> float:
    """What a run of these phases has to take: refusals that were told count what they were told, others nothing."""
    if fault.at_once or fault.a_second:
        workers, rate = fault.at_once or WORKERS, fault.a_second or math.inf
        return sum(max(makespan([[]] * len(calls), workers, DELAY), len(calls) / rate) for calls in phases)
    waits = [[[fault.told if status in {429, 503} else 0.0 for status in tries] for tries in calls] for calls in phases]
    return sum(makespan(calls, WORKERS, DELAY) for calls in waits) + fault.away


def main(names: Sequence[str]) -> None:
    """One line a fault."""
    clean = measured(FAULTS["none"])
    print(f"{sum(map(len, clean['phases']))} calls of {1000 * DELAY:g} ms, {WORKERS} workers")
    print("fault               wall   bound  wall/bound  over none  tries  ended")
    for name in names or [name for name in FAULTS if name != "half"]:  # that one takes two minutes
        found = clean if name == "none" else measured(FAULTS[name])
        tries = sum(len(call) + 1 for calls in found["phases"] for call in calls)
        same = "the same skill" if found["best"] == clean["best"] else "ANOTHER SKILL"
        ended = f"{found['status']}, {same} {found['why']}".rstrip()
        ratio, over = found["wall"] / found["bound"], found["wall"] / clean["wall"]
        print(
            f"{name:16} {found['wall']:6.2f}s {found['bound']:6.2f}s {ratio:11.2f} {over:10.2f} {tries:6}  {ended}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main(sys.argv[1:])
