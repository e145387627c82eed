"""
The hashes that make a log tamper-evident: each row's hash covers all its columns and its predecessor's hash.

A changed, removed, added or reordered row breaks the chain at that row. What a chain cannot see, a missing tail, the
anchor sees (`anchor.py`). Readers that take some rows only check the hash of each; together with `first_break`, which
asks SQLite in one query (0.04 s for 200,000 rows), that is all that `verify` checks of a chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Literal

from skillopt_es.events.codec import canonical_json
from skillopt_es.events.values import Cell, Json, digest_of, raw_digest


def row_hash(columns: list[Json]) -> str:
    """The hash of some plain values, over their canonical JSON."""
    return digest_of(canonical_json(columns).encode())


def event_hash(
    prev_hash: bytes, seq: int, name: str, version: int, recorded_at: str, cause: str | None, data: str
) -> bytes:
    """The hash of an event, over all its columns and the stored bytes of its payload."""
    # The lengths make it unambiguous; this is four times cheaper than JSON, and reading a log is mostly hashing.
    length = -1 if cause is None else len(cause)
    head = f"{seq} {version} {len(name)} {len(recorded_at)} {length} {len(data)} "
    return sha256(f"{head}{name}{recorded_at}{cause or ''}{data}".encode() + prev_hash).digest()


def call_hash(columns: Iterable[Cell]) -> bytes:
    """The hash of a call, over its other columns and those of its form; bytes count as their hex."""
    return sha256(canonical_json([cell.hex() if type(cell) is bytes else cell for cell in columns]).encode()).digest()


Ask = Callable[[str, Sequence[Cell]], list[tuple[Cell, ...]]]
"""All rows of a query."""

# `is not` and not `<>`: where the row before is missing, null has to count as a break.
_BREAKS = {
    table: f"select this.{key} from {table} this left join {table} before on before.{key} = this.{key} - 1"  # noqa: S608
    f" where this.prev_hash is not iif(this.{key} = 1, ?, before.hash) order by this.{key} limit 1"
    for table, key in (("events", "seq"), ("calls", "n"))
}


def first_break(ask: Ask, table: Literal["events", "calls"], first_prev_hash: str) -> int | None:
    """The number of the first row that does not follow the one before it; None where all do."""
    rows = ask(_BREAKS[table], (raw_digest(first_prev_hash),))
    return None if not rows else int(rows[0][0] or 0)
