"""
`head.json`: where the log ended at the last barrier, kept outside the database.

A hash chain cannot see that its tail is missing, and a flipped bit in SQLite's write-ahead log takes a tail away
without any error. The anchor can: whatever it names was durable once, so it must be there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import asdict, frozen

from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.faults import system_fault

HashAt = Callable[[str, int], str]

ANCHOR_FILE = "head.json"


@frozen
class Anchor:
    """The ends of the two chains at some moment."""

    run_id: str
    seq: int
    hash: str
    calls: int
    calls_hash: str


def write_anchor(folder: Path, anchor: Anchor) -> None:
    """Replaces the anchor, atomically and durably."""
    path = folder / ANCHOR_FILE
    new = folder / f"{ANCHOR_FILE}.new"
    try:
        with new.open("wb") as file:
            file.write(json.dumps(asdict(anchor), sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_folder(folder)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise system_fault(error, path) from error


def read_anchor(folder: Path) -> Anchor | None:
    """The anchor of a run, or None when there is none; raises LogDamaged for one that cannot be read."""
    path = folder / ANCHOR_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogDamaged(f"{path} cannot be read ({error.strerror or error})") from error
    try:
        anchor = Anchor(**json.loads(content))
    except (ValueError, TypeError, RecursionError) as error:
        raise LogDamaged(f"{path} is damaged: it is not what was written") from error
    if [type(value) for value in asdict(anchor).values()] != [str, int, str, int, str]:
        raise LogDamaged(f"{path} is damaged: it is not what was written")
    return anchor


def sync_folder(folder: Path) -> None:
    """Makes a rename in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def anchor_problems(anchor: Anchor, run_id: str, hash_at: HashAt, ends: tuple[int, int]) -> list[str]:
    """What the anchor names and the log, which ends at `ends` (events, calls), does not have."""
    if anchor.run_id != run_id:
        return [f"{ANCHOR_FILE} belongs to run {anchor.run_id}, not to {run_id}"]
    problems = []
    for table, wanted, hash_, end in (
        ("events", anchor.seq, anchor.hash, ends[0]),
        ("calls", anchor.calls, anchor.calls_hash, ends[1]),
    ):
        if wanted > end:
            problems.append(f"{wanted - end} {table} are missing after number {end}")
        elif hash_at(table, wanted) != hash_:
            problems.append(f"number {wanted} of {table} is not the one that {ANCHOR_FILE} names")
    return problems
