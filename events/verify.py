"""
Whether a log is what was written: every hash, digest, reference and trigger, and its end against what is said of it.

It never raises on a damaged log: what is wrong is a `Problem`, in the order of the file, texts, calls and events, so
the first one is the first bad place. SQLite's own check is asked too, but it sees few flipped bits; the chains see all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import cast

from attrs import frozen

from skillopt_es.events.anchor import ANCHOR_FILE, Anchor, read_anchor_file
from skillopt_es.events.ends import Ends, said_ends
from skillopt_es.events.errors import LogError, LogUnreadable, RunNotFound
from skillopt_es.events.inspection import (
    MOST_PROBLEMS,
    ODD,
    Erasure,
    Inspection,
    Problem,
    check_blobs,
    check_calls,
    check_events,
    check_forms,
    note_blobs,
)
from skillopt_es.events.log import read_run
from skillopt_es.events.reader import Reader
from skillopt_es.events.schema import LOG_FILE, SCHEMA_QUERY, STRANGERS_QUERY, expected_schema, missing_bytes
from skillopt_es.events.tail import TAIL_FILE

__all__ = ["Erasure", "Problem", "VerifyReport", "verify"]

_AFTER_TEXTS = ("call", "form", "event", "anchor")
_WORTH_A_PROCESS = 50_000  # texts; a process of its own takes 0.1 s to start, in which 30,000 texts are checked


@frozen
class VerifyReport:
    """What was checked and what was found; `warnings` do not make a log bad."""

    ok: bool
    events: int
    calls: int
    blobs: int
    head_hash: str
    parent: str = ""
    parent_head: str = ""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    erased: tuple[Erasure, ...] = ()


def verify(folder: Path, kept: Path | None = None) -> VerifyReport:
    """
    What is wrong with the log in a run's folder; `kept` is a copy of its head.json that was kept elsewhere.

    Raises only RunNotFound, when there is no run at all, and LogUnreadable, when the disk does not let it be read.
    """
    earlier = None if kept is None else read_anchor_file(kept)
    if not (folder / LOG_FILE).exists() and not (folder / ANCHOR_FILE).exists():
        raise RunNotFound(f"there is no run at {folder}")
    try:
        reader = Reader(folder)
    except LogUnreadable:
        raise
    except LogError as error:
        return VerifyReport(ok=False, events=0, calls=0, blobs=0, head_hash="", problems=(Problem("file", str(error)),))
    try:
        return _report(Inspection(reader), folder, earlier)
    finally:
        reader.close()


def _report(seen: Inspection, folder: Path, kept: Anchor | None) -> VerifyReport:
    with _checking_texts(seen.reader, folder) as texts:
        return _whole_report(seen, folder, kept, texts)


def _whole_report(
    seen: Inspection, folder: Path, kept: Anchor | None, texts: subprocess.Popen[bytes] | None
) -> VerifyReport:
    pages = _checking_pages(folder)
    ends = said_ends(folder)  # before the log: a writer may be at work, and the log only ever gets longer
    for where, step in (
        ("file", lambda seen: seen.reader.hold()),
        ("file", _check_size),
        ("schema", _check_schema),
        ("run", _check_run),
        ("blob", check_blobs if texts is None else note_blobs),
        ("call", check_calls),
        ("form", check_forms),
        ("event", check_events),
        ("anchor", lambda seen: _check_ends(seen, ends, kept)),
    ):
        _attempt(seen, where, step)
    if texts is not None:
        _take(seen, texts)
    for message in pages():
        seen.say("file", message)
    return VerifyReport(
        ok=not seen.problems,
        events=seen.events,
        calls=seen.calls,
        blobs=len(seen.digests),
        head_hash=seen.head_hash,
        parent=seen.parent_run or "",
        parent_head=seen.parent_head or "",
        problems=tuple(seen.problems),
        warnings=tuple(seen.warnings),
        erased=tuple(seen.erased),
    )


def _attempt(seen: Inspection, where: str, step: Callable[[Inspection], None]) -> None:
    try:
        step(seen)
    except LogUnreadable:
        raise
    except ODD as error:
        seen.say(where, str(error))


def _check_size(seen: Inspection) -> None:
    """Readers of ours get along with a header that claims more pages than there are; other clients do not."""
    missing = missing_bytes(seen.reader.path)
    if missing:
        seen.say(
            "file", f"{LOG_FILE} is {missing:,} bytes shorter than its header says: it was cut, or its header changed"
        )


def _check_schema(seen: Inspection) -> None:
    expected = expected_schema()
    found = {str(name): sql for name, sql in seen.reader.rows(SCHEMA_QUERY)}
    for name in sorted({*expected, *found}):
        if name not in found:
            seen.say("schema", f"{name} is missing")
        elif name not in expected:
            seen.say("schema", f"{name} does not belong there")
        elif found[name] != expected[name]:
            seen.say("schema", f"{name} was changed")
    strangers = [f"{kind!s} {name!s}" for kind, name in seen.reader.rows(STRANGERS_QUERY)]
    if strangers:
        seen.warnings.append(
            f"{LOG_FILE} also holds what is no part of the log, and nothing vouches for it: {', '.join(strangers[:20])}"
        )


def _check_run(seen: Inspection) -> None:
    run = read_run(seen.reader)
    seen.run_id = run.run_id
    seen.parent_run = run.parent_run
    seen.parent_head = run.parent_head
    seen.first_prev_hash = seen.head_hash = run.first_prev_hash


def _check_ends(seen: Inspection, ends: Ends, kept: Anchor | None) -> None:
    here = (seen.last_event, seen.last_call)
    for problem in ends.missing(seen.run_id, seen.hash_at, here):
        seen.say("anchor", problem.message, seen.last_event)
    if kept is not None:
        for problem in Ends(said=(("the kept anchor", kept),)).missing(seen.run_id, seen.hash_at, here):
            seen.say("anchor", problem.message, seen.last_event)
    if ends.damaged_lines:
        seen.warnings.append(f"one of the two lines of {TAIL_FILE} is not what was written; the other one is")
    furthest = ends.furthest
    if furthest[0] < seen.last_event or furthest[1] < seen.last_call:
        seen.warnings.append(
            f"what follows event {furthest[0]} and call {furthest[1]} is not anchored yet: it is whole as far as it "
            "goes, but whether more followed cannot be told"
        )


def _checking_pages(folder: Path) -> Callable[[], list[str]]:
    """Begins SQLite's own check, on the side; what is returned waits for it and says what it found."""
    found: list[str] = []
    failed: list[LogUnreadable] = []

    def check() -> None:
        try:
            reader = Reader(folder)
            try:
                found.extend(str(message) for (message,) in reader.rows("pragma integrity_check") if message != "ok")
            finally:
                reader.close()
        except LogUnreadable as error:
            failed.append(error)
        except ODD as error:
            found.append(str(error))

    thread = Thread(target=check, name="integrity check")
    thread.start()

    def result() -> list[str]:
        thread.join()
        if failed:
            raise failed[0]
        return found

    return result


@contextmanager
def _checking_texts(reader: Reader, folder: Path) -> Iterator[subprocess.Popen[bytes] | None]:
    """Has the texts checked on another processor meanwhile, where they are many; else None."""
    if not _are_many(reader):
        yield None
        return
    words = (sys.executable, "-m", __name__, str(folder))
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:  # noqa: S603 -- ourselves
        try:
            yield process
        finally:
            process.kill()


def _are_many(reader: Reader) -> bool:
    try:
        row = reader.row("select max(rowid) from blobs")
    except LogError:
        return False
    return row is not None and isinstance(row[0], int) and row[0] >= _WORTH_A_PROCESS


def _take(seen: Inspection, texts: subprocess.Popen[bytes]) -> None:
    """What the other processor found; if it came to no end, the texts are checked here."""
    said, _ = texts.communicate()
    if texts.returncode:
        _attempt(seen, "blob", check_blobs)
        return
    found = [Problem("blob", message) for message in cast("list[str]", json.loads(said))]
    new = [problem for problem in found if problem not in seen.problems]  # a row that cannot be read was met here, too
    first = next((at for at, problem in enumerate(seen.problems) if problem.where in _AFTER_TEXTS), len(seen.problems))
    seen.problems[first:first] = new
    del seen.problems[MOST_PROBLEMS:]


def _main(folder: Path) -> None:
    """The texts of a log alone: the messages of what is wrong, as JSON."""
    reader = Reader(folder)
    try:
        seen = Inspection(reader)
        _attempt(seen, "blob", check_blobs)
    finally:
        reader.close()
    sys.stdout.write(json.dumps([problem.message for problem in seen.problems]))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
