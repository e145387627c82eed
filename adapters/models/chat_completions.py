"""
Chat Completions (`POST {base_url}/chat/completions`), the wire format of OpenAI and of every server that imitates it.

    body = build_body(settings, request)                    pure
    answer = parse_reply(status, headers, body)             pure: a ChatReply, or a Failure as a value
    model = open_model(settings, os.environ)                both of them with limits, retries and connections
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping

from attrs import evolve, field, frozen

from skillopt_es.adapters.models.chat_reply import parse_reply
from skillopt_es.adapters.models.endpoint import open_endpoint, setting
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.exchange import Exchange
from skillopt_es.adapters.models.hints import hint_for
from skillopt_es.adapters.models.limits import Clock, Limiter, Sleep
from skillopt_es.adapters.models.retry import Draw, PastTries, RetryPolicy, seeded_draw, server_wait
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json
from skillopt_es.ports import CallFailed, ChatModel, ChatReply, ChatRequest, ModelSettings, Try

__all__ = ["ChatCompletions", "build_body", "open_model", "parse_reply"]

_OWN_FIELDS = frozenset({"messages", "model", "stream", "n"})
_SCHEMA_COMPLAINTS = ("response_format", "json_schema")
_encode = json.JSONEncoder(separators=(",", ":")).encode


def open_model(settings: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for an unusable URL, key variable or extra field."""
    return ChatCompletions(settings, environ)


def build_body(settings: ModelSettings, request: ChatRequest) -> dict[str, Json]:
    """The JSON object that asks this question; optional fields are there only when they were given."""
    body: dict[str, Json] = {
        "model": settings.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        settings.token_field: request.max_tokens,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort:
        body["reasoning_effort"] = request.effort
    if request.schema is not None and settings.structured_output != "off":
        schema: dict[str, Json] = {"name": request.stage, "strict": True, "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    body.update(settings.extra_body)
    return body


@frozen
class _Question:
    """A request, ready for the wire; `plain` is the same without its schema."""

    body: bytes = field(repr=False)
    request_id: str
    tokens: int
    plain: ChatRequest | None


@frozen
class _Failed:
    """A failed try that reached the wire (or found the circuit open, then `on_wire` is false)."""

    failure: Failure
    latency_ms: int = 0
    on_wire: bool = True


class ChatCompletions:
    """One role's model behind a Chat Completions endpoint; time and chance are parameters, for tests."""

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str],
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        sleep: Sleep = asyncio.sleep,
        draw: Draw = seeded_draw,
    ) -> None:
        _check_extra_body(settings)
        self._settings = settings
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        endpoint = open_endpoint(settings, environ, "/chat/completions")
        self._redactor = endpoint.redactor
        self._exchange = Exchange(endpoint, concurrency=settings.concurrency, timeout_seconds=settings.timeout_seconds)
        self._retry = _retry_policy(settings, draw)
        self._limiter = Limiter(
            concurrency=settings.concurrency,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            clock=clock,
            sleep=sleep,
        )
        self._schemas_refused = False

    def __repr__(self) -> str:
        return f"<{self.identity}>"

    @property
    def identity(self) -> str:
        """Names wire format, endpoint and model; extra body fields are part of it as a short digest."""
        settings = self._settings
        extra = f" +{_short_hash(json.dumps(settings.extra_body, sort_keys=True))}" if settings.extra_body else ""
        return f"openai {settings.base_url.strip().rstrip('/')} {settings.model}{extra}"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer, after whatever retries make sense; raises CallFailed."""
        question = self._question(request)
        tries: list[Try] = []
        past = PastTries()
        while isinstance(result := await self._try(question), _Failed):
            failed = result.failure
            if question.plain is not None and self._complains_about_schema(failed):
                self._schemas_refused = True
                tries.append(_try(failed, 0, kind="downgrade"))
                question = self._question(question.plain)
                continue
            wait = self._retry.wait_after(failed, request.slot, past) if result.on_wire else None
            self._limiter.learn(failed, final=wait is None)
            if result.on_wire:
                tries.append(_try(failed, round(1000 * (wait or 0.0))))
            if wait is None:
                raise self._call_failed(result, tries)
            await self._sleep(wait)
            past = past.and_then(failed)
        return evolve(result, tries=tuple(tries)) if tries else result

    async def aclose(self) -> None:
        """Give back connections."""
        await self._exchange.aclose()

    def _question(self, request: ChatRequest) -> _Question:
        schema_used = request.schema is not None and self._settings.structured_output == "auto"
        plain = evolve(request, schema=None) if schema_used else None
        if plain is not None and self._schemas_refused:
            request, plain = plain, None
        body = _encode(build_body(self._settings, request)).encode()
        # Four bytes a token is the usual estimate; the real number replaces it when the reply is there.
        tokens = len(body) // 4 + request.max_tokens if self._limiter.counts_tokens else 0
        return _Question(body, _short_hash(request.slot), tokens, plain)

    async def _try(self, question: _Question) -> ChatReply | _Failed:
        refused = await self._limiter.enter(question.tokens)
        if refused is not None:
            return _Failed(refused, on_wire=False)
        start = self._clock()
        try:
            if question.plain is not None and self._schemas_refused:  # refused while this call waited for its slot
                question = self._question(question.plain)
            raw = await self._exchange.post(question.body, question.request_id)
        finally:
            self._limiter.leave()
        latency_ms = round(1000 * (self._clock() - start))
        if isinstance(raw, Failure):
            return _Failed(self._redacted(raw), latency_ms)
        result = parse_reply(raw.status, raw.headers, raw.body)
        if isinstance(result, Failure):
            wait = server_wait(raw.headers, self._wall_clock())
            return _Failed(evolve(self._redacted(result), server_wait=wait), latency_ms)
        self._limiter.answered()
        return self._finished(result, question.tokens, latency_ms)

    def _finished(self, reply: ChatReply, estimated: int, latency_ms: int) -> ChatReply:
        usage = reply.usage
        if estimated and usage.input is not None and usage.output is not None:
            self._limiter.settle(estimated, usage.input + usage.output)
        clean = self._redactor.reply
        return ChatReply(
            text=clean(reply.text),
            finish=reply.finish,
            usage=usage,
            model=clean(reply.model),
            request_id=clean(reply.request_id),
            latency_ms=latency_ms,
        )

    def _redacted(self, failed: Failure) -> Failure:
        clean = self._redactor.error
        return evolve(
            failed,
            message=clean(failed.message),
            codes=frozenset(map(clean, failed.codes)),
            param=clean(failed.param),
            request_id=clean(failed.request_id),
        )

    def _complains_about_schema(self, failed: Failure) -> bool:
        complaint = f"{failed.param} {failed.message}"
        return failed.status in {400, 422} and any(name in complaint for name in _SCHEMA_COMPLAINTS)

    def _call_failed(self, result: _Failed, tries: list[Try]) -> CallFailed:
        failed = result.failure
        return CallFailed(
            failed.kind,
            failed.message,
            status=failed.status,
            request_id=failed.request_id,
            hint=hint_for(failed, self._settings),
            latency_ms=result.latency_ms,
            tries=tuple(tries),
            perhaps_request=failed.perhaps_request,
        )


def _try(failed: Failure, waited_ms: int, *, kind: str = "") -> Try:
    return Try(
        kind=kind or failed.kind,
        status=failed.status,
        message=failed.message,
        waited_ms=waited_ms,
        usage=failed.usage,
    )


def _retry_policy(settings: ModelSettings, draw: Draw) -> RetryPolicy:
    return RetryPolicy(
        attempts=settings.attempts,
        base=settings.backoff_seconds,
        cap=settings.backoff_cap_seconds,
        seed=settings.seed,
        draw=draw,
    )


def _check_extra_body(settings: ModelSettings) -> None:
    for name in settings.extra_body:
        if name in _OWN_FIELDS:
            raise ConfigError(f"{setting(settings.role, 'extra_body')} must not set {name!r}: the trainer does")


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
