"""
OpenAI's Responses (`POST {base_url}/responses`): the questions as its items, and what its output items say.

Nothing is stored at the provider (`store: false`). A streamed reply carries the whole response in its last event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from skillopt_es.adapters.models.errors import Failure, error_in, failure, status_in
from skillopt_es.adapters.models.reading import (
    Feature,
    Object,
    ServerEvent,
    Wire,
    as_count,
    as_list,
    as_name,
    as_object,
    as_text,
    data_uri,
    read_reply,
    refused_by_endpoint,
    request_id_in,
    shared,
    system_text,
)
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatReply, ChatRequest, FinishReason, Image, Message, Tool, ToolCall, Usage

PATH = "/responses"
_NAMES: Mapping[Feature, tuple[str, ...]] = {
    "schema": ("text.format", "json_schema", "response_format"),
    "temperature": ("temperature",),
    "effort": ("reasoning",),
}
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_INCOMPLETE: Mapping[object, FinishReason] = {"max_output_tokens": "length", "content_filter": "filtered"}


@frozen(kw_only=True)
class ResponsesWire(Wire):
    """Responses for one model."""

    shows = frozenset({"images", "image_detail"})
    names = _NAMES

    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question."""
        body: dict[str, Json] = {
            "model": self.model,
            "input": [item for message in request.messages for item in _items(message)],
            "max_output_tokens": request.max_tokens,
            "store": False,
            **shared(request, _tool, _choice),
        }
        system = system_text(request)
        if system:
            body["instructions"] = system
        if request.effort:
            body["reasoning"] = {"effort": request.effort}
        if request.schema is not None and self.schemas:
            kind: dict[str, Json] = {"type": "json_schema", "name": request.stage, "strict": True}
            body["text"] = {"format": {**kind, "schema": dict(request.schema)}}
        if self.stream:
            body["stream"] = True
        return body

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ChatReply | Failure:
        """The model's answer, or what went wrong instead."""
        return read_reply(status, headers, body, _read, assemble)


def _items(message: Message) -> list[Json]:
    if message.role == "system":
        return []
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.content}]
    if message.images:
        text: list[Json] = [{"type": "input_text", "text": message.content}] if message.content else []
        return [{"role": message.role, "content": [*text, *map(_image, message.images)]}]
    said: list[Json] = [{"role": message.role, "content": message.content}] if message.content else []
    calls: list[Json] = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return [*said, *calls]


def _image(image: Image) -> dict[str, Json]:
    shown: dict[str, Json] = {"type": "input_image", "image_url": data_uri(image)}
    if image.detail != "auto":
        shown["detail"] = image.detail
    return shown


def _tool(tool: Tool) -> Json:
    said: dict[str, Json] = {"type": "function", "name": tool.name, "description": tool.description}
    return {**said, "parameters": dict(tool.parameters)}


def _choice(choice: str) -> Json:
    return choice if choice in {"auto", "none", "required"} else {"type": "function", "name": choice}


def assemble(events: Sequence[ServerEvent]) -> Object | None:
    """The response that a stream ends with; None when it does not end."""
    for event in events:
        parsed = event.object()
        if parsed is None:
            continue
        kind = event.name or as_text(parsed.get("type"))
        if kind in _LAST_EVENTS:
            return as_object(parsed.get("response"))
        if kind == "error":
            inner = as_object(parsed.get("error"))
            return {"status": "failed", "error": inner or parsed}
    return None


def _read(status: int, headers: Mapping[str, str], parsed: Object) -> ChatReply | Failure:
    request_id = request_id_in(headers) or as_name(parsed.get("id"))
    error = parsed.get("error")
    if error:
        return refused_by_endpoint(status_in(as_object(error)), headers, error_in(parsed))
    output = parsed.get("output")
    if output is not None and not isinstance(output, list):
        return failure("invalid_reply", "`output` is not a list", status=status, request_id=request_id)
    items = [as_object(item) for item in as_list(output)]
    parts = [as_object(part) for item in items for part in as_list(item.get("content")) if item.get("role")]
    refusal = "".join(as_text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
    text = refusal or "".join(as_text(part.get("text")) for part in parts if part.get("type") == "output_text")
    calls = tuple(
        ToolCall(as_text(item.get("call_id")), as_text(item.get("name")), as_text(item.get("arguments")) or "{}")
        for item in items
        if item.get("type") == "function_call"
    )
    finish = _finish(parsed, refusal, calls)
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


def _finish(parsed: Object, refusal: str, calls: tuple[ToolCall, ...]) -> FinishReason:
    if refusal:
        return "refused"
    status = parsed.get("status")
    if status == "incomplete":
        return _INCOMPLETE.get(as_text(as_object(parsed.get("incomplete_details")).get("reason")), "other")
    if status == "completed":
        return "tools" if calls else "stop"
    return "other"


def _usage(usage: Object) -> Usage:
    return Usage(
        input=as_count(usage.get("input_tokens")),
        output=as_count(usage.get("output_tokens")),
        cached=as_count(as_object(usage.get("input_tokens_details")).get("cached_tokens")),
        reasoning=as_count(as_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )
