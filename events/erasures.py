"""
What was taken out of a log on purpose: texts, and parts of events, each named by a `TextsErased` event.

Looked up only where something is missed, so a log that nothing was erased from pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from skillopt_es.events.blobs import stored_text
from skillopt_es.events.catalog import TextsErased
from skillopt_es.events.chain import event_hash
from skillopt_es.events.codec import decode
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.reader import Reader
from skillopt_es.events.values import digest_of

ERASED = "(erased)"
"""What stands in an event in the place of a text that was erased from it."""

_EVENT = "seq, type, version, recorded_at, cause, prev_hash, hash, data"


class ErasedText(str):
    """What is shown in the place of a text that was erased; it is not the text."""

    __slots__ = ()


def erasures_in(reader: Reader) -> Iterator[tuple[int, str, TextsErased]]:
    """Each erasure with its number and its time; one that was changed after it was recorded is none."""
    for columns in reader.rows(f"select {_EVENT} from events where type = 'TextsErased' order by seq"):  # noqa: S608
        seq, name, version, recorded_at, cause, prev_hash, hash_, data = cast(
            "tuple[int, str, int, str, str | None, bytes, bytes, str]", columns
        )
        try:
            intact = event_hash(prev_hash, seq, name, version, recorded_at, cause, data) == hash_
        except TypeError:  # a damaged file can give anything in any column
            intact = False
        if intact:
            event = decode(name, version, data, lambda digest: stored_text(reader, digest) or ERASED, seq=seq)
            yield seq, recorded_at, cast("TextsErased", event)


class Erasures:
    """The erasures of one log, read when one is first asked about."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._texts: dict[str, ErasedText] = {}
        self._events: dict[int, str] = {}
        self._read = False

    def text(self, digest: str) -> ErasedText | None:
        """What to show in place of a text that is not there, if it was erased."""
        if digest not in self._texts:
            self._load()
        return self._texts.get(digest)

    def left(self, seq: int, data: str) -> bool:
        """Whether an event's payload is what an erasure left of it."""
        if seq not in self._events:
            self._load()
        return self._events.get(seq) == digest_of(data.encode())

    @property
    def texts(self) -> frozenset[str]:
        """The digests of the texts that were erased, also of those that came back with a later call."""
        if not self._read:
            self._load()
        return frozenset(self._texts)

    @property
    def redacted(self) -> frozenset[int]:
        """The numbers of the events from which something was erased."""
        if not self._read:
            self._load()
        return frozenset(self._events)

    def _load(self) -> None:
        for _, recorded_at, event in erasures_in(self._reader):
            shown = ErasedText(f"(erased on {recorded_at[:10]}: {event.reason})")
            self._texts.update(dict.fromkeys(event.texts, shown))
            self._events.update({each.seq: each.content for each in event.events})
        self._read = True


def read_text(reader: Reader, digest: str, erasures: Erasures) -> str:
    """The text with that digest, or an ErasedText; raises LogDamaged when it is gone or garbled."""
    found = stored_text(reader, digest)
    if found is None:
        found = erasures.text(digest)
    if found is None:
        raise LogDamaged(f"the text {digest:.12}… is missing from the log")
    return found
