"""
Whether a log is what was written: every hash, digest, reference and trigger, and the tail against the anchor.

It never raises on a damaged log: what is wrong is a `Problem`, in the order of the file, texts, calls and events, so
the first one is the first bad place. SQLite's own check is asked too, but it sees few flipped bits; the chains see all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from skillopt_es.events.anchor import ANCHOR_FILE, Anchor, anchor_problems, read_anchor
from skillopt_es.events.errors import LogError, RunNotFound
from skillopt_es.events.inspection import (
    ODD,
    Erasure,
    Inspection,
    Problem,
    check_blobs,
    check_calls,
    check_events,
    check_forms,
)
from skillopt_es.events.log import read_run
from skillopt_es.events.reader import Reader
from skillopt_es.events.schema import LOG_FILE, SCHEMA_QUERY, expected_schema

__all__ = ["Erasure", "Problem", "VerifyReport", "verify"]


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


def verify(folder: Path) -> VerifyReport:
    """What is wrong with the log in a run's folder; raises only RunNotFound, when there is no run at all."""
    if not (folder / LOG_FILE).exists() and not (folder / ANCHOR_FILE).exists():
        raise RunNotFound(f"there is no run at {folder}")
    try:
        # A text that is no longer UTF-8 must fail at its own row, not take the rows around it along.
        reader = Reader(folder, text_errors="surrogateescape")
    except LogError as error:
        return VerifyReport(ok=False, events=0, calls=0, blobs=0, head_hash="", problems=(Problem("file", str(error)),))
    try:
        return _report(Inspection(reader), folder)
    finally:
        reader.close()


def _report(seen: Inspection, folder: Path) -> VerifyReport:
    anchor = _read_anchor(folder)  # before the log: a writer may be at work, and the log only ever gets longer
    for where, step in (
        ("file", lambda seen: seen.reader.hold()),
        ("schema", _check_schema),
        ("run", _check_run),
        ("blob", check_blobs),
        ("call", check_calls),
        ("form", check_forms),
        ("event", check_events),
        ("anchor", lambda seen: _check_anchor(seen, anchor)),
        ("file", _check_pages),
    ):
        _attempt(seen, where, step)
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
    except ODD as error:
        seen.say(where, str(error))


def _check_schema(seen: Inspection) -> None:
    expected, found = expected_schema(), {str(name): sql for name, sql in seen.reader.rows(SCHEMA_QUERY)}
    for name in sorted({*expected, *found}):
        if name not in found:
            seen.say("schema", f"{name} is missing")
        elif name not in expected:
            seen.say("schema", f"{name} does not belong there")
        elif found[name] != expected[name]:
            seen.say("schema", f"{name} was changed")


def _check_run(seen: Inspection) -> None:
    run = read_run(seen.reader)
    seen.run_id = run.run_id
    seen.parent_run = run.parent_run
    seen.parent_head = run.parent_head
    seen.first_prev_hash = seen.head_hash = run.first_prev_hash


def _read_anchor(folder: Path) -> Anchor | LogError | None:
    try:
        return read_anchor(folder)
    except LogError as error:
        return error


def _check_anchor(seen: Inspection, anchor: Anchor | LogError | None) -> None:
    if isinstance(anchor, LogError):
        raise anchor
    if anchor is None:
        seen.warnings.append(f"there is no {ANCHOR_FILE}: whether events are missing at the end cannot be told")
        return
    for message in anchor_problems(anchor, seen.run_id, seen.hash_at, (seen.last_event, seen.last_call)):
        seen.say("anchor", message, seen.last_event)
    if anchor.seq < seen.last_event or anchor.calls < seen.last_call:
        seen.warnings.append(
            f"what follows event {anchor.seq} and call {anchor.calls} is not anchored yet: it is whole as far as it "
            "goes, but whether more followed cannot be told"
        )


def _check_pages(seen: Inspection) -> None:
    for (message,) in seen.reader.rows("pragma integrity_check"):
        if message != "ok":
            seen.say("file", str(message))
