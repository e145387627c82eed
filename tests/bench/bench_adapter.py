"""
CPU time of one model call on the client's side, against a server without delay in another process.

    python tests/bench/bench_adapter.py [--calls 6000] [--in-flight 64 256]

The last column compares with aiohttp alone, which is what any adapter on it has to pay.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from skillopt_es.adapters.models.chat_completions import ChatWire
from skillopt_es.adapters.models.openai import open_model
from skillopt_es.ports import ChatRequest, Message, ModelSettings

PROMPT = "Read the passage, then answer. " * 64
TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from support.chat import settings  # noqa: E402


def main() -> None:
    """Print one line per number of calls in flight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=6000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[16, 64, 256])
    options = parser.parse_args()
    print(f"{'in flight':>9} {'CPU us/call':>12} {'calls/CPU s':>12} {'calls/s':>9} {'x aiohttp':>10}")
    with model_server() as base_url:
        for in_flight in options.in_flight:
            asyncio.run(report(base_url, options.calls, in_flight))


async def report(base_url: str, calls: int, in_flight: int) -> None:
    """Measure the adapter, then aiohttp alone."""
    settings = settings_for(base_url, in_flight)
    model = open_model(settings, {"BENCH_KEY": "sk-bench-0123456789abcdef"})

    async def ask(number: int) -> None:
        await model.complete(request(number))

    bare = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight))
    body = json.dumps(ChatWire(model="small").body(request(0))).encode()

    async def post(_number: int) -> None:
        async with bare.post(f"{base_url}/chat/completions", data=body) as response:
            json.loads(await response.read())

    cpu, wall = await measure(ask, calls, in_flight)
    floor, _ = await measure(post, calls, in_flight)
    await model.aclose()
    await bare.close()
    print(f"{in_flight:9} {cpu * 1e6:12.0f} {1 / cpu:12.0f} {1 / wall:9.0f} {cpu / floor:10.2f}")


async def measure(call: Callable[[int], Awaitable[None]], calls: int, in_flight: int) -> tuple[float, float]:
    """CPU and wall seconds per call, after one round to warm up."""

    async def worker(numbers: Iterator[int]) -> None:
        for number in numbers:
            await call(number)

    async def round_of(count: int) -> None:
        numbers = iter(range(count))
        await asyncio.gather(*(worker(numbers) for _ in range(in_flight)))

    await round_of(calls // 4)
    cpu, wall = time.process_time(), time.perf_counter()
    await round_of(calls)
    return (time.process_time() - cpu) / calls, (time.perf_counter() - wall) / calls


def request(number: int) -> ChatRequest:
    """A question of 2 kB."""
    messages = (Message("system", "Answer in <answer> tags."), Message("user", PROMPT))
    return ChatRequest(slot=f"rollout/e1/s1/b0/item-{number}", stage="rollout", messages=messages, max_tokens=1024)


def settings_for(base_url: str, concurrency: int) -> ModelSettings:
    """Settings without limits but this many calls in flight."""
    return settings(base_url, api_key_env="BENCH_KEY", timeout_seconds=60, concurrency=concurrency)


@contextmanager
def model_server() -> Iterator[str]:
    """The base_url of a server in another process."""
    command = [sys.executable, "-m", "support.model_server"]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
