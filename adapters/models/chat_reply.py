"""Reading a Chat Completions reply: typed at this edge, tolerant of what compatible servers leave out."""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import evolve

from skillopt_es.adapters.models.errors import (
    FILTER_CODES,
    ErrorBody,
    Failure,
    error_in,
    failure,
    failure_of,
    read_error,
)
from skillopt_es.ports import ChatReply, FinishReason, Usage

Object = Mapping[str, object]

_NOTHING: Object = {}
_FINISHES: Mapping[object, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "filtered",
    "refusal": "refused",
}


def parse_reply(status: int, headers: Mapping[str, str], body: bytes) -> ChatReply | Failure:
    """The model's answer, or what went wrong instead; nothing is raised, whatever the bytes are."""
    if not 200 <= status < 300:
        return _refused_by_endpoint(status, headers, read_error(body))
    request_id = headers.get("x-request-id", "")
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        message = f"HTTP {status}, but the body is not JSON: {body[:200].decode(errors='replace')}"
        return failure("transport", message, status=status, request_id=request_id)
    if not isinstance(parsed, dict):
        return failure("invalid_reply", "the reply is not a JSON object", status=status, request_id=request_id)
    found = _read(status, headers, parsed, request_id or _name(parsed.get("id")))
    # A reply that cannot be used was paid for all the same.
    return evolve(found, usage=_usage(_object(parsed.get("usage"))))


def _refused_by_endpoint(status: int, headers: Mapping[str, str], error: ErrorBody) -> ChatReply | Failure:
    if error.codes & FILTER_CODES:
        return ChatReply(text="", finish="filtered", request_id=headers.get("x-request-id", ""))
    return failure_of(status, headers, error)


def _read(status: int, headers: Mapping[str, str], parsed: Object, request_id: str) -> ChatReply | Failure:
    choices = parsed.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else _NOTHING
    reported = _reported_error(parsed, choice)
    if reported is not None:
        return _refused_by_endpoint(reported[0], headers, reported[1])
    if choices is not None and not isinstance(choices, list):
        return failure("invalid_reply", "`choices` is not a list", status=status, request_id=request_id)
    message = _object(choice.get("message"))
    refusal = _text(message.get("refusal"))
    text = refusal or _content(message.get("content"))
    finish: FinishReason = "refused" if refusal else _finish(choice.get("finish_reason"))
    if not text.strip() and finish in {"stop", "other"}:
        what = "holds no text" if choice else "holds no choice"
        return failure("empty", f"the reply {what}", status=status, request_id=request_id)
    return ChatReply(
        text=text,
        finish=finish,
        model=_name(parsed.get("model")),
        request_id=request_id,
    )


def _reported_error(parsed: Object, choice: Object) -> tuple[int, ErrorBody] | None:
    """The error that some gateways put into a 200: OpenRouter with a status as its code, MiniMax with a number."""
    for place in (choice, parsed):
        error = place.get("error")
        if error and (place is choice or not choice):
            code = _object(error).get("code")
            return (code if isinstance(code, int) and 400 <= code < 600 else 502), error_in(place)
    base = _object(parsed.get("base_resp"))
    number = base.get("status_code")
    if number and not choice:
        return 502, ErrorBody(_text(base.get("status_msg")), frozenset([f"minimax_{number}"]))
    return None


def _finish(reason: object) -> FinishReason:
    return _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"


def _content(content: object) -> str:
    if isinstance(content, list):
        return "".join(_text(_object(part).get("text")) for part in content)
    return _text(content)


def _usage(usage: Object) -> Usage:
    return Usage(
        input=_count(usage.get("prompt_tokens")),
        output=_count(usage.get("completion_tokens")),
        cached=_count(_object(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning=_count(_object(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _object(value: object) -> Object:
    return value if isinstance(value, dict) else _NOTHING


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _name(value: object) -> str:
    # JSON can spell half of a surrogate pair, which no database takes; ChatReply sees to its own text.
    return _text(value).encode("utf-8", "replace").decode()


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
