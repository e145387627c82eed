"""
What a call costs a run beside what the transport alone takes for it: calls per CPU second of both, and their ratio.

    python tests/bench/bench_calls.py [--rounds 9]            short runs in one process, which has made one before
    python tests/bench/bench_calls.py --whole [--rounds 3]    long runs, each in a new process: start-up is in it

Each round is a run against an endpoint that answers at once. Then the bodies of its calls are posted once more, over
httpx's transport alone and by as many workers, and the replies parsed. Both are CPU time of one process with all of its
threads, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import httpx
from attrs import frozen
from httpx_aiohttp import AiohttpTransport

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent)]

from bench_trainer import RELEASED, endpoint, write_project  # noqa: E402 - found beside this script

WORKERS = 64
WANTED = 0.50
SHORT = {"train": 80, "val": 40, "test": 200}


@frozen
class Round:
    """Seconds of the processor for a run, and for its calls over the transport alone; memory of the process in MiB."""

    calls: int
    run: float
    alone: float
    memory: float

    @property
    def ratio(self) -> float:
        """How many calls the run makes while the transport alone would make one."""
        return self.alone / self.run

    @property
    def line(self) -> str:
        """One row of the table."""
        run, alone = self.calls / self.run, self.calls / self.alone
        return f"{self.calls:6} {run:12.0f} {alone:16.0f} {self.ratio:6.3f} {self.memory:5.0f}"


def child(config: str, base_url: str, rounds: str) -> None:
    """So many rounds in this process; prints each of them as JSON."""
    from skillopt_es.cli.process import prepare_process

    prepare_process()
    for number in range(int(rounds)):
        folder = Path(config).with_name(f"run-{number}")
        run = trained(Path(config), folder)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        posted = bodies(folder)
        alone = asyncio.run(posting(f"{base_url}/chat/completions", posted))
        print(json.dumps([len(posted), run, alone, memory]))


def trained(config: Path, folder: Path) -> float:
    """CPU seconds of a run."""
    from skillopt_es.config import load_config
    from skillopt_es.sessions.session import start
    from skillopt_es.sessions.wiring import Session

    began = time.process_time()
    asyncio.run(start(load_config(config), folder, Session(now=lambda: datetime.now(UTC), clock=time.monotonic)))
    return time.process_time() - began


def bodies(folder: Path) -> list[bytes]:
    """What each call of a run has sent."""
    from skillopt_es.adapters.models.chat_completions import ChatWire
    from skillopt_es.events.journal import Journal
    from skillopt_es.events.log import EventLog
    from skillopt_es.ports import ChatRequest, Message

    wire = ChatWire(model="small")
    with EventLog.open(folder) as log:
        asked = [
            ChatRequest(
                slot=row.call.slot,
                stage=row.call.stage,
                messages=tuple(Message(role, log.text(text)) for role, text in row.call.request.messages),  # type: ignore[arg-type]
                max_tokens=row.call.request.max_tokens,
            )
            for row in Journal(log.reader).read()
        ]
    return [json.dumps(wire.body(request)).encode() for request in asked]


async def posting(url: str, posted: list[bytes]) -> float:
    """CPU seconds for posting these bodies and parsing the replies: no user of the transport can leave that out."""
    transport = AiohttpTransport()
    connector = aiohttp.TCPConnector(limit=WORKERS)
    transport.client = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def worker(waiting: Iterator[bytes]) -> None:
        for body in waiting:
            request = httpx.Request("POST", url, content=body, headers={"content-type": "application/json"})
            response = await transport.handle_async_request(request)
            json.loads(await response.aread())

    began = time.process_time()
    waiting = iter(posted)
    await asyncio.gather(*(worker(waiting) for _ in range(WORKERS)))
    took = time.process_time() - began
    await transport.aclose()
    return took


def rounds_of(sizes: dict[str, int], epochs: int, rounds: int) -> Iterator[Round]:
    """The rounds of one process."""
    with tempfile.TemporaryDirectory() as name, endpoint(0) as base_url:
        config = write_project(Path(name), base_url, workers=WORKERS, epochs=epochs, sizes=sizes)
        command = [sys.executable, __file__, "--child", str(config), base_url, str(rounds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield Round(*json.loads(line))


def main() -> None:
    """Prints each round, and the median ratio with its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    print(" calls  run, /CPU s  transport, /CPU s  ratio   MiB")
    ratios = []
    if options.whole:
        made = (each for _ in range(options.rounds) for each in rounds_of(RELEASED, 4, 1))
    else:
        made = rounds_of(SHORT, 2, options.rounds + 1)
    for number, each in enumerate(made):
        print(each.line, flush=True)
        if options.whole or number:  # the first one also loads what the others use
            ratios.append(each.ratio)
    print(f"median ratio {statistics.median(ratios):.3f} (bound: {WANTED:.2f}), all in CPU time")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
