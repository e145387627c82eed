"""
Where a log must reach: what `head.json` and `tail` say of its two chains, held against what is there.

Both are written after what they name was durable, and a log only ever gets longer. So they are read first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from skillopt_es.events.anchor import ANCHOR_FILE, Anchor, read_anchor
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.tail import TAIL_FILE, read_tail

HashAt = Callable[[str, int], str]
"""The hash of a number of `events` or `calls`: the first predecessor's for 0, nothing for a row that is not there."""


@frozen
class EndProblem:
    """What the log's end is not as it was said to be; `lost`: something is missing, what is there is not another."""

    message: str
    lost: bool


@frozen(kw_only=True)
class Ends:
    """What is said of a log's end, each by the file that says it, and what is wrong with these files."""

    said: tuple[tuple[str, Anchor], ...]
    problems: tuple[EndProblem, ...] = ()
    damaged_lines: int = 0

    @property
    def anchor(self) -> Anchor | None:
        """What `head.json` says."""
        return dict(self.said).get(ANCHOR_FILE)

    @property
    def furthest(self) -> tuple[int, int]:
        """The highest numbers of an event and a call that must be there."""
        ends = [end for _, end in self.said]
        return max((end.seq for end in ends), default=0), max((end.calls for end in ends), default=0)

    def missing(self, run_id: str, hash_at: HashAt, ends: tuple[int, int]) -> list[EndProblem]:
        """What is wrong with a log that ends at `ends` (events, calls)."""
        found = list(self.problems)
        for name, said in self.said:
            if said.run_id != run_id:
                found.append(EndProblem(f"{name} belongs to run {said.run_id}, not to {run_id}", lost=False))
                return found
        for table, wanted, end in zip(("events", "calls"), self.furthest, ends, strict=True):
            if wanted > end:
                found.append(EndProblem(f"{wanted - end} {table} are missing after number {end}", lost=True))
        for name, said in self.said:
            for table, number, hash_, end in (
                ("events", said.seq, said.hash, ends[0]),
                ("calls", said.calls, said.calls_hash, ends[1]),
            ):
                if number <= end and hash_at(table, number) != hash_:
                    message = f"number {number} of {table} is not the one that {name} names"
                    found.append(EndProblem(message, lost=False))
        return found


def said_ends(folder: Path) -> Ends:
    """What the files beside a log say of its end; raises only where the disk cannot be read."""
    said, problems, damaged = list[tuple[str, Anchor]](), list[EndProblem](), 0
    try:
        told = read_tail(folder)
        damaged = told.damaged
        if told.end is not None:
            said.append((TAIL_FILE, told.end))
        if told.gone:
            gone = f"{TAIL_FILE} is gone, and the last session was broken off: whether events are missing at the end"
            problems.append(EndProblem(f"{gone} cannot be told", lost=True))
    except LogDamaged as error:
        problems.append(EndProblem(error.message, lost=True))
    try:
        anchor = read_anchor(folder)
        if anchor is not None:
            said.append((ANCHOR_FILE, anchor))
        else:
            gone = f"{ANCHOR_FILE} is gone: whether events are missing at the end cannot be told"
            problems.append(EndProblem(gone, lost=True))
    except LogDamaged as error:
        problems.append(EndProblem(error.message, lost=True))
    return Ends(said=tuple(said), problems=tuple(problems), damaged_lines=damaged)
