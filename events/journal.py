"""
Finished effects by slot: what was asked, what came back, what it cost.

A call is recorded before anyone uses its answer, so that after a crash it is found here instead of being paid again.
`digest` says what came of the call and nothing that depends on timing; events refer to calls by slot and digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from typing import Any, Literal, cast

from attrs import field, frozen

from skillopt_es.events.bulk import Row
from skillopt_es.events.chain import call_hash, row_hash
from skillopt_es.events.codec import canonical_json, clean_text
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.reader import Columns, Reader
from skillopt_es.events.requests import Form, RecordedRequest, join_request, request_digest
from skillopt_es.events.values import CallRef, Json, raw_digest

_CHUNK = 1000

Remark = Literal["ahead", "repeats"]
AHEAD: Remark = "ahead"
REPEATS: Remark = "repeats"


def remark(tries: str) -> Remark | None:
    """The remark on a call that stands where its tries stand, before them; most have none."""
    if tries.startswith(_lead(AHEAD)):
        return AHEAD
    return REPEATS if tries.startswith(_lead(REPEATS)) else None


def _lead(remark: Remark) -> str:
    return f'[{{"kind":"{remark}"'


@frozen(kw_only=True)
class FinishedCall:
    """One finished effect; `tries` is canonical JSON, `response` and `trace` are digests."""

    slot: str
    role: str
    stage: str
    model: str
    request: RecordedRequest
    request_digest: str = field(init=False)
    outcome: Literal["answered", "failed"]
    response: str | None = None
    trace: str | None = None
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

    @request_digest.default
    def _(self) -> str:
        return self.request.digest(self.model)

    @property
    def ahead(self) -> bool:
        """Whether it was made before it was known to be wanted: while a candidate was judged."""
        return remark(self.tries) == AHEAD

    @property
    def repeats(self) -> bool:
        """Whether nobody was asked: the answer is that of the same request elsewhere in the run."""
        return remark(self.tries) == REPEATS

    @property
    def texts(self) -> Iterator[str]:
        """The digests of all texts and images that it names."""
        yield from self.request.digests
        yield from (digest for digest in (self.response, self.trace) if digest is not None)

    @cached_property
    def digest(self) -> str:
        """Names what came of the call, whenever and however fast that was, in 128 bits."""
        usage: list[Json] = [self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens]
        asked: list[Json] = [self.slot, self.role, self.stage, self.model, self.request_digest]
        came: list[Json] = [self.outcome, self.response, self.finish, self.error_kind, self.error_message, usage]
        did: list[Json] = [] if self.trace is None else [self.trace]
        return row_hash(asked + came + did)[:32]


@frozen(kw_only=True)
class CallRow:
    """A finished effect as it stands in the journal."""

    n: int
    attempt: int
    call: FinishedCall
    recorded_at: str
    prev_hash: str = field(repr=False)
    hash: str = field(repr=False)

    @property
    def digest(self) -> str:
        """Names what came of the call; events refer to it by this."""
        return self.call.digest

    @property
    def ref(self) -> CallRef:
        """How events refer to this call."""
        return CallRef(slot=self.call.slot, digest=self.digest)


@frozen
class Charge:
    """Of a call, what says where it was made and what it cost; the fields are those of FinishedCall."""

    slot: str
    role: str
    stage: str
    outcome: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    tries: str
    error_kind: str
    form: int
    texts: bytes

    @property
    def request_digest(self) -> str:
        """Names what was asked, among the calls of one log."""
        return f"{self.form} {self.texts.hex()}"

    @property
    def ahead(self) -> bool:
        """Whether it was made before it was known to be wanted."""
        return remark(self.tries) == AHEAD

    @property
    def repeats(self) -> bool:
        """Whether nobody was asked."""
        return remark(self.tries) == REPEATS


@frozen
class ChargeRow:
    """A call of the journal with no more than its charge, for those who go through all of them."""

    n: int
    call: Charge


@frozen
class ChargeSum:
    """Calls of one stage, role and start of their slots that were answered at once; None was reported by none."""

    first: int
    stage: str
    role: str
    start: str
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None


_FACTS = (
    "finish",
    "reply_model",
    "request_id",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "latency_ms",
    "tries",
    "error_kind",
    "error_message",
)
_facts = attrgetter(*_FACTS)
# The same JSON as `call_hash` makes, but by SQLite, four times as fast. Where it differs (other than ASCII), nothing is
# concluded from it.
_SEALED = (
    "json_array(n, slot, attempt, role, stage, model, request, lower(hex(texts)), outcome,"
    " iif(response is null, null, lower(hex(response))), iif(trace is null, null, lower(hex(trace))),"
    f" {', '.join(_FACTS)}, recorded_at, lower(hex(prev_hash)))"
)
_JOINED = "from calls left join forms on forms.id = calls.form"
CALLS_QUERY = (
    "select n, slot, attempt, role, stage, model, request, texts, outcome, response, trace,"
    f" {', '.join(_FACTS)}, recorded_at, prev_hash, hash, {_SEALED} {_JOINED}"
)
"""Asks for calls, each with what its form says, in the order in which they are hashed, as `call_row` takes them."""

_CHARGES_QUERY = (
    "select n, slot, role, stage, outcome, input_tokens, output_tokens, cached_tokens, reasoning_tokens, tries,"
    f" error_kind, form, texts {_JOINED}"
)
# A call that was answered at once: what such calls of one place used can be added up, whatever a token costs.
_PLAIN = "outcome = 'answered' and tries = '[]' and coalesce(cached_tokens <= input_tokens, true)"
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_START = (
    "select case when a = 0 or b = 0 or instr(substr(slot, a + b + 1), '/') = 0 then slot"
    " else substr(slot, 1, a + b + instr(substr(slot, a + b + 1), '/') - 1) end"
    " from (select a, instr(substr(slot, a + 1), '/') as b from (select instr(slot, '/') as a))"
)
_SUMS_QUERY = (
    f"select min(n), stage, role, ({_START}) as start, count(*), {', '.join(f'sum({name})' for name in _TOKENS)}"
    f" {_JOINED} where n > ? and n <= ? and {_PLAIN} and stage is not null"
    f" group by stage, role, start, {', '.join(f'{name} is null' for name in _TOKENS)} order by 1"
)


# What `FinishedCall.digest` covers, but for the digest of the request, which stands between the two.
_ASKED = "json_array(slot, role, stage, model)"
_CAME = (
    "json_array(outcome, iif(response is null, null, lower(hex(response))), finish, error_kind, error_message,"
    f" json_array({', '.join(_TOKENS)}))"
)
LOOK_QUERY = (
    f"select n, prev_hash, hash, {_SEALED}, slot, attempt, model, request, texts, response, trace, {_ASKED}, {_CAME}"
    f" {_JOINED} where n > ? order by n limit ?"
)
"""Asks for calls as `verify` looks at them: by the JSON that SQLite makes, without a value of ours for each."""


def quick_digest(model: str, request: str, asked: str, came: str, trace: bytes | None) -> str:
    """A call's digest from what LOOK_QUERY gives; another one than its own where not all of it is ASCII."""
    did = "" if trace is None else f',"{trace.hex()}"'
    text = f'{asked[:-1]},"{request_digest(model, request)}",{came[1:-1]}{did}]'
    return sha256(text.encode()).hexdigest()[:32]


def is_sealed(sealed: object, hash_: object) -> bool:
    """Whether the JSON that SQLite makes of a call's columns has the call's hash; if not, it may still be intact."""
    if type(sealed) is not str:
        return False
    try:
        text = sealed if sealed.isascii() else canonical_json(json.loads(sealed))
        return sha256(text.encode()).digest() == hash_
    except ValueError:
        return False


def is_intact(columns: Columns) -> bool:
    """Whether a row of CALLS_QUERY is what was recorded, by its own hash."""
    *cells, hash_, sealed = columns
    return is_sealed(sealed, hash_) or call_hash(cells) == hash_


def seal_call(
    call: FinishedCall, form: Form, texts: bytes, *, n: int, attempt: int, recorded_at: str, prev_hash: bytes
) -> tuple[CallRow, Row]:
    """The call as it will stand in the journal, and its row after the number of the form and before the hash."""
    response = None if call.response is None else raw_digest(call.response)
    trace = None if call.trace is None else raw_digest(call.trace)
    rest = (texts, call.outcome, response, trace, *_facts(call), recorded_at, prev_hash)
    hash_ = call_hash((n, call.slot, attempt, *form, *rest))
    entry = CallRow(
        n=n, attempt=attempt, call=call, recorded_at=recorded_at, prev_hash=prev_hash.hex(), hash=hash_.hex()
    )
    return entry, (*rest, hash_)


def call_row(columns: Columns) -> CallRow:
    """The journal's entry from a row of CALLS_QUERY; raises LogDamaged for one that was changed."""
    cells: Any = columns
    n, slot, attempt, role, stage, model, form, texts, outcome, response, trace, *facts, recorded_at, prev, hash_, _ = (
        cells
    )
    try:
        if not is_intact(columns):
            raise LogDamaged(f"call {n!r} was changed after it was recorded")
        call = FinishedCall(
            slot=slot,
            role=role,
            stage=stage,
            model=model,
            request=RecordedRequest(join_request(form, texts)),
            outcome=outcome,
            response=None if response is None else response.hex(),
            trace=None if trace is None else trace.hex(),
            **dict(zip(_FACTS, facts, strict=True)),
        )
        return CallRow(n=n, attempt=attempt, call=call, recorded_at=recorded_at, prev_hash=prev.hex(), hash=hash_.hex())
    except (AttributeError, TypeError, ValueError) as error:  # a damaged file can give anything in any column
        raise LogDamaged(f"call {n!r} is damaged: its columns are not what they were") from error


class Journal:
    """The recorded calls of one log."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def answers(self, slot: str) -> list[CallRow]:
        """The calls of a slot that were answered, whatever they asked, in the order of their attempts."""
        return [row for row in self.attempts(slot) if row.call.outcome == "answered"]

    def slots(self) -> frozenset[str]:
        """The slots that have a successful call, as of now."""
        rows = self._reader.rows("select distinct slot from calls where outcome = 'answered' order by slot")
        return frozenset(str(row[0]) for row in rows)

    def has_answer_of(self, model: str) -> bool:
        """Whether this very model has answered any call."""
        answered = "select 1 from calls join forms on forms.id = calls.form where outcome = 'answered' and model = ?"
        return self._reader.row(f"{answered} limit 1", (model,)) is not None

    def attempts(self, slot: str) -> list[CallRow]:
        """All calls of a slot, failed ones too, in the order of their attempts."""
        return [call_row(row) for row in self._reader.rows(f"{CALLS_QUERY} where slot = ? order by attempt", (slot,))]

    def read(self, after: int = 0) -> Iterator[CallRow]:
        """All calls after number `after`, in the order in which they were recorded."""
        while rows := self._reader.rows(f"{CALLS_QUERY} where n > ? order by n limit {_CHUNK}", (after,)):
            for columns in rows:
                row = call_row(columns)
                if row.n <= after:
                    raise LogDamaged(f"call {row.n} stands after call {after}")
                after = row.n
                yield row

    def first_changed(self, after: int = 0) -> int | None:
        """The number of the first call after `after` that is not what was recorded, by its own hash; None for none."""
        self._reader.define("is_sealed", is_sealed)
        sql = f"select n {_JOINED} where n > ? and not is_sealed({_SEALED}, hash) order by n"
        for (number,) in self._reader.rows(sql, (after,)):
            if not all(map(is_intact, self._reader.rows(f"{CALLS_QUERY} where n = ?", (number,)))):
                return int(number or 0)
        return None

    def charges(self, after: int = 0, until: int | None = None, *, plain: bool = True) -> Iterator[ChargeRow]:
        """
        What the calls after number `after` cost, in their order; their hashes are not checked, see `first_changed`.

        Without the `plain` ones, whose sums are to be had.
        """
        last = len(self) if until is None else until
        where = "n > ? and n <= ?" if plain else f"n > ? and n <= ? and not ({_PLAIN})"
        while rows := self._reader.rows(f"{_CHARGES_QUERY} where {where} order by n limit {_CHUNK}", (after, last)):
            for row in rows:
                cells: Any = row
                after = cells[0]
                if type(cells[2]) is not str:
                    raise LogDamaged(f"call {after!r} is damaged: what it has in common with others is missing")
                yield ChargeRow(after, Charge(*cells[1:]))

    def plain_sums(self, after: int, until: int) -> list[ChargeSum]:
        """What the calls that were answered at once came to, by place; in the order of each place's first call."""
        return [ChargeSum(*cast("tuple[Any, ...]", row)) for row in self._reader.rows(_SUMS_QUERY, (after, until))]

    def has_ahead(self) -> bool:
        """Whether any call was made before it was known to be wanted."""
        sql = "select 1 from calls where substr(tries, 1, ?) = ? limit 1"
        return self._reader.row(sql, (len(_lead(AHEAD)), _lead(AHEAD))) is not None

    def asked(self) -> int:
        """How many calls asked somebody: all but those that have the answer of another one."""
        repeats = "select count(*) from calls where substr(tries, 1, ?) = ?"
        [(count,)] = self._reader.rows(repeats, (len(_lead(REPEATS)), _lead(REPEATS)))
        return len(self) - int(count or 0)

    def __len__(self) -> int:
        [(count,)] = self._reader.rows("select coalesce(max(n), 0) from calls")
        return int(count or 0)
