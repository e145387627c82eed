"""
The hashes that make a log tamper-evident: each row's hash covers all its columns and its predecessor's hash.

A changed, removed, added or reordered row breaks the chain at that row. What a chain cannot see, a missing tail, the
anchor sees (`anchor.py`).
"""

from __future__ import annotations

from skillopt_es.events.codec import canonical_json
from skillopt_es.events.values import Json, digest_of


def row_hash(columns: list[Json]) -> str:
    """The hash of a row of `run` or `calls`, over the canonical JSON of its other columns."""
    return digest_of(canonical_json(columns).encode())


def event_hash(
    prev_hash: str, seq: int, name: str, version: int, recorded_at: str, cause: str | None, data: str
) -> str:
    """The hash of an event, over all its columns and the stored bytes of its payload."""
    # The lengths make it unambiguous; this is four times cheaper than JSON, and reading a log is mostly hashing.
    length = -1 if cause is None else len(cause)
    head = f"{seq} {version} {len(prev_hash)} {len(name)} {len(recorded_at)} {length} "
    return digest_of(f"{head}{prev_hash}{name}{recorded_at}{cause or ''}{data}".encode())
