"""
`usage.json` in a run's folder: what the calls of its journal came to when each of them was last checked.

It saves those who ask again from checking and adding up a long journal, and can be deleted at any time. It is believed
only where it is whole, is about this run, and names the hash that the last of its calls has in the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, astuple, evolve, frozen

from skillopt_es.events.journal import ChargeSum, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.runs.kept_files import read_kept, write_kept

FILE = "usage.json"
FORMAT = 1
WORTH_IT = 5_000
"""So many calls are checked and added up anew in no time."""

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
    found = _read(folder / FILE)
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


def keep(folder: Path, kept: Kept) -> None:
    """Puts the file in its place, or leaves it where the folder cannot be written: it only saves time."""
    write_kept(folder / FILE, {"format": FORMAT, **asdict(kept, recurse=False, value_serializer=_plain)})


def _plain(_: object, __: object, value: object) -> object:
    return [astuple(each) for each in value] if isinstance(value, tuple) else value


def _read(path: Path) -> Kept | None:
    """What the file says, or None for one that is not there or not what was written."""
    said: Any = read_kept(path)
    if not isinstance(said, dict) or said.pop("format", None) != FORMAT:
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
