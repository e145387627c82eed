"""
Finished effects by slot: what was asked, what came back, what it cost.

A call is recorded before anyone uses its answer, so that after a crash it is found here instead of being paid again.
`digest` says what came of the call and nothing that depends on timing; events refer to calls by slot and digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Literal

from attrs import field, fields, frozen

from skillopt_es.events.bulk import Row
from skillopt_es.events.chain import row_hash
from skillopt_es.events.codec import clean_text
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.reader import Columns, Reader
from skillopt_es.events.values import CallRef, Json

_CHUNK = 1000


@frozen(kw_only=True)
class FinishedCall:
    """One finished effect; `request` and `tries` are canonical JSON, `response` is the digest of the answer's text."""

    slot: str
    role: str
    stage: str
    model: str
    request_digest: str
    request: str
    outcome: Literal["answered", "failed"]
    response: str | None = None
    finish: str = ""
    reply_model: str = field(default="", converter=clean_text)
    request_id: str = field(default="", converter=clean_text)
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_ms: int = 0
    tries: str = "[]"
    error_kind: str = ""
    error_message: str = field(default="", converter=clean_text)

    @property
    def digest(self) -> str:
        """Names what came of the call, whenever and however fast that was."""
        usage: list[Json] = [self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens]
        return row_hash(
            [
                self.slot,
                self.role,
                self.stage,
                self.model,
                self.request_digest,
                self.outcome,
                self.response,
                self.finish,
                self.error_kind,
                self.error_message,
                usage,
            ]
        )


@frozen(kw_only=True)
class CallRow:
    """A finished effect as it stands in the journal."""

    n: int
    attempt: int
    call: FinishedCall
    recorded_at: str
    digest: str
    prev_hash: str = field(repr=False)
    hash: str = field(repr=False)

    @property
    def ref(self) -> CallRef:
        """How events refer to this call."""
        return CallRef(slot=self.call.slot, digest=self.digest)


_CALL_COLUMNS = tuple(column.name for column in fields(FinishedCall))
CALL_COLUMNS = ("n", "slot", "attempt", *_CALL_COLUMNS[1:], "recorded_at", "digest", "prev_hash", "hash")
_cells = attrgetter(*_CALL_COLUMNS)
_SELECT = f"select {', '.join(CALL_COLUMNS)} from calls"  # noqa: S608 -- our own column names, no data


def seal_call(call: FinishedCall, *, n: int, attempt: int, recorded_at: str, prev_hash: str) -> tuple[CallRow, Row]:
    """The call as it will stand in the journal, and the row that puts it there."""
    slot, *rest = _cells(call)
    digest = call.digest
    columns = [n, slot, attempt, *rest, recorded_at, digest, prev_hash]
    hash_ = row_hash(columns)
    row = CallRow(
        n=n, attempt=attempt, call=call, recorded_at=recorded_at, digest=digest, prev_hash=prev_hash, hash=hash_
    )
    return row, (*columns, hash_)


def call_row(columns: Columns) -> CallRow:
    """The journal's entry from a row of `calls` in the order of CALL_COLUMNS."""
    values = dict(zip(CALL_COLUMNS, columns, strict=True))
    own = {name: values.pop(name) for name in _CALL_COLUMNS}
    try:
        return CallRow(call=FinishedCall(**own), **values)  # type: ignore[arg-type]
    except AttributeError as error:  # a damaged file can give anything in any column
        raise LogDamaged(f"call {columns[0]!r} is damaged: its columns are not what they were") from error


class Journal:
    """The recorded calls of one log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def answers(self, slot: str) -> list[CallRow]:
        """The calls of a slot that were answered, whatever they asked, in the order of their attempts."""
        rows = self._reader.rows(f"{_SELECT} where slot = ? and outcome = 'answered' order by attempt", (slot,))
        return [call_row(row) for row in rows]

    def slots(self) -> frozenset[str]:
        """The slots that have a successful call, as of now."""
        rows = self._reader.rows("select distinct slot from calls where outcome = 'answered' order by slot")
        return frozenset(str(row[0]) for row in rows)

    def attempts(self, slot: str) -> list[CallRow]:
        """All calls of a slot, failed ones too, in the order of their attempts."""
        return [call_row(row) for row in self._reader.rows(f"{_SELECT} where slot = ? order by attempt", (slot,))]

    def read(self, after: int = 0) -> Iterator[CallRow]:
        """All calls after number `after`, in the order in which they were recorded."""
        while rows := self._reader.rows(f"{_SELECT} where n > ? order by n limit {_CHUNK}", (after,)):
            for columns in rows:
                row = call_row(columns)
                if row.n <= after:
                    raise LogDamaged(f"call {row.n} stands after call {after}")
                after = row.n
                yield row

    def __len__(self) -> int:
        [(count,)] = self._reader.rows("select coalesce(max(n), 0) from calls")
        return int(count or 0)
