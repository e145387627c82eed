"""
Attempts on a Ray cluster of this machine: how they scale where they wait, what each costs, where the writer ends.

    python tests/bench/bench_scale.py [--nodes 1,2,4,8] [--seats 2] [--delay 0.5] [--rounds 12]

Nodes are processes on this machine, so what is measured is work that waits (for a model, a game, a container), not
work that computes. The table has the throughput beside the ideal one (each worker busy for the delay alone, and nothing
else); the line below it what an attempt costs the writer: its own processor time, with one question each and no delay.
What follows is a model: from that, and from what a call costs a run besides (bench_trainer.py), which part of a
processor the writer needs for clusters of up to 1,000 nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from attrs import evolve, frozen

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.ray_cluster import SEAT, cluster

from skillopt_es.adapters.executors.on_ray import RayExecutor, open_executor
from skillopt_es.ports import AskOptions, ChatReply, ExecutorSettings, Item, Message
from skillopt_es.testing.executors import SKILL, Target, workplace


@frozen
class Slow:
    """A target that takes its time."""

    delay: float

    async def __call__(self, messages: Sequence[Message], **options: Unpack[AskOptions]) -> ChatReply:
        """Right, after a while."""
        if self.delay:
            await asyncio.sleep(self.delay)
        return await Target()(messages, **options)


@frozen(kw_only=True)
class Measured:
    """What so many attempts took: seconds, and seconds of the writer's processor."""

    attempts: int
    seconds: float
    processor: float


async def measured(address: str, workers: int, attempts: int, delay: float) -> Measured:
    """So many attempts by so many workers, all of which are there when it begins."""
    settings = ExecutorSettings(
        stopping=lambda: False, workers=workers, options={"address": address, "cpus": 0.0, "resources": {SEAT: 1}}
    )
    executor: RayExecutor = open_executor(settings)
    with TemporaryDirectory() as folder:
        place = workplace(Path(folder))
        splits = place.environment.load()
        hands = executor.hands(evolve(place, digests=splits.digests))
        items: list[Item] = [*splits.train, *splits.val, *splits.test]

        async def work(count: int, wait: float) -> None:
            jobs = [
                lambda n=n: hands.attempt(items[n % 4], SKILL, lambda _: Slow(wait), seed=n, slot=f"s{n}")
                for n in range(count)
            ]
            async for _ in executor.stream(jobs, workers=2 * workers):
                pass

        await work(1, 0.0)
        while executor.crew is None or executor.crew.size < workers:  # noqa: ASYNC110 -- nobody is told when it is
            await asyncio.sleep(0.1)
        await work(2 * workers, 0.0)
        began, spent = time.perf_counter(), processor()
        await work(attempts, delay)
        took = Measured(attempts=attempts, seconds=time.perf_counter() - began, processor=processor() - spent)
        await executor.aclose()
    return took


def processor() -> float:
    """What this process has used, all its threads together; Ray's are among them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@frozen
class Kind:
    """A kind of attempt: how long it takes, and how often it asks the target."""

    name: str
    seconds: float
    calls: int

    def costs(self, message: float) -> float:
        """What one attempt costs the writer: a message to begin it, and for each call one more and the call itself."""
        return (self.calls + 1) * message + self.calls * CALL


CALL = 1 / 2_400  # seconds of processor for a call in a whole run, its journal and its events (bench_trainer.py)
KINDS = (Kind("question", 3, 1), Kind("game", 60, 20), Kind("script", 30, 2), Kind("coding agent", 600, 50))
WORKERS = 8  # a node


def print_model(message: float) -> None:
    """The writer's share of a processor, by kind of attempt and number of nodes, with every worker busy."""
    nodes = (1, 10, 100, 1000)
    print(
        f"\n{'attempts':14} {'s':>5} {'calls':>6}",
        *(f"{count:>7} nodes" for count in nodes),
        "  the writer is the limit at",
    )
    for kind in KINDS:
        shares = [count * WORKERS / kind.seconds * kind.costs(message) for count in nodes]
        most = kind.seconds / kind.costs(message)
        cells = " ".join(f"{share:13.3f}" for share in shares)
        print(f"{kind.name:14} {kind.seconds:5g} {kind.calls:6} {cells}   {most:,.0f} workers")


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", default="1,2,4,8")
    parser.add_argument("--seats", type=int, default=2)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    here = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    print(f"{here}; {given.seats} workers a node, {given.delay} s each")
    print(f"\n{'nodes':>5} {'workers':>7} {'attempts':>8} {'seconds':>8} {'ideal':>8} {'of ideal':>8}")
    for nodes in map(int, given.nodes.split(",")):
        with cluster(nodes, seats=given.seats) as made:
            workers = nodes * given.seats
            took = asyncio.run(measured(made.address, workers, workers * given.rounds, given.delay))
            ideal = given.rounds * given.delay
            print(
                f"{nodes:5} {workers:7} {took.attempts:8} {took.seconds:8.2f} {ideal:8.2f} {ideal / took.seconds:8.2f}",
                flush=True,
            )
    with cluster(1, seats=4) as made:
        took = asyncio.run(measured(made.address, 4, 2000, 0.0))
        print(f"\n{took.attempts} attempts without delay: {1000 * took.seconds / took.attempts:.2f} ms each,", end=" ")
        each = took.processor / took.attempts
        print(f"{1000 * each:.2f} ms of the writer's processor: one processor leads {1 / each:,.0f} attempts a second")
    print_model(each / 2)


if __name__ == "__main__":
    main()
