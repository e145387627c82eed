"""Row by row through the tables of a log: what `verify` looks at and remembers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from attrs import define, field, frozen

from skillopt_es.events.blobs import checked_blob
from skillopt_es.events.catalog import Event, TextsErased
from skillopt_es.events.chain import event_hash
from skillopt_es.events.codec import decode
from skillopt_es.events.erasures import Erasures, read_text
from skillopt_es.events.errors import LogDamaged, LogError, LogUnreadable
from skillopt_es.events.journal import CALLS, LOOK, call_row, is_sealed, quick_digest
from skillopt_es.events.reader import ROWS, Columns, Reader
from skillopt_es.events.requests import FORMS_QUERY, join_request
from skillopt_es.events.values import clean_text, digest_of, hex_digest, raw_digest

MOST_PROBLEMS = 200  # a log of which every row is damaged would else make a report as long as itself
_BLOBS = "select rowid, digest, codec, size, checksum, data from blobs where rowid > ? order by rowid limit ?"
_DIGESTS = "select rowid, digest from blobs where rowid > ? order by rowid limit ?"
_RAW = len(raw_digest(digest_of(b"")))
_EVENTS = (
    "select seq, type, version, recorded_at, cause, prev_hash, hash, data"
    " from events where seq > ? order by seq limit ?"
)
# A damaged file can give anything in any column, so anything can go wrong with it.
ODD = (LogError, TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError)


@frozen
class Problem:
    """One thing that is wrong: in which part of the log, what, and at which event or call."""

    where: str
    message: str
    seq: int | None = None


@frozen
class Erasure:
    """What was erased from a log: by which event, when, by whom and why, and how much."""

    seq: int
    recorded_at: str
    by: str
    reason: str
    items: tuple[str, ...]
    texts: int
    events: int


@define
class Inspection:
    """What has been seen of a log so far."""

    reader: Reader
    problems: list[Problem] = field(factory=list)
    warnings: list[str] = field(factory=list)
    run_id: str = ""
    parent_run: str | None = None
    parent_head: str | None = None
    first_prev_hash: str = ""
    head_hash: str = ""
    events: int = 0
    calls: int = 0
    last_event: int = 0
    last_call: int = 0
    digests: set[bytes] = field(factory=set)
    refs: dict[str, str] = field(factory=dict)
    erased: list[Erasure] = field(factory=list)
    erasures: Erasures = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.erasures = Erasures(self.reader)

    def say(self, where: str, message: str, seq: int | None = None) -> None:
        """Notes a problem, unless there are too many already."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(where, clean_text(message), seq))

    def hash_at(self, table: str, number: int) -> str:
        """The hash of an event or a call; what precedes the first one for number 0."""
        if number == 0:
            return self.first_prev_hash
        key = "seq" if table == "events" else "n"
        row = self.reader.row(f"select hash from {table} where {key} = ? order by 1", (number,))  # noqa: S608
        return "" if row is None else hex_digest(row[0])

    def need(self, where: str, what: str, digest: str, seq: int) -> None:
        """Notes a text that should be stored and is not."""
        if bytes.fromhex(digest) not in self.digests and self.erasures.text(digest) is None:
            self.say(where, f"the text of its {what} ({digest!s:.12}…) is missing", seq)


def check_blobs(seen: Inspection) -> None:
    """Every text against its digest."""
    for _, *columns in _rows(seen, _BLOBS):
        digest = cast("bytes", columns[0])
        seen.digests.add(digest)
        try:
            _, problem = checked_blob(*cast("tuple[bytes, str, int, int, bytes]", columns))
        except ODD as error:
            problem = str(error)
        if problem:
            seen.say("blob", f"the text {hex_digest(digest):.12}… is damaged: {problem}")


def note_blobs(seen: Inspection) -> None:
    """Which texts there are, for those that leave their content to somebody else."""
    seen.digests.update(cast("bytes", digest) for _, digest in _rows(seen, _DIGESTS))


def check_calls(seen: Inspection) -> None:
    """Every call against its predecessor, its own hash, its attempt and the texts it names."""
    prev_hash, attempts = bytes.fromhex(seen.first_prev_hash), Counter[str]()
    for columns in _rows(seen, LOOK):
        n = cast("int", columns[0])
        if (n, columns[1]) != (seen.last_call + 1, prev_hash):
            seen.say("call", f"call {n} does not follow call {seen.last_call}", n)
        seen.calls, seen.last_call, prev_hash = seen.calls + 1, n, cast("bytes", columns[2])
        try:
            _check_call(seen, columns, attempts)
        except ODD as error:
            seen.say("call", str(error), n)


def _check_call(seen: Inspection, columns: Columns, attempts: Counter[str]) -> None:
    n, _, hash_, sealed, slot, attempt, model, form, texts, response, trace, asked, came = cast(
        "tuple[Any, ...]", columns
    )
    attempts[slot] += 1
    if attempt != attempts[slot]:
        seen.say("call", f"call {n} is numbered attempt {attempt} of its slot out of turn", n)
    # SQLite writes other JSON than we do where there is more than ASCII.
    if not is_sealed(sealed, hash_) or not sealed.isascii():
        _check_in_full(seen, n)
        return
    seen.refs[quick_digest(model, join_request(form, texts), asked, came, trace)] = slot
    named = {texts[start : start + _RAW] for start in range(0, len(texts), _RAW)}
    named.update(digest for digest in (response, trace) if digest is not None)
    # Without texts the request stands in its form as it is, with its digests.
    if not (texts and named <= seen.digests):
        _check_in_full(seen, n)


def _check_in_full(seen: Inspection, n: int) -> None:
    """What a look at the columns did not settle, by the call itself."""
    [columns] = seen.reader.rows(f"{CALLS} where n = ?", (n,))
    row = call_row(columns)
    seen.refs[row.digest] = row.call.slot
    if row.call.response is not None:
        seen.need("call", "answer", row.call.response, n)
    if row.call.trace is not None:
        seen.need("call", "trace", row.call.trace, n)
    for _, digest in row.call.request.messages:
        seen.need("call", "request", digest, n)
    for *_, digest in row.call.request.images:
        seen.need("call", "image", digest, n)


def check_forms(seen: Inspection) -> None:
    """That forms are numbered without gaps, all different and all in use; the calls' hashes vouch for the rest."""
    used = {row[0] for row in seen.reader.rows("select distinct form from calls order by form")}
    known = set[Columns]()
    for number, (key, *form) in enumerate(seen.reader.rows(FORMS_QUERY), 1):
        if key != number or key not in used or tuple(form) in known:
            seen.say("form", f"form {key!r} is out of turn, not in use or there twice")
        known.add(tuple(form))


def check_events(seen: Inspection) -> None:
    """Every event against its predecessor, its own hash, its class, and the texts and calls it names."""
    prev_hash = bytes.fromhex(seen.first_prev_hash)
    # A fork at event 0 shares no event with its parent.
    parent_seen = seen.parent_head in (None, seen.first_prev_hash)
    for columns in _rows(seen, _EVENTS):
        seq = cast("int", columns[0])
        if (seq, columns[5]) != (seen.last_event + 1, prev_hash):
            seen.say("event", f"event {seq} does not follow event {seen.last_event}", seq)
        seen.events, seen.last_event, prev_hash = seen.events + 1, seq, cast("bytes", columns[6])
        parent_seen = parent_seen or hex_digest(prev_hash) == seen.parent_head
        try:
            _check_event(seen, columns)
        except LogUnreadable:
            raise
        except ODD as error:
            seen.say("event", str(error), seq)
    seen.head_hash = hex_digest(prev_hash)
    if not parent_seen:
        seen.say("run", "the last event shared with its parent is missing")


def _check_event(seen: Inspection, columns: Columns) -> None:
    seq, name, version, recorded_at, cause, prev_hash, hash_, data = cast(
        "tuple[int, str, int, str, str | None, bytes, bytes, str]", columns
    )
    intact = event_hash(prev_hash, seq, name, version, recorded_at, cause, data) == hash_
    if not intact and not seen.erasures.left(seq, data):
        seen.say("event", f"event {seq} ({name}) was changed after it was recorded", seq)
        return
    event = decode(name, version, data, lambda digest: str(read_text(seen.reader, digest, seen.erasures)), seq=seq)
    _check_references(seen, event, seq)
    if isinstance(event, TextsErased):
        _check_erasure(seen, event, seq, recorded_at)


def _check_references(seen: Inspection, event: Event, seq: int) -> None:
    for ref in getattr(event, "calls", ()):
        if seen.refs.get(ref.digest) != ref.slot:
            seen.say("event", f"event {seq} used a call of {ref.slot} that is not in the journal", seq)
    trajectory = getattr(event, "trajectory", "")
    if trajectory:
        seen.need("event", "trajectory", trajectory, seq)


def _check_erasure(seen: Inspection, event: TextsErased, seq: int, recorded_at: str) -> None:
    """Notes what was erased; a text may have come back with a later call that asked the same."""
    counts = {"texts": len(event.texts), "events": len(event.events)}
    seen.erased.append(Erasure(seq, recorded_at, event.by, event.reason, event.items, **counts))
    back = len(seen.digests.intersection(map(bytes.fromhex, event.texts)))
    if back:
        seen.warnings.append(f"{back} of the texts that event {seq} erased are there again: something asked for them")


def _rows(seen: Inspection, sql: str) -> Iterator[Columns]:
    """The rows of a query by rising key; where many cannot be read at once, those before the bad one are given."""
    # No key is lower: a damaged file may have negative ones.
    after, limit = -(2**63), ROWS
    while True:
        try:
            rows = seen.reader.rows(sql, (after, limit))
        except LogUnreadable:
            raise
        except LogError as error:
            if not seen.reader.lenient:  # a text that is not UTF-8 must fail at its own row, and not take others along
                seen.reader.take_any_text()
                continue
            if limit == 1:
                raise LogDamaged(f"what follows number {after} cannot be read: {error}") from error
            limit = 1
            continue
        if not rows:
            return
        for row in rows:
            key = row[0]
            if type(key) is not int or key <= after:
                raise LogDamaged(f"number {key!r} stands after number {after}")
            after = key
            yield row
