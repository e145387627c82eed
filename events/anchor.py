"""
`head.json`: where the log ended at the last barrier, kept outside the database. Every log has one from its beginning.

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
from skillopt_es.events.faults import read_fault, system_fault
from skillopt_es.events.plain import read_plain

ANCHOR_FILE = "head.json"
_MOST = 2**63 - 1  # no row of the database has a higher number


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
        new.unlink(missing_ok=True)
        with new.open("xb") as file:  # a new file: a pipe in its place would be waited for, a link followed
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
    """The anchor of a run, or None when there is none; raises LogDamaged for one that is not what was written."""
    try:
        return _read(folder / ANCHOR_FILE, read_plain)
    except FileNotFoundError:
        return None


def read_anchor_file(path: Path) -> Anchor:
    """The anchor in a file, such as a copy that was kept elsewhere; raises FileNotFoundError where there is none."""
    return _read(path, Path.read_bytes)


def _read(path: Path, read: Callable[[Path], bytes]) -> Anchor:
    try:
        content = read(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise read_fault(error, path) from error
    anchor = parsed_anchor(content)
    if anchor is None:
        raise LogDamaged(f"{path} is damaged: it is not what was written")
    return anchor


def parsed_anchor(content: bytes) -> Anchor | None:
    """The anchor that some bytes say; None when they say none."""
    try:
        anchor = Anchor(**json.loads(content))
    except (ValueError, TypeError, RecursionError):
        return None
    # Exactly these types: for isinstance, true would be a number.
    kinds = [type(value) for value in asdict(anchor).values()]
    if kinds != [str, int, str, int, str]:
        return None
    return anchor if 0 <= anchor.seq <= _MOST and 0 <= anchor.calls <= _MOST else None


def sync_folder(folder: Path) -> None:
    """Makes a rename in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
