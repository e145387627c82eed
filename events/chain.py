"""
The hashes that make a log tamper-evident: each row's hash covers all its columns and its predecessor's hash.

A changed, removed, added or reordered row breaks the chain at that row. What a chain cannot see, a missing tail, the
anchor sees (`anchor.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from skillopt_es.events.bulk import Cell
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.values import Json, digest_of


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
