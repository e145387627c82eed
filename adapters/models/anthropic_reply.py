"""Reading an Anthropic Messages reply, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from attrs import evolve

from skillopt_es.adapters.models.errors import Failure, error_in, failure, request_id_in, status_in
from skillopt_es.adapters.models.reading import (
    Object,
    as_count,
    as_list,
    as_name,
    as_object,
    as_text,
    refused_by_endpoint,
    total,
)
from skillopt_es.adapters.models.sse import ServerEvent
from skillopt_es.ports import ChatReply, FinishReason, ToolCall, Usage

_FINISHES: Mapping[object, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tools",
    "refusal": "refused",
}
_PIECES = {"text_delta": "text", "input_json_delta": "partial_json"}


def read(status: int, headers: Mapping[str, str], parsed: Object) -> ChatReply | Failure:
    """The answer in a reply's object, or what went wrong instead."""
    request_id = request_id_in(headers) or as_name(parsed.get("request_id")) or as_name(parsed.get("id"))
    if parsed.get("type") == "error" or parsed.get("error"):
        return refused_by_endpoint(status_in(as_object(parsed.get("error"))), headers, error_in(parsed))
    content = parsed.get("content")
    if content is not None and not isinstance(content, list):
        return failure("invalid_reply", "`content` is not a list", status=status, request_id=request_id)
    reason = parsed.get("stop_reason")
    if reason == "model_context_window_exceeded":
        return failure(
            "context_length", "question and answer together exceed the model's context window", status=status
        )
    blocks = [as_object(block) for block in as_list(content)]
    text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    calls = tuple(_tool_call(block) for block in blocks if block.get("type") == "tool_use")
    finish = _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"
    if not text.strip() and finish in {"stop", "other"}:
        nothing = failure("empty", "the reply holds no text", status=status, request_id=request_id)
        return evolve(nothing, usage=_usage(as_object(parsed.get("usage"))))
    return ChatReply(
        text=text,
        finish=finish,
        tool_calls=calls,
        usage=_usage(as_object(parsed.get("usage"))),
        model=as_name(parsed.get("model")),
        request_id=request_id,
    )


def assemble(events: Sequence[ServerEvent]) -> Object | None:
    """The reply that a stream's pieces make up; None when its end is missing."""
    message: dict[str, object] = {}
    usage: dict[str, object] = {}
    blocks: dict[object, tuple[Object, list[str]]] = {}
    for event in events:
        parsed = event.object()
        if parsed is None:
            return None
        kind = as_text(parsed.get("type")) or event.name
        if kind == "error":
            return parsed
        if kind == "message_start":
            message |= as_object(parsed.get("message"))
            usage |= as_object(message.get("usage"))
        elif kind == "content_block_start":
            blocks[parsed.get("index")] = (as_object(parsed.get("content_block")), [])
        elif kind == "content_block_delta" and parsed.get("index") in blocks:
            delta = as_object(parsed.get("delta"))
            piece = delta.get(_PIECES.get(as_text(delta.get("type")), ""))
            blocks[parsed.get("index")][1].append(as_text(piece))
        elif kind == "message_delta":
            message |= as_object(parsed.get("delta"))
            usage |= {name: count for name, count in as_object(parsed.get("usage")).items() if count is not None}
        elif kind == "message_stop":
            content = [_whole(block, "".join(pieces)) for block, pieces in blocks.values()]
            return {**message, "content": content, "usage": usage}
    return None


def _whole(block: Object, pieces: str) -> Object:
    if block.get("type") == "text":
        return {**block, "text": as_text(block.get("text")) + pieces}
    return {**block, "input": pieces} if block.get("type") == "tool_use" and pieces else block


def _tool_call(block: Object) -> ToolCall:
    given = block.get("input")
    arguments = given if isinstance(given, str) else json.dumps(given if given is not None else {}, ensure_ascii=False)
    return ToolCall(as_text(block.get("id")), as_text(block.get("name")), arguments)


def _usage(usage: Object) -> Usage:
    cached = as_count(usage.get("cache_read_input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input=total(as_count(usage.get("input_tokens")), written, cached),
        output=as_count(usage.get("output_tokens")),
        cached=cached,
    )
