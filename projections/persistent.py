"""
An immutable insert-only map whose versions share one dict.

Adding a key to the newest version costs O(1) and leaves every older version as it was, so a pure reducer stays linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Ledger(Mapping[K, V], Generic[K, V]):
    """A mapping that grows by `put`, in insertion order; a key is written once."""

    __slots__ = ("_entries", "_size")

    def __init__(self, _entries: dict[K, tuple[int, V]] | None = None, _size: int = 0) -> None:
        self._entries: dict[K, tuple[int, V]] = {} if _entries is None else _entries
        self._size = _size

    def put(self, key: K, value: V) -> Ledger[K, V]:
        """A version with one more entry; a key that is there already is an error."""
        if key in self:
            raise KeyError(f"{key!r} is already in the ledger")
        entries = self._entries
        # A newer version has grown from here already: this one goes on in a copy.
        if len(entries) != self._size:
            entries = dict(islice(entries.items(), self._size))
        entries[key] = (self._size, value)
        return Ledger(entries, self._size + 1)

    def __getitem__(self, key: K) -> V:
        position, value = self._entries[key]
        if position >= self._size:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        entry = self._entries.get(key)  # type: ignore[arg-type]  # any object may be asked for
        return entry is not None and entry[0] < self._size

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(islice(self._entries, self._size)))  # a newer version may grow while this one is walked

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Ledger({dict(self)!r})"
