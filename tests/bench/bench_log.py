"""
What the log costs, as ratios and CPU microseconds: `python tests/bench/bench_log.py [folder]`.

The folder should be on the disk where runs will live. Nothing here is a test: machines differ, ratios less so.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.codec import canonical_json, decode, encode
from skillopt_es.events.journal import FinishedCall
from skillopt_es.events.log import EventLog
from skillopt_es.events.raw import connect
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.schema import prepare_writer
from skillopt_es.events.values import CallRef, Measured, text_digest
from skillopt_es.events.writer import RunWriter

GROUP = 64
EVENTS = 12_800
CALLS = 6_400
WORDS = re.findall(
    r"\w+",
    """
the answer passage document question evidence which river city year born first song film album team player
war king empire company science theory element language novel author because therefore according article
""",
)


def rollout(number: int) -> RolloutCompleted:
    """An ordinary event of about 500 bytes."""
    slot = f"e1/s{number // 40}/train/item-{number % 1000:04}"
    return RolloutCompleted(
        place=f"e1/s{number // 40}/train",
        purpose="train",
        item=f"item-{number % 1000:04}",
        skill=text_digest(f"skill {number // 40}"),
        outcome=Measured(hard=float(number % 2), soft=0.5),
        task_type="qa",
        turns=1,
        prediction="Paris",
        trajectory=text_digest(f"trajectory {number}"),
        calls=(CallRef(slot=slot, digest=text_digest(slot)),),
    )


def call(number: int, texts: Sequence[str]) -> FinishedCall:
    """An ordinary finished call whose request is all texts but the last, and whose answer is the last."""
    digests = [text_digest(text) for text in texts]
    messages = [["user", digest] for digest in digests[:-1]]
    return FinishedCall(
        slot=f"e1/s{number // 40}/train/item-{number:06}/ask",
        role="target",
        stage="rollout",
        model="openai http://127.0.0.1:8000/v1 small",
        request=RecordedRequest(
            canonical_json({"messages": messages, "params": {"max_tokens": 1024, "temperature": 0.7}})
        ),
        outcome="answered",
        response=digests[-1],
        finish="stop",
        reply_model="small-2026-08",
        request_id=f"req-{number:012}",
        input_tokens=3000,
        output_tokens=80,
        latency_ms=900,
    )


def conversation(number: int, shared: Sequence[str]) -> list[str]:
    """Two long user texts, of which nine in ten were seen before, and a short reply that is new."""
    dice = random.Random(number)
    first = shared[number % len(shared)]
    second = prose(6000, dice) if number % 5 == 0 else shared[(number * 7 + 1) % len(shared)]
    return [first, second, prose(300, dice)]


def prose(size: int, dice: random.Random) -> str:
    """Text of about that many bytes."""
    return " ".join(dice.choices(WORDS, k=size // 6))


def bare(folder: Path) -> float:
    """Events a second that plain sqlite3 writes in durable groups of the same size, with nothing around it."""
    connection = connect(folder / "bare.db", "mode=rwc")
    prepare_writer(connection, folder / "bare.db")
    connection.execute(
        "create table e (seq integer primary key, type text, version integer, at text, data text) strict"
    )
    payloads = [json.loads(encode(rollout(number)).data) for number in range(EVENTS)]
    start = time.perf_counter()
    for first in range(0, EVENTS, GROUP):
        rows = [
            (seq + 1, "RolloutCompleted", 1, datetime.now(UTC).isoformat(), json.dumps(payloads[seq]))
            for seq in range(first, first + GROUP)
        ]
        connection.execute("begin immediate")
        connection.executemany("insert into e values (?, ?, ?, ?, ?)", rows)
        connection.execute("commit")
    seconds = time.perf_counter() - start
    connection.close()
    return EVENTS / seconds


def ours(folder: Path) -> tuple[float, float]:
    """Events a second through the writer in groups of the same size, and CPU microseconds an event."""
    events = [rollout(number) for number in range(EVENTS)]

    async def run(writer: RunWriter) -> None:
        for first in range(0, EVENTS, GROUP):
            await writer.append(events[first : first + GROUP], expected=first)

    return _rate(folder, "ours", EVENTS, run)


def one_by_one(folder: Path) -> tuple[float, float]:
    """The same with one append an event, 64 of them waiting at a time."""
    events = [rollout(number) for number in range(EVENTS)]

    async def run(writer: RunWriter) -> None:
        for first in range(0, EVENTS, GROUP):
            await asyncio.gather(*(writer.append([events[seq]], expected=seq) for seq in range(first, first + GROUP)))

    return _rate(folder, "single", EVENTS, run)


def journal(folder: Path) -> tuple[float, float]:
    """Calls a second with 64 in flight, each recorded and then told by an event, and CPU microseconds a call."""
    shared = [prose(6000, random.Random(-number)) for number in range(1, 401)]
    plan = [(call(number, texts), texts) for number in range(CALLS) for texts in [conversation(number, shared)]]
    events = [rollout(number) for number in range(CALLS)]

    async def run(writer: RunWriter) -> None:
        for first in range(0, CALLS, GROUP):
            part = plan[first : first + GROUP]
            await asyncio.gather(*(writer.record(*each) for each in part))
            await writer.append(events[first : first + GROUP], expected=first)

    return _rate(folder, "journal", CALLS, run)


def latency(folder: Path) -> list[float]:
    """Milliseconds that recording adds to each call, with 64 workers whose calls take about 50 ms."""
    shared = [prose(6000, random.Random(-number)) for number in range(1, 401)]
    waited: list[float] = []

    async def worker(writer: RunWriter, index: int) -> None:
        for turn in range(30):
            number = turn * GROUP + index
            texts = conversation(number, shared)
            finished = call(number, texts)
            await asyncio.sleep(0.03 + random.random() * 0.04)
            start = time.perf_counter()
            await writer.record(finished, texts)
            waited.append((time.perf_counter() - start) * 1e3)

    async def run(writer: RunWriter) -> None:
        await asyncio.gather(*(worker(writer, index) for index in range(GROUP)))

    _rate(folder, "latency", 1, run)
    return sorted(waited)


def reading(folder: Path) -> float:
    """Events a second that are read, checked against the chain and decoded."""
    with EventLog.open(folder / "ours") as log:
        start = time.perf_counter()
        count = sum(1 for _ in log.read())
        return count / (time.perf_counter() - start)


def coding() -> tuple[float, float]:
    """Microseconds to encode and to decode one event."""
    event = rollout(7)
    data = encode(event)
    return (
        _micros(lambda: encode(event)),
        _micros(lambda: decode(data.type, data.version, data.data, str)),
    )


def main() -> None:
    """Prints the figures."""
    base = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    rounds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory(dir=base) as name:
            folder = Path(name)
            plain, (grouped, cpu), (single, single_cpu) = bare(folder), ours(folder), one_by_one(folder)
            calls, call_cpu = journal(folder)
            rounds.append((plain, grouped, cpu, single, single_cpu, calls, call_cpu, reading(folder)))
            waited = latency(folder)
    plain, grouped, cpu, single, single_cpu, calls, call_cpu, read = map(statistics.median, zip(*rounds, strict=True))
    encoding, decoding = coding()
    _say(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}; medians of 3, groups of {GROUP}")
    _say(f"bare sqlite3, json.dumps, durable groups     {plain:10,.0f} events/s")
    _say(
        f"append of {GROUP} events at a time               {grouped:10,.0f} events/s  ratio {grouped / plain:.2f}"
        f"  {cpu:6.1f} us CPU each"
    )
    _say(
        f"append of one event, {GROUP} waiting             {single:10,.0f} events/s  ratio {single / plain:.2f}"
        f"  {single_cpu:6.1f} us CPU each"
    )
    _say(
        f"record + append, {GROUP} in flight               {calls:10,.0f} calls/s"
        f"              {call_cpu:6.1f} us CPU each"
    )
    _say(
        f"latency added by record, {GROUP} in flight       median {statistics.median(waited):.2f} ms, "
        f"99 % {waited[int(len(waited) * 0.99)]:.2f} ms"
    )
    _say(f"read, chain check and decode                 {read:10,.0f} events/s")
    _say(f"encode {encoding:.1f} us, decode {decoding:.1f} us")


def _rate(folder: Path, name: str, count: int, work: Callable[[RunWriter], Awaitable[None]]) -> tuple[float, float]:
    async def measured() -> tuple[float, float]:
        start, cpu = time.perf_counter(), time.process_time()
        await work(writer)
        return count / (time.perf_counter() - start), (time.process_time() - cpu) / count * 1e6

    with RunWriter.create(folder / name, run_id=name, name=name, now=lambda: datetime.now(UTC)) as writer:
        return asyncio.run(measured())


def _micros(work: Callable[[], object], number: int = 20_000) -> float:
    start = time.perf_counter()
    for _ in range(number):
        work()
    return (time.perf_counter() - start) / number * 1e6


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
