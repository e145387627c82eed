"""
Every wire format as a server speaks it: what it reads from a request's body, and the bytes it answers with.

Written from the providers' documentation, not from the adapters, so that a mistake there does not repeat here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from skillopt_es.adapters.models import anthropic, azure, minimax, openai, qwen
from skillopt_es.adapters.models.http_model import HttpModel, Outside
from skillopt_es.ports import ChatModel, ChatRequest, FinishReason, Message, ModelSettings, ToolCall
from support.model_server import Answer

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


@frozen(kw_only=True)
class Said:
    """An answer, whatever the format."""

    text: str = "4"
    finish: FinishReason = "stop"
    calls: tuple[ToolCall, ...] = ()
    input: int = 11
    output: int = 5
    cached: int = 8
    reasoning: int = 2


Body = dict[str, Any]
OpenModel = Callable[[ModelSettings, Mapping[str, str], Outside], ChatModel]


@frozen(kw_only=True)
class Format:
    """One provider's way to speak; `root` is what of the server's address is configured."""

    name: str
    open: OpenModel
    changes: Mapping[str, Any]
    path: str
    reads: Callable[[Body], ChatRequest]
    writes: Callable[[Said], Body]
    streams: Callable[[Said], bytes]
    errors: Callable[[int, str, str], Body]
    root: str = "/v1"
    key_header: str = "authorization"
    counts_reasoning: bool = True
    schema_field: str = "response_format"

    def base_url(self, server_url: str) -> str:
        """What `model.base_url` is set to for a server."""
        return server_url.removesuffix("/v1") + self.root

    def answer(self, said: Said, *, stream: bool = False, **more: Any) -> Answer:
        """The whole reply."""
        if stream:
            return Answer(raw=self.streams(said), headers=STREAM, **more)
        return Answer(raw=json.dumps(self.writes(said)), **more)

    def refusal(self, status: int, code: str, message: str, **headers: str) -> Answer:
        """An error in the provider's own shape."""
        return Answer(status=status, raw=json.dumps(self.errors(status, code, message)), headers=headers)

    def model(
        self, given: ModelSettings, environ: Mapping[str, str], outside: Outside | None = None, **more: Any
    ) -> HttpModel:
        """The adapter of this format for a server's settings."""
        settings = evolve(given, **{**self.changes, **more, "base_url": self.base_url(given.base_url)})
        opened = self.open(settings, environ, outside or Outside())
        assert isinstance(opened, HttpModel)
        return opened


def _sse(events: Sequence[tuple[str, Any]], *, named: bool, done: bool = False) -> bytes:
    lines = [": a comment\n\n"]
    for name, data in events:
        lines.append((f"event: {name}\n" if named else "") + f"data: {json.dumps(data)}\n\n")
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


# --- chat completions -----------------------------------------------------------------------------------------------

_CHAT_FINISH = {
    "stop": "stop",
    "length": "length",
    "tools": "tool_calls",
    "filtered": "content_filter",
    "refused": "stop",
}


def chat_reads(body: Body) -> ChatRequest:
    """The question of a chat completions body."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    messages = tuple(Message(each["role"], each["content"] or "") for each in body["messages"])
    return ChatRequest(slot="", stage="rollout", messages=messages, max_tokens=1, schema=schema)


def chat_writes(said: Said) -> Body:
    """A chat completion."""
    message: Body = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.finish == "refused":
        message |= {"content": None, "refusal": said.text}
    if said.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in said.calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "small-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": _CHAT_FINISH[said.finish]}],
        "usage": _chat_usage(said),
    }


def _chat_usage(said: Said) -> Body:
    return {
        "prompt_tokens": said.input,
        "completion_tokens": said.output,
        "total_tokens": said.input + said.output,
        "prompt_tokens_details": {"cached_tokens": said.cached},
        "completion_tokens_details": {"reasoning_tokens": said.reasoning},
    }


def chat_streams(said: Said) -> bytes:
    """A chat completion in chunks."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "small-2026"}

    def chunk(delta: Body, finish: str | None = None) -> tuple[str, Any]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    name = "refusal" if said.finish == "refused" else "content"
    chunks = [chunk({"role": "assistant", "content": ""}), *(chunk({name: half}) for half in _halves(said.text))]
    for index, call in enumerate(said.calls):
        first, rest = _halves(call.arguments)
        start = {"name": call.name, "arguments": first}
        chunks.append(chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": start}]}))
        chunks.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": rest}}]}))
    chunks.append(chunk({}, _CHAT_FINISH[said.finish]))
    chunks.append(("", {**head, "choices": [], "usage": _chat_usage(said)}))
    return _sse(chunks, named=False, done=True)


def openai_errors(_status: int, code: str, message: str) -> Body:
    """OpenAI's error object."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


# --- responses ------------------------------------------------------------------------------------------------------


def responses_reads(body: Body) -> ChatRequest:
    """The question of a responses body."""
    system = [Message("system", body["instructions"])] if "instructions" in body else []
    messages = (*system, *(Message(each["role"], each["content"]) for each in body["input"]))
    schema = body.get("text", {}).get("format", {}).get("schema")
    return ChatRequest(slot="", stage="rollout", messages=messages, max_tokens=1, schema=schema)


def responses_writes(said: Said) -> Body:
    """A response object."""
    kind = "refusal" if said.finish == "refused" else "output_text"
    part = {"type": kind, "refusal" if kind == "refusal" else "text": said.text}
    output: list[Body] = [{"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"text": "hm"}]}]
    if said.text:
        output.append({"type": "message", "role": "assistant", "status": "completed", "content": [part]})
    output += [
        {"type": "function_call", "id": f"fc_{c.id}", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        for c in said.calls
    ]
    why = {"length": "max_output_tokens", "filtered": "content_filter"}.get(said.finish)
    return {
        "id": "resp_1",
        "object": "response",
        "model": "small-2026",
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "error": None,
        "output": output,
        "usage": {
            "input_tokens": said.input,
            "input_tokens_details": {"cached_tokens": said.cached},
            "output_tokens": said.output,
            "output_tokens_details": {"reasoning_tokens": said.reasoning},
            "total_tokens": said.input + said.output,
        },
    }


def responses_streams(said: Said) -> bytes:
    """A response as it grows."""
    whole = responses_writes(said)
    events: list[tuple[str, Any]] = [
        ("response.created", {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}})
    ]
    events += [
        ("response.output_text.delta", {"type": "response.output_text.delta", "delta": half})
        for half in _halves(said.text)
    ]
    last = f"response.{whole['status']}"
    return _sse([*events, (last, {"type": last, "response": whole})], named=True)


# --- anthropic ------------------------------------------------------------------------------------------------------

_STOPS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    "refused": "refusal",
    "filtered": "refusal",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def messages_reads(body: Body) -> ChatRequest:
    """The question of a messages body."""
    system = [Message("system", body["system"])] if "system" in body else []
    messages = (*system, *(Message(each["role"], each["content"]) for each in body["messages"]))
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    return ChatRequest(slot="", stage="rollout", messages=messages, max_tokens=1, schema=schema)


def messages_writes(said: Said) -> Body:
    """A message object; its input count leaves out the cache."""
    content: list[Body] = [{"type": "thinking", "thinking": "hm", "signature": "x"}]
    content += [{"type": "text", "text": said.text}] if said.text else []
    content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in said.calls]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small-2026",
        "content": content,
        "stop_reason": _STOPS[said.finish],
        "stop_sequence": None,
        "usage": _message_usage(said),
    }


def _message_usage(said: Said) -> Body:
    fresh = said.input - said.cached
    return {
        "input_tokens": fresh - 1,
        "cache_creation_input_tokens": 1,
        "cache_read_input_tokens": said.cached,
        "output_tokens": said.output,
    }


def messages_streams(said: Said) -> bytes:
    """A message block by block, with a ping."""
    whole = messages_writes(said)
    usage = {**whole["usage"], "output_tokens": 1}
    start = {**whole, "content": [], "stop_reason": None, "usage": usage}
    events: list[tuple[str, Any]] = [("message_start", {"message": start}), ("ping", {})]
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        empty: Body = {"text": {"type": "text", "text": ""}, "thinking": {"type": "thinking", "thinking": ""}}.get(
            kind, {**block, "input": {}}
        )
        events.append(("content_block_start", {"index": index, "content_block": empty}))
        if kind == "tool_use":
            pieces = [
                {"type": "input_json_delta", "partial_json": half} for half in _halves(json.dumps(block["input"]))
            ]
        elif kind == "text":
            pieces = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
        else:
            pieces = [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "x"}]
        events += [("content_block_delta", {"index": index, "delta": piece}) for piece in pieces]
        events.append(("content_block_stop", {"index": index}))
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append(("message_delta", {"delta": ended, "usage": {"output_tokens": said.output}}))
    events.append(("message_stop", {}))
    return _sse([(name, {"type": name, **data}) for name, data in events], named=True)


def messages_errors(status: int, _code: str, message: str) -> Body:
    """Anthropic's error object; its type comes from the status."""
    kind = _TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


# --- the formats ----------------------------------------------------------------------------------------------------

_CHAT: dict[str, Any] = {
    "reads": chat_reads,
    "writes": chat_writes,
    "streams": chat_streams,
    "errors": openai_errors,
}
_RESPONSES: dict[str, Any] = {
    "reads": responses_reads,
    "writes": responses_writes,
    "streams": responses_streams,
    "errors": openai_errors,
    "schema_field": "text",
}
_AZURE: dict[str, Any] = {"open": azure.open_model, "root": "", "key_header": "api-key"}
VERSION = "2025-04-01-preview"

FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format(
            name="openai", open=openai.open_model, changes={"backend": "openai"}, path="/v1/chat/completions", **_CHAT
        ),
        Format(
            name="openai-responses",
            open=openai.open_model,
            changes={"backend": "openai", "protocol": "responses"},
            path="/v1/responses",
            **_RESPONSES,
        ),
        Format(
            name="azure-classic",
            changes={"backend": "azure_openai", "api_version": VERSION},
            path=f"/openai/deployments/small/chat/completions?api-version={VERSION}",
            **_AZURE,
            **_CHAT,
        ),
        Format(
            name="azure-v1",
            changes={"backend": "azure_openai"},
            path="/openai/v1/chat/completions",
            **_AZURE,
            **_CHAT,
        ),
        Format(
            name="azure-classic-responses",
            changes={"backend": "azure_openai", "api_version": VERSION, "protocol": "responses"},
            path=f"/openai/responses?api-version={VERSION}",
            **_AZURE,
            **_RESPONSES,
        ),
        Format(
            name="azure-v1-responses",
            changes={"backend": "azure_openai", "protocol": "responses"},
            path="/openai/v1/responses",
            **_AZURE,
            **_RESPONSES,
        ),
        Format(
            name="anthropic",
            open=anthropic.open_model,
            changes={"backend": "anthropic"},
            path="/v1/messages",
            reads=messages_reads,
            writes=messages_writes,
            streams=messages_streams,
            errors=messages_errors,
            key_header="x-api-key",
            counts_reasoning=False,
            schema_field="output_config",
        ),
        Format(
            name="qwen", open=qwen.open_model, changes={"backend": "qwen_chat"}, path="/v1/chat/completions", **_CHAT
        ),
        Format(
            name="minimax",
            open=minimax.open_model,
            changes={"backend": "minimax_chat"},
            path="/v1/chat/completions",
            **_CHAT,
        ),
    )
}
