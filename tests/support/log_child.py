"""
A process of its own that writes to a run: `python log_child.py JOB FOLDER`, told from outside when to die.

It prints what was acknowledged, one line at a time, so that the parent knows what must survive.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from skillopt_es.events.anchor import read_anchor
from skillopt_es.events.errors import LogUnwritable, RunBusy
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.writer import RunWriter
from support.event_runs import resumed, unit


def now() -> datetime:
    return datetime.now(UTC)


def say(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


def hold(folder: Path) -> None:
    """Holds the run until killed."""
    RunWriter.open(folder, now=now)
    say("held")
    sys.stdin.read()


def busy(folder: Path) -> None:
    """Says how a second writer is refused."""
    try:
        RunWriter.open(folder, now=now)
    except RunBusy as error:
        say(json.dumps({"message": error.message, "pid": error.pid, "host": error.host, "start": error.start}))


def append(folder: Path) -> None:
    """Appends for ever: units in sequence and, beside them, calls nobody waits for; anchors now and then."""
    writer = RunWriter.open(folder, now=now)

    async def work() -> None:
        head = writer.log.head().seq
        say("start", head)
        while True:
            head = await unit(writer, head, expected=head)
            say("event", head, writer.log.head().hash)
            heads = await asyncio.gather(*(writer.append([resumed(n)], expected=n) for n in range(head, head + 5)))
            head = heads[-1]
            say("event", head, writer.log.head().hash)
            if head % 3 == 0:
                await writer.anchor()

    asyncio.run(work())


def fill_disk(folder: Path) -> None:
    """Meets a file size limit, and goes on when it is lifted."""
    writer = RunWriter.open(folder, now=now)
    loop = asyncio.new_event_loop()
    head, texts = 0, 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    refused = []
    for _ in range(300):
        noise = os.urandom(2500).hex()
        try:
            head = loop.run_until_complete(writer.append([resumed(head)], expected=head, texts=[noise]))
            texts += 1
        except LogUnwritable as error:
            refused.append(f"{error.message} | {error.hint}")
            if len(refused) == 3:
                break
    try:
        loop.run_until_complete(writer.anchor())
    except LogUnwritable as error:
        refused.append(f"{error.message} | {error.hint}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = loop.run_until_complete(writer.append([resumed(head)], expected=head, texts=["more"]))
    writer.close()
    loop.close()
    say(json.dumps({"head": head, "after": after, "refused": refused}))


def read_only(folder: Path) -> None:
    """Reads a run in a folder that this process may not write."""
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    try:
        RunWriter.open(folder, now=now)
        refused = ""
    except LogUnwritable as error:
        refused = error.message
    with EventLog.open(folder) as log:
        seqs = [recorded.seq for recorded in log.read()]
        calls = len(Journal(log.reader))
    say(json.dumps({"seqs": seqs, "calls": calls, "refused": refused, "anchor": read_anchor(folder) is not None}))


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
