"""
Files beside a log that only save time: written whole or not at all, read only as they were written, free to be deleted.

`overview.json` is what a list of runs shows of one, so that many are listed without reading their logs. It goes with a
copy of the folder, and is believed only while the log is at rest: its last writer closed it, `head.json` is the one of
then, and the log has its size of then and was not changed since.

`usage.json` is what the calls of the journal came to when each of them was last checked. It saves those who ask again
from checking and adding up a long journal, and is believed only where it is whole, is about this run, and names the
hash that the last of its calls has in the chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from attrs import asdict, astuple, evolve, frozen

from skillopt_es.events.anchor import ANCHOR_FILE
from skillopt_es.events.journal import ChargeSum, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.plain import read_plain, write_plain
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.tail import TAIL_FILE
from skillopt_es.events.values import Json, digest_of
from skillopt_es.version import software_version


def write_kept(path: Path, value: Json) -> None:
    """Puts the file in its place, or leaves it where the folder cannot be written."""
    text = json.dumps(value)
    with suppress(OSError):
        write_plain(path, f"{text}\n{digest_of(text.encode())}\n".encode())


def read_kept(path: Path) -> Json:
    """What the file says; None for one that is not there or not what was written."""
    try:
        text, digest, end = read_plain(path).decode().split("\n")
        said: Json = json.loads(text) if not end and digest_of(text.encode()) == digest else None
    except (OSError, ValueError, RecursionError):
        return None
    return said


OVERVIEW_FILE = "overview.json"
# Raised when what is kept changes: a file of another format is made anew.
OVERVIEW_FORMAT = 1

converter = strict_converter(detailed=False)
converter.register_unstructure_hook(Decimal, str)
converter.register_structure_hook(Decimal, lambda value, _: Decimal(value))
converter.register_unstructure_hook(Path, str)
converter.register_structure_hook(Path, lambda value, _: Path(value))


def kept_overview(folder: Path) -> Json:
    """What was kept of a run whose log is as it was then; None for nothing."""
    said, state = read_kept(folder / OVERVIEW_FILE), _state(folder)
    if not isinstance(said, dict) or state is None or said.get("state") != state:
        return None
    try:
        changed_since = (folder / LOG_FILE).stat().st_mtime_ns > (folder / OVERVIEW_FILE).stat().st_mtime_ns
    except OSError:
        return None
    return None if changed_since else said.get("overview")


def keep_overview(folder: Path, value: Json) -> None:
    """Keeps it, where the log is at rest and the folder can be written."""
    state = _state(folder)
    if state is not None:
        write_kept(folder / OVERVIEW_FILE, {"state": state, "overview": value})


def _state(folder: Path) -> Json:
    """What tells this state of a log at rest from any other; None for one that is written or was broken off."""
    ahead = folder / f"{LOG_FILE}-wal"
    try:
        at_rest = not (folder / TAIL_FILE).exists() and not (ahead.exists() and ahead.stat().st_size)
        size, anchor = (folder / LOG_FILE).stat().st_size, read_plain(folder / ANCHOR_FILE)
    except OSError:
        return None
    return [OVERVIEW_FORMAT, software_version(), size, digest_of(anchor)] if at_rest else None


__all__ = ["MISFITS", "converter", "keep_overview", "kept_overview"]

SUMS_FILE = "usage.json"
SUMS_FORMAT = 1  # of the file: one of another format is made again
WORTH_IT = 5_000
"""So many calls are checked and added up anew in no time."""

# The types of ChargeSum's fields, in their order.
_KINDS = [(int,), (str,), (str,), (str,), (int,), *[(int, type(None))] * 4]


@frozen(kw_only=True)
class Kept:
    """The sums of the calls after `after` and up to `calls`, the last of which has this hash."""

    run_id: str
    after: int
    calls: int
    hash: str
    sums: tuple[ChargeSum, ...]


def kept_sums(folder: Path, log: EventLog, after: int) -> Kept:
    """What is known of a log's calls after number `after`; nothing yet where the file cannot be believed."""
    start = log.hash_at("calls", after)
    nothing = Kept(run_id=log.run.run_id, after=after, calls=after, hash=start, sums=())
    found = _read(folder / SUMS_FILE)
    if found is None or (found.run_id, found.after) != (nothing.run_id, after) or found.calls < after:
        return nothing
    return found if log.hash_at("calls", found.calls) == found.hash else nothing


def with_later(kept: Kept, log: EventLog, until: int) -> Kept:
    """The same with the calls up to number `until`, which must have been checked."""
    if until <= kept.calls:
        return kept
    later = Journal(log.reader).plain_sums(kept.calls, until)
    return evolve(kept, calls=until, hash=log.hash_at("calls", until), sums=_joined([*kept.sums, *later]))


def is_true(kept: Kept, log: EventLog) -> bool:
    """Whether the sums are those of the calls; adds all of them up."""
    return set(kept.sums) == set(_joined(Journal(log.reader).plain_sums(kept.after, kept.calls)))


def keep_sums(folder: Path, kept: Kept) -> None:
    """Puts the file in its place, or leaves it where the folder cannot be written: it only saves time."""
    write_kept(folder / SUMS_FILE, {"format": SUMS_FORMAT, **asdict(kept, recurse=False, value_serializer=_plain)})


def _plain(_: object, __: object, value: object) -> object:
    return [astuple(each) for each in value] if isinstance(value, tuple) else value


def _read(path: Path) -> Kept | None:
    """What the file says, or None for one that is not there or not what was written."""
    said: Any = read_kept(path)
    if not isinstance(said, dict) or said.pop("format", None) != SUMS_FORMAT:
        return None
    try:
        sums = tuple(ChargeSum(*row) for row in said.pop("sums") if _fits(row))
        return Kept(**said, sums=sums)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _fits(row: Sequence[object]) -> bool:
    if len(row) != len(_KINDS) or any(type(cell) not in kinds for cell, kinds in zip(row, _KINDS, strict=True)):
        raise ValueError("not a row of sums")
    return True


def _joined(sums: Iterable[ChargeSum]) -> tuple[ChargeSum, ...]:
    """The sums with those of one place as one; what one of them did not report none of the joined did."""
    found: dict[tuple[object, ...], ChargeSum] = {}
    for each in sums:
        tokens = (each.input_tokens, each.output_tokens, each.cached_tokens, each.reasoning_tokens)
        key = (each.stage, each.role, each.start, *(count is None for count in tokens))
        before = found.get(key)
        found[key] = each if before is None else _added(before, each)
    return tuple(found.values())


def _added(one: ChargeSum, other: ChargeSum) -> ChargeSum:
    def plus(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return evolve(
        one,
        calls=one.calls + other.calls,
        input_tokens=plus(one.input_tokens, other.input_tokens),
        output_tokens=plus(one.output_tokens, other.output_tokens),
        cached_tokens=plus(one.cached_tokens, other.cached_tokens),
        reasoning_tokens=plus(one.reasoning_tokens, other.reasoning_tokens),
    )
