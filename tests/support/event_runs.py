"""Runs to test the log with: small, deterministic, and with everything in them that a log can hold."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from skillopt_es.events.catalog import CandidateBuilt, Event, RolloutCompleted, RunResumed
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.journal import FinishedCall
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import CallRef, Measured, SkillTree, digest_of
from skillopt_es.events.writer import RunWriter

T = TypeVar("T")
SKILL = "# Skill\n" + "".join(f"- rule {number}: look twice before you answer.\n" for number in range(120))


def ticking() -> Callable[[], datetime]:
    """A clock that goes on by one second at each look."""
    moments = iter(range(10**9))
    return lambda: datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=next(moments))


def address(text: str) -> str:
    """The digest of a text."""
    return digest_of(text.encode())


def create(folder: Path, name: str = "run") -> RunWriter:
    """A new run."""
    return RunWriter.create(folder, run_id=f"id-of-{name}", name=name, now=ticking())


def reopen(folder: Path) -> RunWriter:
    """The next writer of a run."""
    return RunWriter.open(folder, now=ticking())


def resumed(number: int) -> Event:
    """A tiny event that can be told from others."""
    return RunResumed(software=f"v{number}")


def rollout(number: int, calls: Sequence[CallRef] = (), trajectory: str = "") -> RolloutCompleted:
    """A rollout's event."""
    return RolloutCompleted(
        place="e1/s1/train",
        purpose="train",
        item=f"item-{number}",
        skill="s",
        outcome=Measured(hard=float(number % 2), soft=0.5),
        task_type="qa",
        turns=1,
        trajectory=trajectory,
        calls=tuple(calls),
    )


def finished(slot: str, request: str, answer: str) -> tuple[FinishedCall, list[str]]:
    """An answered call and the texts that go with it."""
    asked = canonical_json({"messages": [["system", address(SKILL)], ["user", address(request)]], "params": {}})
    call = FinishedCall(
        slot=slot,
        role="target",
        stage="rollout",
        model="openai http://host/v1 small",
        request=RecordedRequest(asked),
        outcome="answered",
        response=address(answer),
        finish="stop",
        input_tokens=30,
        output_tokens=5,
        latency_ms=900,
    )
    return call, [SKILL, request, answer]


def failed(slot: str, message: str = "the server hung up") -> FinishedCall:
    """A call without an answer."""
    return FinishedCall(
        slot=slot,
        role="target",
        stage="rollout",
        model="m",
        request=RecordedRequest("{}"),
        outcome="failed",
        error_kind="transport",
        error_message=message,
    )


async def unit(writer: RunWriter, number: int, *, expected: int) -> int:
    """One item tried: its call, its trajectory and its event."""
    call, texts = finished(f"e1/s1/train/item-{number}", f"question {number}", f"answer {number}")
    row = await writer.record(call, texts)
    records = [["user", address(texts[1])], ["reply", address(texts[2])]]
    trajectory = canonical_json({"task": f"item {number}", "records": records})
    event = rollout(number, [row.ref], address(trajectory))
    return await writer.append([event], expected=expected, texts=[trajectory])


def fill(folder: Path, units: int) -> None:
    """A finished run: a skill, a failed call and so many items."""

    async def work(writer: RunWriter) -> None:
        tree = SkillTree({"SKILL.md": SKILL})
        head = await writer.append([CandidateBuilt(step=1, parent="p", candidate=tree, reports=())], expected=0)
        await writer.record(failed("e1/s1/train/item-0"))
        for number in range(units):
            head = await unit(writer, number, expected=head)

    with_writer(folder, work)


def with_writer(folder: Path, work: Callable[[RunWriter], Coroutine[None, None, T]]) -> T:
    """What some work with the writer of a run comes to; the run is made when it is not there."""
    with (reopen if (folder / "log.db").exists() else create)(folder) as writer:
        return asyncio.run(work(writer))


def copy_live(folder: Path, target: Path) -> Path:
    """The files of a run as they are on disk this moment, in another folder, without the lock."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("lock", "*-shm"))
    return target


def client(folder: Path) -> sqlite3.Connection:
    """What any other program would open the log with."""
    return sqlite3.connect(folder / "log.db", isolation_level=None)


def forge(folder: Path, *statements: str) -> None:
    """Changes tables behind the triggers' back, and puts the triggers back so that nobody notices."""
    connection = client(folder)
    triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger' order by name").fetchall()
    for name, _ in triggers:
        connection.execute(f"drop trigger {name}")
    for statement in statements:
        assert connection.execute(statement).rowcount != 0, f"{statement} changed nothing"
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()
