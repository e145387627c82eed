"""
The page's speed: `python tests/bench/bench_ui.py [RUNS] [EVENTS]` (300 and 100,000).

First views over real loopback, served by the command as a process of its own that has read nothing yet; how long after
its commit an event reaches an open page; memory of the server over many events; the processor that an idle page takes;
and how long a training run takes, and how much processor, beside an open page (of a real Chromium, where there is one),
a served one, one of another run and none.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from bench_audit import made_log, write

from skillopt_es.events.writer import RunWriter

COMMAND = [sys.executable, "-m", "skillopt_es"]
TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def page(directory: Path) -> Iterator[tuple[str, int]]:
    """The page over a directory: the address that it prints, with its token, and its process."""
    words = [*COMMAND, "ui", "--port", "0", "--dir", str(directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().decode().strip(), child.pid
        finally:
            child.send_signal(signal.SIGINT)


def asked(address: str, path: str) -> dict[str, Any]:
    """What asks for a page, as a program that has the token does."""
    home, _, token = address.partition("/?token=")
    return {"url": f"{home}{path}", "headers": {"authorization": f"Bearer {token}"}, "timeout": 60}


def viewed(address: str, path: str) -> float:
    """Seconds until a page is there, whole."""
    began = time.perf_counter()
    answer = httpx.get(**asked(address, path))
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - began


def used(pid: int) -> tuple[float, float]:
    """Seconds of processor and megabytes of memory."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / TICK, int(resident.split()[1]) / 1024


def first_views(folder: Path, runs: int, events: int) -> None:
    """Many runs at once, and a very long one: by a server that sees them for the first time."""
    one = folder / "one"
    subprocess.run([*COMMAND, "run", "--name", "one", "--dir", str(folder), "--quiet"], check=True, capture_output=True)
    for number in range(runs - 1):
        shutil.copytree(one, folder / f"run-{number:04}")
    with page(folder) as (address, _):
        print(f"first view of {runs} runs: {viewed(address, '/'):.2f} s, again {viewed(address, '/'):.2f} s")
    long = folder.parent / "long"
    write(long / "made", list(made_log(events // 256)))
    for name in ("", "step/7", "cost", "refused", "skill", "scores", "items", "item?item=v0", "events", "config"):
        for kept in ("overview.json", "usage.json"):
            (long / "made" / kept).unlink(missing_ok=True)
        with page(long) as (address, pid):
            viewed(address, "/static/ui.js")
            before, path = used(pid)[0], f"/run/made/{name}".rstrip("/")
            print(f"first view of a run of {events:,} events, page {name or 'now'}: {viewed(address, path):.2f} s,"
                  f" {used(pid)[0] - before:.2f} s of processor")  # fmt: skip


def delay(folder: Path, events: int) -> None:
    """From an event's commit to the page, and the server's memory after the first and the last thousand."""
    made = list(made_log(max(3, events // 250)))
    came: dict[int, float] = {}
    with RunWriter.create(folder / "live", run_id="live", name="live", now=lambda: datetime.now(UTC)) as writer:
        asyncio.run(writer.append(made[:1], expected=0))
        with page(folder) as (address, pid):
            stop = threading.Event()

            def listen() -> None:
                live = asked(address, "/run/live/stream?after=1")
                with suppress(httpx.HTTPError), httpx.stream("GET", **live) as answer:
                    for line in answer.iter_lines():
                        if line.startswith("id: "):
                            came[int(line[4:])] = time.perf_counter()
                        if stop.is_set():
                            return

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            time.sleep(1)
            waits, memory = [], []
            for at in range(1, min(events, len(made)) - 20, 20):
                asyncio.run(writer.append(made[at : at + 20], expected=at))
                committed = time.perf_counter()
                while at + 20 not in came:
                    time.sleep(0.002)
                waits.append(came[at + 20] - committed)
                if (at - 1) % 1000 == 0:
                    memory.append(used(pid)[1])
            stop.set()
            most, middle = max(waits), statistics.median(waits)
            print(f"an event reaches an open page after {middle:.3f} s, {most:.3f} s at most of {len(waits)}")
            print(f"memory over {len(came):,} events: {memory[1]:.0f} MB, then {memory[-1]:.0f} MB")
            before = used(pid)[0]
            time.sleep(20)
            print(f"an idle page takes {100 * (used(pid)[0] - before) / 20:.2f} % of a core while the run is written")


def idle(folder: Path) -> None:
    """A page open over a run at rest."""
    with page(folder) as (address, pid):

        def listen() -> None:
            with suppress(httpx.HTTPError), httpx.stream("GET", **asked(address, "/run/one/stream")) as answer:
                for _ in answer.iter_lines():
                    pass

        threading.Thread(target=listen, daemon=True).start()
        time.sleep(3)
        before = used(pid)[0]
        time.sleep(20)
        print(f"an idle page takes {100 * (used(pid)[0] - before) / 20:.2f} % of a core at rest")


CONFIG = """
model: {backend: simulated, optimizer: o, target_backend: "python:agent.py:answer"}
train: {num_epochs: 3, batch_size: 12}
env: {name: tasks, grader: exact, data_path: tasks.jsonl, split_mode: field, skill_init: SKILL.md, workers: 8}
"""
AGENT = """
import asyncio

async def answer(task):
    await asyncio.sleep(0.02)
    return "none"
"""


WAYS = ("alone", "a page is served", "a browser shows another run", "a browser shows it")


def training(folder: Path, turns: int) -> None:
    """The same run, each way in turn: models that take no time, and 20 ms a call. Ratios are within one turn."""
    folder.mkdir()
    for name in ("tasks.jsonl", "SKILL.md"):
        shutil.copy(Path(__file__).parent.parent.parent / "configs" / "demo" / name, folder)
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "agent.py").write_text(AGENT)
    quick, slow = ["--set", "train.num_epochs=24"], [str(folder / "config.yaml")]
    for title, words in (("of 96 steps, simulated models", quick), ("of 12 steps, 20 ms a call", slow)):
        found = [_turn(folder / words[-1].rpartition("/")[2], words, number) for number in range(turns)]
        for way in WAYS:
            took = [each[way] for each in found]
            wall, processor, ahead = ([each[at] for each in took] for at in range(3))
            by_wall, by_processor = ([each[way][at] / each[WAYS[0]][at] for each in found] for at in range(2))
            print(
                f"a training run {title}, {way}: {statistics.median(wall):.2f} s ({_spread(by_wall)} times alone), "
                f"{statistics.median(processor):.2f} s of processor ({_spread(by_processor)}), "
                f"write-ahead log of {max(ahead) / 2**20:.1f} MiB at most"
            )


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


def _turn(folder: Path, more: list[str], number: int) -> dict[str, tuple[float, float, int]]:
    """Seconds, seconds of the trainer's processor and the largest write-ahead log of one run each way."""
    runs, found = folder.with_suffix(".runs"), {}
    if not (runs / "rests").exists():
        words = [*COMMAND, "run", "--name", "rests", "--dir", str(runs), "--quiet"]
        subprocess.run(words, check=True, capture_output=True)
    # Whatever else the machine does meets each of them; a browser needs a core, whatever it shows.
    ways = WAYS[number % 4 :] + WAYS[: number % 4]
    for way in ways:
        name = f"turn-{number}-{WAYS.index(way)}"
        words = [*COMMAND, "run", *more, "--name", name, "--dir", str(runs), "--quiet"]
        with nullcontext(("", 0)) if way == "alone" else page(runs) as (address, _), onlooker(way) as show:
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            with subprocess.Popen(words, stdout=subprocess.DEVNULL) as child:
                log = runs / name / "log.db"
                while not log.exists():
                    time.sleep(0.01)
                show(address, f"/run/{'rests' if way == WAYS[2] else name}")
                largest = 0
                while child.poll() is None:
                    with suppress(FileNotFoundError):
                        largest = max(largest, log.with_name("log.db-wal").stat().st_size)
                    time.sleep(0.02)
            took = time.perf_counter() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[way] = (took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, largest)
    return found


@contextmanager
def onlooker(way: str) -> Iterator[Callable[[str, str], None]]:
    """Shows a page: in a real browser that runs already; where there is none, as the page's script looks again."""
    if way in WAYS[:2]:
        yield lambda address, path: None
        return
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        stop = threading.Event()
        yield lambda address, path: threading.Thread(target=_listen, args=(address, path, stop)).start()
        stop.set()
        return
    words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            [*words, f"--user-data-dir={profile}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        told = Path(profile) / "DevToolsActivePort"
        while not told.exists():
            time.sleep(0.05)
        time.sleep(3)  # its own start takes both cores, whatever it shows
        port = told.read_text().split()[0]

        def show(address: str, path: str) -> None:
            shown = address.replace("/?", f"{path}?")
            httpx.put(f"http://127.0.0.1:{port}/json/new?{shown}").raise_for_status()

        yield show
        browser.terminate()
        browser.wait()


def _listen(address: str, path: str, stop: threading.Event) -> None:
    looked = 0.0
    with suppress(httpx.HTTPError), httpx.stream("GET", **asked(address, f"{path}/stream")) as answer:
        for line in answer.iter_lines():
            turned = line.startswith("data: ") and json.loads(line[6:]).get("turned")
            if turned and time.perf_counter() - looked > 0.3:
                looked = time.perf_counter()
                httpx.get(**asked(address, path))
            if stop.is_set():
                return


def main(runs: int, events: int) -> None:
    """Measures everything."""
    with tempfile.TemporaryDirectory() as name:
        many, live, turns = (Path(name) / each for each in ("many", "live", "turns"))
        first_views(many, runs, events)
        idle(many)
        delay(live, min(events, 10_000))
        training(turns, 8)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
