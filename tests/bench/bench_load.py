"""
Many calls at once for a while: does anything grow, stay open or stay behind, and what does a call cost?

    python tests/bench/bench_load.py [--calls 20000] [--in-flight 256] [--only anthropic responses]

One line per wire format: CPU per call, memory after a fifth of the calls and at the end, connections that the server
counted in all, and what was left after closing (open connections at the server, tasks here).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from support.chat import question, settings  # noqa: E402 - found beside this script
from support.wires import FORMATS  # noqa: E402

from skillopt_es.ports import ChatModel, Message  # noqa: E402

PROMPT = "Read the passage, then answer. " * 64
HANDLERS = {
    "openai": ("openai", False),
    "openai_streamed": ("openai", True),
    "responses": ("openai-responses", False),
    "azure": ("azure-classic", False),
    "anthropic": ("anthropic", False),
    "anthropic_streamed": ("anthropic", True),
    "qwen": ("qwen", False),
    "minimax": ("minimax", False),
}


def main() -> None:
    """Print one line per wire format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--only", nargs="+", choices=sorted(HANDLERS), default=list(HANDLERS))
    options = parser.parse_args()
    print(f"{options.calls} calls, {options.in_flight} in flight; memory in MiB after a fifth and at the end")
    print("format             CPU us/call  calls/s        memory connections left open tasks")
    for name in options.only:
        print(measured(name, options.calls, options.in_flight).line(name), flush=True)


@frozen(kw_only=True)
class Figures:
    """What one format came to."""

    cpu: float
    wall: float
    early: float
    late: float
    connections: int
    left_open: int
    left_tasks: int

    def line(self, name: str) -> str:
        """One row of the table."""
        memory = f"{self.early:.1f} {self.late:.1f}"
        return (
            f"{name:18} {self.cpu * 1e6:11.0f} {1 / self.wall:8.0f} {memory:>13} {self.connections:11} "
            f"{self.left_open:9} {self.left_tasks:5}"
        )


def measured(name: str, calls: int, in_flight: int) -> Figures:
    """The figures of one format."""
    spoken, stream = HANDLERS[name]
    with server(name) as process:
        assert process.stdout is not None
        given = evolve(settings(process.stdout.readline().strip(), api_key_env="K"), concurrency=in_flight)
        model = FORMATS[spoken].model(given, {"K": "sk-bench-0123456789abcdef"}, stream=stream, timeout_seconds=60)
        return asyncio.run(loaded(model, process, calls, in_flight))


async def loaded(model: ChatModel, process: subprocess.Popen[str], calls: int, in_flight: int) -> Figures:
    """Ask so many questions, so many at a time; then close and look at what is left."""
    before = len(asyncio.all_tasks())

    async def worker(numbers: Iterator[int]) -> None:
        for number in numbers:
            messages = (Message("system", "Answer in <answer> tags."), Message("user", PROMPT))
            await model.complete(question(number, messages=messages))

    async def asked(count: int) -> None:
        numbers = iter(range(count))
        await asyncio.gather(*(worker(numbers) for _ in range(in_flight)))

    await asked(calls // 5)
    early = memory()
    cpu, wall = time.process_time(), time.perf_counter()
    rest = calls - calls // 5
    await asked(rest)
    cpu, wall = (time.process_time() - cpu) / rest, (time.perf_counter() - wall) / rest
    late = memory()
    await model.aclose()
    await asyncio.sleep(0.2)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("?\n")
    process.stdin.flush()
    seen = json.loads(process.stdout.readline())
    return Figures(
        cpu=cpu,
        wall=wall,
        early=early,
        late=late,
        connections=seen["connections"],
        left_open=seen["open"],
        left_tasks=len(asyncio.all_tasks()) - before,
    )


def memory() -> float:
    """What this process holds now, in MiB."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def server(name: str) -> Iterator[subprocess.Popen[str]]:
    """A server of that format in another process."""
    command = [sys.executable, "-m", "support.model_server", "--handler", f"support.bench_wires:{name}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=TESTS, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
