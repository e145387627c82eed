"""
The commands that read a run, over a made log: `python tests/bench/bench_reading.py [EVENTS] [VAL_ITEMS]`.

Every rollout has its trajectory and its call in the journal, every analyst its call. Prints for each command the
time that a user waits and the processor time, of a process of its own, start-up included, each the best of three; few
items make many steps.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import bench_audit
import bench_fold
from attrs import evolve

from skillopt_es.engine.call_records import recorded_request
from skillopt_es.events.catalog import Event, PatchProposed, RolloutCompleted
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.journal import FinishedCall
from skillopt_es.events.values import CallRef, text_digest
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatRequest, Message

BATCH = 400
RUNS = 1_000


def _call(event: RolloutCompleted | PatchProposed) -> tuple[FinishedCall, tuple[str, ...]]:
    """The call behind an event, and its texts."""
    rollout = isinstance(event, RolloutCompleted)
    slot = f"{event.place}/{event.item}" if rollout else event.patch
    system = f"# The skill {event.skill}\n" + "Answer with the form that is asked for. " * 40 if rollout else "Analyse."
    question = f"A question about {slot}: " + "which of the names in the passage is meant? " * 20
    answer = f"The answer to {slot} is the second name of the passage." if rollout else f"Four edits for {slot}."
    request = ChatRequest(
        slot=slot, stage="rollout" if rollout else "analyst", max_tokens=512,
        messages=(Message(role="system", content=system), Message(role="user", content=question)),
    )  # fmt: skip
    call = FinishedCall(
        slot=slot, role="target" if rollout else "optimizer", stage=request.stage, model="made", outcome="answered",
        request=recorded_request(request), response=text_digest(answer), finish="stop", reply_model="made",
        input_tokens=700, output_tokens=40, latency_ms=321,
    )  # fmt: skip
    return call, (system, question, answer)


def _called(event: Event) -> Event:
    """The event with what it names in the journal and among the texts."""
    if isinstance(event, RolloutCompleted):
        call, texts = _call(event)
        refs = (CallRef(slot=call.slot, digest=call.digest),)
        return evolve(event, calls=refs, trajectory=text_digest(_trajectory(texts)), task_type="names", turns=1)
    return event


def _trajectory(texts: Sequence[str]) -> str:
    """What is stored of a rollout's trajectory: where its records are in its call, and the grader's word."""
    records = [["system", [0, 0]], ["user", [0, 1]], ["reply", [0]], ["feedback", f"not what {texts[1][:40]} asks for"]]
    return canonical_json({"task": texts[1], "records": records})


async def _fill(writer: RunWriter, events: Iterable[Event]) -> int:
    seq = 0
    for chunk in _chunks(events):
        asked = [_call(event) for event in chunk if isinstance(event, RolloutCompleted | PatchProposed)]
        await asyncio.gather(*(writer.record(call, texts) for call, texts in asked))
        texts = [_trajectory(texts) for _, texts in asked]
        seq = await writer.append([_called(event) for event in chunk], expected=seq, texts=texts)
    return seq


def _chunks(events: Iterable[Event]) -> Iterator[list[Event]]:
    chunk: list[Event] = []
    for event in events:
        chunk.append(event)
        if len(chunk) == BATCH:
            yield chunk
            chunk = []
    yield chunk


def write(folder: Path, events: Iterable[Event]) -> int:
    """A log with its journal on disk; how many events it has."""
    with RunWriter.create(folder, run_id="made", name=folder.name, now=lambda: datetime.now(UTC)) as writer:
        return asyncio.run(_fill(writer, events))


def times(words: Sequence[str], tries: int = 3) -> str:
    """How long a command takes with its start, and what processors are busy for it, each the best of some."""
    waited = busy = float("inf")
    for _ in range(tries):
        before, began = os.times(), time.perf_counter()
        subprocess.run([sys.executable, "-m", "skillopt_es.cli.main", *words], check=True, capture_output=True)
        waited, after = min(waited, time.perf_counter() - began), os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        busy = min(busy, used)
    return f"{waited:.2f} ({busy:.2f})"


def commands(run: str, directory: str, steps: int) -> list[tuple[str, ...]]:
    """What is measured."""
    half = str(steps // 2)
    return [
        ("status", run),
        ("runs", "--dir", directory),
        ("log", run, "--last", "40"),
        ("replay", run),
        ("replay", run, "--until", "step", half),
        ("lineage", run),
        ("explain", run, "step", half),
        ("blame", run),
        ("show", run, "12"),
        ("show", run, f"e1/s{half}/b0/t3"),
        ("usage", run),
        ("diff", run, "step", half),
        ("report", run, "--out", f"{directory}/page.html"),
        ("verify", run),
    ]


def many(run: Path, directory: Path, count: int) -> None:
    """`runs` over copies of a small run: when it reads them, and when it has."""
    for number in range(count):
        shutil.copytree(run, directory / f"run-{number}")
    time.sleep(3)  # what was written a moment ago is not kept
    words = ("runs", "--dir", str(directory))
    first = times(words, tries=1)
    print(f"{count:,} runs: `runs` {first} s, and again {times(words)} s")


def main(count: int, val: int) -> None:
    """Makes the log and measures."""
    bench_fold.VAL = bench_audit.VAL = bench_fold.VAL[:val]
    steps = max(4, count // (57 + val))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs" / "made"
        written = write(folder, bench_audit.made_log(steps))
        size = (folder / "log.db").stat().st_size / 1e6
        print(f"{written:,} events, {steps} steps, {size:.0f} MB; seconds, and those of processor time")
        for words in commands(str(folder), str(folder.parent), steps):
            shown = " ".join(words).replace(str(folder), "RUN").replace(str(folder.parent), "RUNS")
            print(f"  {shown:<28} {times(words)}", flush=True)
        write(Path(name) / "small", bench_audit.made_log(1))
        many(Path(name) / "small", Path(name) / "many", RUNS)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(numbers[0] if numbers else 100_000, numbers[1] if len(numbers) > 1 else 200)
