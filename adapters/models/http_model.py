"""
A model over HTTP, whatever its wire format: limits, credentials, one exchange, retries, recorded downgrades.

The order of one try: a slot, the circuit, a token, the wire, what it means, what to do next.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping

from attrs import define, evolve, field, frozen

from skillopt_es.adapters.models.credentials import Credential
from skillopt_es.adapters.models.endpoint import Endpoint, refused, setting
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.exchange import Exchange
from skillopt_es.adapters.models.hints import OwnHint, as_for_any, hint_for
from skillopt_es.adapters.models.limits import Clock, Limiter, Sleep, most_connections
from skillopt_es.adapters.models.reading import (
    ALL_FEATURES,
    Feature,
    Wire,
    has,
    said_wait,
    server_wait,
    spent_wait,
    without,
)
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.adapters.models.retry import (
    Draw,
    PastTries,
    RetryPolicy,
    in_words,
    puts_off,
    seeded_draw,
)
from skillopt_es.events.values import Json
from skillopt_es.ports import ALONE, CallFailed, ChatReply, ChatRequest, Course, ModelSettings, Try, Wait

# `n` is among them because more than one answer would be paid for and not read.
_OWN_FIELDS = frozenset({"messages", "input", "model", "stream", "n"})
_encode = json.JSONEncoder(separators=(",", ":")).encode


@frozen(kw_only=True)
class Outside:
    """Time and chance, which tests replace."""

    clock: Clock = time.monotonic
    wall_clock: Clock = time.time
    sleep: Sleep = asyncio.sleep
    draw: Draw = seeded_draw


REAL = Outside()
_OUTAGE = frozenset({"server", "transport"})


class HttpModel:
    """One role's model behind one endpoint."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        identity: str,
        wire: Wire,
        endpoint: Endpoint,
        credential: Credential | None = None,
        own_hint: OwnHint = as_for_any,
        outside: Outside = REAL,
    ) -> None:
        _check_extra_body(settings)
        self.identity = identity + _extras(settings)
        self._settings = settings
        self._wire = wire
        self._endpoint = endpoint
        self._credential = credential
        self._own_hint = own_hint
        self._outside = outside
        self._clock = outside.clock
        self._redactor = endpoint.redactor
        self._token = ""
        fit = most_connections(settings.roles)
        # Every call in flight is an open file, and the system allows so many.
        concurrency = settings.concurrency if fit is None else min(settings.concurrency, fit)
        self._exchange = Exchange(
            endpoint,
            concurrency=concurrency,
            timeout_seconds=settings.timeout_seconds,
            most_bytes=settings.max_reply_bytes,
        )
        self._retry = RetryPolicy(
            attempts=settings.attempts,
            base=settings.backoff_seconds,
            cap=settings.backoff_cap_seconds,
            patience=settings.patience_seconds,
            seed=settings.seed,
            draw=outside.draw,
        )
        self._limiter = Limiter(
            concurrency=concurrency,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            clock=outside.clock,
            sleep=outside.sleep,
        )
        self._seconds = settings.deadline_seconds or math.inf
        self._droppable = _droppable(settings)
        self._refused: set[Feature] = set()

    def __repr__(self) -> str:
        return f"<{self.identity}>"

    @property
    def provides(self) -> frozenset[str]:
        """What an environment may ask of it."""
        return frozenset({"text", "messages", "tools"}) | self._wire.shows

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The answer, after whatever retries make sense; raises CallFailed."""
        call = Call(self._question(request), course)
        while isinstance(result := await self._try(call), Failed):
            if not await self._goes_on(call, result):
                raise self._call_failed(result, call.tries)
        return evolve(result, tries=tuple(call.tries)) if call.tries else result

    async def aclose(self) -> None:
        """Give back connections."""
        await self._exchange.aclose()

    def _question(self, request: ChatRequest) -> Question:
        # Once refused, a field is left out for good: each further question would pay for the same refusal.
        for feature in self._refused:
            request = without(request, feature)
        features = tuple(feature for feature in self._droppable if has(request, feature))
        if request.extra and not self._wire.passes_on:
            names = ", ".join(request.extra)
            raise CallFailed(
                "bad_request", f"{self._settings.backend} has no such fields as an agent has sent: {names}"
            )
        asked = self._wire.body(request)
        if self._settings.extra_body:
            asked.update(self._settings.extra_body)
        body = _encode(asked).encode()
        # Four bytes a token is the usual estimate; the real number replaces it when the reply is there.
        tokens = len(body) // 4 + request.max_tokens if self._limiter.counts_tokens else 0
        return Question(request, body, _short_hash(request.slot), tokens, features)

    async def _goes_on(self, call: Call, result: Failed) -> bool:
        """Whether there is another try after this one, once it is time for it."""
        # The circuit is open, or the run is stopping: nothing was asked.
        if not result.on_wire:
            return False
        if self._asks_otherwise(call, result):
            return await call.course.may_try_again(call.tries[-1])
        wait, failed = self._wait_after(call, result)
        result.failure = failed
        self._limiter.learn(failed, final=wait is None, began=result.began, level=result.level)
        call.note(failed, failed.kind, wait or 0.0)
        if wait is None or not await call.course.may_try_again(call.tries[-1]):
            return False
        call.past = call.past.and_then(failed, wait)
        told = Wait(kind=failed.kind, seconds=wait, message=failed.told)
        return await call.course.rest(told, lambda: self._sleep(failed, wait))

    async def _sleep(self, failed: Failure, seconds: float) -> None:
        """A wait that the server named is slept through; one that we chose ends when a dead endpoint is back."""
        await (self._outside.sleep(seconds) if puts_off(failed) else self._limiter.before_next_try(seconds))

    def _asks_otherwise(self, call: Call, result: Failed) -> bool:
        """Whether the same question can be asked at once in another way: without a field, or with a new token."""
        failed = result.failure
        refused = self._refused_feature(failed, call.question)
        if refused is not None:
            self._refused.add(refused)
            call.note(failed, "downgrade")
            call.question = self._question(call.question.request)
            return True
        # Once in a call: if a new token is refused, too, its age is not what is wrong.
        if self._credential is not None and failed.status == 401 and result.on_wire and not call.renewed:
            call.renewed = True
            self._credential.forget(result.token)
            call.note(failed, "token_renewed")
            return True
        return False

    def _wait_after(self, call: Call, result: Failed) -> tuple[float | None, Failure]:
        """Seconds to the next try, None when there is none, or none before the call's deadline; and what failed."""
        failed = result.failure
        if puts_off(failed) and call.put_off_at is None:
            call.put_off_at = result.began
        is_down = failed.retry and failed.kind in _OUTAGE and not puts_off(failed)
        if is_down:
            call.down.append(result.began)
        silent = self._in_outage(call)
        slot, past = call.question.request.slot, call.past
        wait = self._retry.wait_after(failed, slot, past, uncounted=call.excused)
        # The last one alone says nothing: nobody else may have asked meanwhile.
        if wait is None and len(silent) > 1:
            call.excused += len(silent)
            call.down.clear()
            wait = self._retry.wait_after(failed, slot, past, uncounted=call.excused)
        ends = self._clock() + (wait or 0.0)
        late = call.deadline is not None and ends >= call.deadline
        # A target's lost call is not measured, which is counted; a step would go on without an optimizer's.
        if (wait is None or late) and is_down and self._is_unknown and self._settings.role == "optimizer":
            return None, _never_answered(failed)
        if wait is None:
            return None, self._out_of_patience(call, failed) if puts_off(failed) else failed
        since = call.silent_since
        if since is not None and (late or ends - since > self._settings.patience_seconds):
            return None, self._lasting_outage(failed, since)
        return None if late else wait, failed

    @property
    def _is_unknown(self) -> bool:
        """Whether it has answered no call yet: whatever is asked may be lost to an outage."""
        return not self._limiter.has_answered and self._settings.patience_seconds > 0

    def _in_outage(self, call: Call) -> list[float]:
        """When those tries began that say nothing about this question: the endpoint worked, and answers no call now."""
        if not self._limiter.has_answered or not self._settings.patience_seconds:
            return []
        if call.silent_since is not None and self._limiter.answered_since(call.silent_since):
            call.silent_since = None
        silent = [began for began in call.down if not self._limiter.answered_since(began)]
        if silent and call.silent_since is None:
            call.silent_since = silent[0]
        return silent

    def _lasting_outage(self, failed: Failure, began: float) -> Failure:
        """The last failure of an outage: the run pauses, because without this answer it might decide otherwise."""
        patience = f"{setting(self._settings.role, 'patience_seconds')} is {in_words(self._settings.patience_seconds)}"
        why = f"it has answered no call for {in_words(self._clock() - began)}, and {patience}"
        return evolve(failed, retry=False, closed=True, message=f"{failed.told}; {why}", quote="")

    def _out_of_patience(self, call: Call, failed: Failure) -> Failure:
        """The last refusal: where no call can be expected to do better, the run pauses instead of asking them all."""
        assert call.put_off_at is not None
        told, patience = failed.server_wait or 0.0, self._settings.patience_seconds
        if told > patience:
            why = f"it asks to come back in {in_words(told)}"
        elif not self._limiter.answered_since(call.put_off_at):
            why = f"it has answered nobody for {in_words(call.past.put_off_seconds)}"
        else:
            return failed
        longest = f"{setting(self._settings.role, 'patience_seconds')} is {in_words(patience)}"
        return evolve(failed, retry=False, closed=True, message=f"{failed.told}; {why}, and {longest}", quote="")

    async def _try(self, call: Call) -> ChatReply | Failed:
        question = call.question
        refused = await self._limiter.enter(question.tokens, call.rest)
        if refused is not None:
            return Failed(refused, on_wire=False)
        start, level = self._clock(), self._limiter.level
        if call.deadline is None:  # it begins when the call is first let through: a queue is nobody's fault
            call.deadline = start + self._seconds
        try:
            token = await self._credential.token() if self._credential is not None else ""
            if isinstance(token, Failure):
                return Failed(self._redacted(token), began=start)
            if token != self._token:
                # The endpoint may quote the token, so it has to be known before the reply is read.
                self._token, self._redactor = token, Redactor((*self._endpoint.secrets, token))
            if not self._refused.isdisjoint(question.features):  # refused while this call waited for its slot
                question = self._question(question.request)
            raw = await self._exchange.post(question.body, question.request_id, token, call.deadline - start)
        finally:
            self._limiter.leave()
        latency_ms = round(1000 * (self._clock() - start))
        if isinstance(raw, Failure):
            return Failed(self._redacted(raw), latency_ms, began=start)
        result = self._wire.read(raw.status, raw.headers, raw.body)
        spent = spent_wait(raw.headers, self._outside.wall_clock())
        if isinstance(result, Failure):
            wait = self._told(result, raw.headers, spent)
            failed = evolve(self._redacted(result), server_wait=wait)
            return Failed(failed, latency_ms, began=start, level=level, token=token)
        self._limiter.answered(spent, began=start, level=level)
        return self._finished(result, question.tokens, latency_ms)

    def _told(self, failed: Failure, headers: Mapping[str, str], spent: float | None) -> float | None:
        """How long the endpoint asks us to stay away: in so many words, or because an allowance is spent."""
        told = server_wait(headers, self._outside.wall_clock())
        # A time in the words of any other error may mean anything.
        if told is not None or failed.kind != "rate_limit":
            return told
        said = said_wait(failed.message)
        return spent if said is None else said

    def _finished(self, reply: ChatReply, estimated: int, latency_ms: int) -> ChatReply:
        usage = reply.usage
        if estimated and usage.input is not None and usage.output is not None:
            self._limiter.settle(estimated, usage.input + usage.output)
        return evolve(self._redactor.answer(reply), latency_ms=latency_ms)

    def _redacted(self, failed: Failure) -> Failure:
        clean = self._redactor.error
        return evolve(
            failed,
            message=clean(failed.message),
            quote=clean(failed.quote),
            codes=frozenset(map(clean, failed.codes)),
            param=clean(failed.param),
            request_id=clean(failed.request_id),
        )

    def _refused_feature(self, failed: Failure, question: Question) -> Feature | None:
        """The optional field of this question that the endpoint complains about."""
        if failed.status not in {400, 422}:
            return None
        complaint = f"{failed.param} {failed.message}"
        for feature in question.features:
            if feature in self._refused or any(name in complaint for name in self._wire.names[feature]):
                return feature
        return None

    def _call_failed(self, result: Failed, tries: list[Try]) -> CallFailed:
        failed = result.failure
        return CallFailed(
            failed.kind,
            failed.told,
            status=failed.status,
            request_id=failed.request_id,
            hint=self._own_hint(failed, hint_for(failed, self._settings)),
            latency_ms=result.latency_ms,
            tries=tuple(tries),
            perhaps_request=failed.perhaps_request,
            closed=failed.closed,
        )


def identity_of(settings: ModelSettings, api: str, base_url: str, **what_else: Json) -> str:
    """Names wire format, endpoint and model; what else changes the answers (not left blank) is part of it."""
    words = [f"{name}={value}" for name, value in what_else.items() if value not in ("", None, False, "server_default")]
    return " ".join([api, base_url.strip().rstrip("/"), settings.model, *words])


def _extras(settings: ModelSettings) -> str:
    if not settings.extra_body:
        return ""
    return f" +{_short_hash(json.dumps(settings.extra_body, sort_keys=True))}"


def _droppable(settings: ModelSettings) -> tuple[Feature, ...]:
    dropped: set[Feature] = {"schema"} if settings.structured_output == "auto" else set()
    if settings.unsupported_fields == "drop":
        dropped |= {"temperature", "effort"}
    return tuple(feature for feature in ALL_FEATURES if feature in dropped)


def _never_answered(failed: Failure) -> Failure:
    """The last failure of a call to an endpoint that answers none: the run pauses before it decides otherwise."""
    message = f"{failed.told}; it has answered no call yet"
    return evolve(failed, retry=False, closed=True, message=message, quote="")


def _check_extra_body(settings: ModelSettings) -> None:
    for name in settings.extra_body:
        if name in _OWN_FIELDS:
            raise refused(settings, "extra_body", f" must not set {name!r}: the trainer does")


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@frozen
class Question:
    """A request, ready for the wire; `features` are its optional fields that may be left out."""

    request: ChatRequest
    body: bytes = field(repr=False)
    request_id: str
    tokens: int
    features: tuple[Feature, ...]


@define
class Failed:
    """A failed try that reached the wire (or found the circuit open, then `on_wire` is false)."""

    failure: Failure
    latency_ms: int = 0
    on_wire: bool = True
    began: float = 0.0
    level: int = 0
    token: str = field(default="", repr=False)


@define
class Call:
    """
    How one call went so far, and whom it asks about another try.

    `down` are the starts of the tries that an outage may explain; `excused` of those that it does are not counted, and
    `silent_since` is when the first of them began after which the endpoint has answered no call.
    """

    question: Question
    course: Course
    tries: list[Try] = field(factory=list)
    past: PastTries = field(factory=PastTries)
    deadline: float | None = None
    put_off_at: float | None = None
    down: list[float] = field(factory=list)
    silent_since: float | None = None
    excused: int = 0
    renewed: bool = False

    async def rest(self, why: str, seconds: float, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Waits to be let through."""
        return await self.course.rest(Wait(kind=why, seconds=seconds, holds=True), sleep)

    def note(self, failed: Failure, kind: str, wait: float = 0.0) -> None:
        """One more try that gave no answer."""
        self.tries.append(
            Try(
                kind=kind,
                status=failed.status,
                message=failed.told,
                waited_ms=round(1000 * wait),
                usage=failed.usage,
            )
        )
