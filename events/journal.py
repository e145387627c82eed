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

from skillopt_es.events.chain import call_hash, row_hash
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.places import STARTS_SQL
from skillopt_es.events.reader import ROWS, Columns, Reader
from skillopt_es.events.requests import Form, RecordedRequest, join_request, request_digest
from skillopt_es.events.values import CallRef, Cell, Json, Row, clean_text, raw_digest


@frozen(kw_only=True)
class FinishedCall:
    """
    One finished effect; `tries` is canonical JSON, `response` and `trace` are digests.

    `ahead` says that it was made before it was known to be wanted: while a candidate was judged. Where `repeats` names
    a slot nobody was asked: the answer is that of the same request there.
    """

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
    ahead: bool = False
    repeats: str = ""
    error_kind: str = ""
    error_message: str = field(default="", converter=clean_text)

    @request_digest.default
    def _(self) -> str:
        return self.request.digest(self.model)

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
        # Most calls leave no trace, and need not say so.
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

    tries: str
    ahead: bool
    repeats: str
    slot: str
    role: str
    stage: str
    outcome: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    error_kind: str
    form: int
    texts: bytes

    @property
    def request_digest(self) -> str:
        """Names what was asked, among the calls of one log."""
        return f"{self.form} {self.texts.hex()}"


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


_NUMBERS = (
    "finish",
    "reply_model",
    "request_id",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "latency_ms",
)
_numbers = attrgetter(*_NUMBERS)
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_JOINED = "from calls left join forms on forms.id = calls.form"


# --- how calls are asked for -----------------------------------------------------------------------------------------

_FACTS = (*_NUMBERS, "tries", "ahead", "repeats", "error_kind", "error_message")
_COLUMNS = ", ".join(_FACTS)
# The same JSON as `call_hash` makes, but by SQLite, four times as fast. Where it differs (other than ASCII),
# nothing is concluded from it.
_SEALED = (
    "json_array(n, slot, attempt, role, stage, model, request, lower(hex(texts)), outcome,"
    " iif(response is null, null, lower(hex(response))), iif(trace is null, null, lower(hex(trace))),"
    f" {_COLUMNS}, recorded_at, lower(hex(prev_hash)))"
)
# A call that was answered at once: what such calls of one place used can be added up, whatever a token costs.
_PLAIN = (
    "outcome = 'answered' and tries = '[]' and coalesce(cached_tokens <= input_tokens, true)"
    " and not (ahead or repeats <> '')"
)
# What `FinishedCall.digest` covers, but for the digest of the request, which stands between the two.
_ASKED = "json_array(slot, role, stage, model)"
_CAME = (
    "json_array(outcome, iif(response is null, null, lower(hex(response))), finish, error_kind, error_message,"
    f" json_array({', '.join(_TOKENS)}))"
)

CALLS = (
    "select n, slot, attempt, role, stage, model, request, texts, outcome, response, trace,"
    f" {_COLUMNS}, recorded_at, prev_hash, hash, {_SEALED} {_JOINED}"
)
"""Asks for calls with what their forms say, in the order in which they are hashed, as `call_row` takes them."""

LOOK = (
    f"select n, prev_hash, hash, {_SEALED}, slot, attempt, model, request, texts, response, trace,"
    f" {_ASKED}, {_CAME} {_JOINED} where n > ? order by n limit ?"
)
"""Asks for calls as `verify` does: by the JSON that SQLite makes, without a value of ours for each."""

_CHARGES = (
    f"select n, tries, ahead, repeats, slot, role, stage, outcome, {', '.join(_TOKENS)}, error_kind, form, texts"
    f" {_JOINED} where n > ? and n <= ? and (? or not ({_PLAIN})) order by n limit ?"
)
_SUMS = (
    f"select min(n), stage, role, ({STARTS_SQL}) as start, count(*),"
    f" {', '.join(f'sum({name})' for name in _TOKENS)} {_JOINED}"
    f" where n > ? and n <= ? and {_PLAIN} and stage is not null"
    f" group by stage, role, start, {', '.join(f'{name} is null' for name in _TOKENS)} order by 1"
)


# --- a call and its row ----------------------------------------------------------------------------------------------


def quick_digest(model: str, request: str, asked: str, came: str, trace: bytes | None) -> str:
    """A call's digest from what `look` gives; another one than its own where not all of it is ASCII."""
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
    """Whether a row of `calls` is what was recorded, by its own hash."""
    *cells, hash_, sealed = columns
    return is_sealed(sealed, hash_) or call_hash(cells) == hash_


def seal_call(
    call: FinishedCall, form: Form, texts: bytes, *, n: int, attempt: int, recorded_at: str, prev_hash: bytes
) -> tuple[CallRow, Row]:
    """The call as it will stand in the journal, and its row after the number of the form and before the hash."""
    response = None if call.response is None else raw_digest(call.response)
    trace = None if call.trace is None else raw_digest(call.trace)
    facts = (*_numbers(call), call.tries, int(call.ahead), call.repeats, call.error_kind, call.error_message)
    rest = (texts, call.outcome, response, trace, *facts, recorded_at, prev_hash)
    hash_ = call_hash((n, call.slot, attempt, *form, *rest))
    entry = CallRow(
        n=n, attempt=attempt, call=call, recorded_at=recorded_at, prev_hash=prev_hash.hex(), hash=hash_.hex()
    )
    return entry, (*rest, hash_)


def call_row(columns: Columns) -> CallRow:
    """The journal's entry from a row of `calls`; raises LogDamaged for one that was changed."""
    cells: Any = columns
    n, slot, attempt, role, stage, model, form, texts, outcome, response, trace, *facts, recorded_at, prev, hash_, _ = (
        cells
    )
    try:
        if not is_intact(columns):
            raise LogDamaged(f"call {n!r} was changed after it was recorded")
        said = dict(zip(_FACTS, facts, strict=True))
        call = FinishedCall(
            slot=slot,
            role=role,
            stage=stage,
            model=model,
            request=RecordedRequest(join_request(form, texts)),
            outcome=outcome,
            response=None if response is None else response.hex(),
            trace=None if trace is None else trace.hex(),
            **{**said, "ahead": bool(said["ahead"])},
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
        return self._read("slot = ? order by attempt", slot)

    def read(self, after: int = 0) -> Iterator[CallRow]:
        """All calls after number `after`, in the order in which they were recorded."""
        while rows := self._read(f"n > ? order by n limit {ROWS}", after):
            for row in rows:
                # A damaged index can give the same rows for ever.
                if row.n <= after:
                    raise LogDamaged(f"call {row.n} stands after call {after}")
                after = row.n
                yield row

    def first_changed(self, after: int = 0) -> int | None:
        """The number of the first call after `after` that is not what was recorded, by its own hash; None for none."""
        self._reader.define("is_sealed", is_sealed)
        sql = f"select n {_JOINED} where n > ? and not is_sealed({_SEALED}, hash) order by n"
        for (number,) in self._reader.rows(sql, (after,)):
            if not all(map(is_intact, self._reader.rows(f"{CALLS} where n = ?", (number,)))):
                return int(number or 0)
        return None

    def charges(self, after: int = 0, until: int | None = None, *, plain: bool = True) -> Iterator[ChargeRow]:
        """
        What the calls after number `after` cost, in their order; their hashes are not checked, see `first_changed`.

        Without the `plain` ones, whose sums are to be had.
        """
        last = len(self) if until is None else until
        while rows := self._reader.rows(_CHARGES, (after, last, plain, ROWS)):
            for row in rows:
                cells: Any = row
                after, tries, ahead, repeats, *others = cells
                if type(others[1]) is not str:
                    raise LogDamaged(f"call {after!r} is damaged: what it has in common with others is missing")
                yield ChargeRow(after, Charge(tries, bool(ahead), repeats, *others))

    def plain_sums(self, after: int, until: int) -> list[ChargeSum]:
        """The cost of the calls that were answered at once, by place; in the order of each place's first call."""
        return [ChargeSum(*cast("tuple[Any, ...]", row)) for row in self._reader.rows(_SUMS, (after, until))]

    def has_ahead(self) -> bool:
        """Whether any call was made before it was known to be wanted."""
        return self._reader.row("select 1 from calls where ahead limit 1") is not None

    def asked(self) -> int:
        """How many calls asked somebody: all but those that have the answer of another one."""
        [(count,)] = self._reader.rows("select count(*) from calls where repeats <> ''")
        return len(self) - int(count or 0)

    def _read(self, where: str, value: Cell) -> list[CallRow]:
        rows = self._reader.rows(f"{CALLS} where {where}", (value,))
        return [call_row(row) for row in rows]

    def __len__(self) -> int:
        # Numbers have no gaps, and the largest is found without counting.
        [(count,)] = self._reader.rows("select coalesce(max(n), 0) from calls")
        return int(count or 0)
