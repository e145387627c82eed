"""
Chat Completions (`POST {base_url}/chat/completions`), the wire format of OpenAI and of every server that imitates it.

    body = ChatWire(...).body(request)                      pure
    answer = ChatWire(...).read(status, headers, body)      pure: a ChatReply, or a Failure as a value

What compatible servers do otherwise is data of the wire: the token field, extra fields, inline thoughts, odd errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from attrs import evolve, field, frozen

from skillopt_es.adapters.models.errors import (
    ErrorBody,
    Failure,
    OddError,
    error_in,
    failure,
    status_in,
)
from skillopt_es.adapters.models.reading import (
    NOTHING,
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
    no_odd_error,
    read_reply,
    refused_by_endpoint,
    request_id_in,
    shared,
)
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatReply, ChatRequest, FinishReason, Image, Message, ModelSettings, Tool, ToolCall, Usage

TokenField = Literal["max_completion_tokens", "max_tokens"]

PATH = "/chat/completions"
CURRENT: TokenField = "max_completion_tokens"
LEGACY: TokenField = "max_tokens"
_NAMES: Mapping[Feature, tuple[str, ...]] = {
    "schema": ("response_format", "json_schema"),
    "temperature": ("temperature",),
    "effort": ("reasoning_effort",),
}


@frozen(kw_only=True)
class ChatWire(Wire):
    """Chat Completions for one model; `extra` is what a dialect adds to every body."""

    shows = frozenset({"images", "image_detail"})
    passes_on = True
    names = _NAMES
    token_field: TokenField = CURRENT
    split_thinking: bool = False
    odd_error: OddError = no_odd_error
    extra: Mapping[str, Json] = field(factory=dict)

    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question."""
        body: dict[str, Json] = {
            "model": self.model,
            "messages": [_message(message) for message in request.messages],
            self.token_field: request.max_tokens,
            **shared(request, _tool, _choice),
        }
        if request.effort:
            body["reasoning_effort"] = request.effort
        if request.schema is not None and self.schemas:
            schema: dict[str, Json] = {"name": request.stage, "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        body.update(request.extra)
        if self.stream:
            body["stream"] = True
            # Without this a stream does not say what it took.
            body["stream_options"] = {"include_usage": True}
        # Last, so that a dialect has the last word.
        body.update(self.extra)
        return body

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ChatReply | Failure:
        """The model's answer, or what went wrong instead."""
        return parse_reply(status, headers, body, split_thinking=self.split_thinking, odd_error=self.odd_error)


def token_field(settings: ModelSettings, usual: TokenField = CURRENT) -> TokenField:
    """What the field for the length limit is called: as configured, else as this backend usually calls it."""
    return usual if settings.token_field == "auto" else settings.token_field  # noqa: S105 - a field's name


def _message(message: Message) -> dict[str, Json]:
    sent: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.images:
        said: list[Json] = [{"type": "text", "text": message.content}] if message.content else []
        sent["content"] = [*said, *map(_image, message.images)]
    if message.tool_calls:
        sent["content"] = message.content or None
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _image(image: Image) -> dict[str, Json]:
    shown: dict[str, Json] = {"url": data_uri(image)}
    if image.detail != "auto":
        shown["detail"] = image.detail
    return {"type": "image_url", "image_url": shown}


def _tool(tool: Tool) -> Json:
    function: Json = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _choice(choice: str) -> Json:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


# --- the reply: typed at this edge, tolerant of what compatible servers leave out ------------------------------------

_FINISHES: Mapping[object, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "filtered",
    "refusal": "refused",
}
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)


def parse_reply(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    split_thinking: bool = False,
    odd_error: OddError = no_odd_error,
) -> ChatReply | Failure:
    """
    The model's answer, or what went wrong instead.

    `split_thinking` takes inline thoughts out of it; `odd_error` finds the error where this provider alone puts it.
    """

    def read(status: int, headers: Mapping[str, str], parsed: Object) -> ChatReply | Failure:
        found = _read(status, parsed, headers, odd_error(parsed), split_thinking=split_thinking)
        return found if isinstance(found, ChatReply) else evolve(found, usage=_usage(as_object(parsed.get("usage"))))

    return read_reply(status, headers, body, read, assemble, odd_error)


def assemble(events: Sequence[ServerEvent]) -> Object | None:
    """The reply that a stream's pieces make up; None when its end is missing."""
    message: dict[str, object] = {}
    pieces: dict[str, list[str]] = {"content": [], "refusal": []}
    tools: dict[object, dict[str, str]] = {}
    whole: dict[str, object] = {}
    finish: object = None
    for event in events:
        if event.data.strip() == "[DONE]":
            calls = [{"id": tool["id"], "function": tool} for tool in tools.values()]
            message |= {name: "".join(texts) for name, texts in pieces.items()} | {"tool_calls": calls}
            return {**whole, "choices": [{"message": message, "finish_reason": finish}]}
        chunk = event.object()
        if chunk is None:
            return None
        if chunk.get("error"):
            return {"error": chunk["error"]}
        # Later chunks repeat these, some of them as null: what was said stays.
        whole |= {name: value for name, value in chunk.items() if value and name != "choices"}
        # Only one answer is asked for.
        for choice in map(as_object, as_list(chunk.get("choices"))[:1]):
            finish = choice.get("finish_reason") or finish
            delta = as_object(choice.get("delta"))
            for name, texts in pieces.items():
                texts.append(as_text(delta.get(name)))
            for part in map(as_object, as_list(delta.get("tool_calls"))):
                _add_tool(tools, part)
    return None


def _add_tool(tools: dict[object, dict[str, str]], part: Object) -> None:
    index = part.get("index")
    # Some servers leave the index out; then each piece is a whole call.
    known = tools.setdefault(index if isinstance(index, int) else len(tools), {"id": "", "name": "", "arguments": ""})
    function = as_object(part.get("function"))
    # Later pieces leave the id and the name empty, or repeat them.
    known["id"] = known["id"] or as_text(part.get("id"))
    known["name"] = known["name"] or as_text(function.get("name"))
    known["arguments"] += as_text(function.get("arguments"))


def _read(
    status: int, parsed: Object, headers: Mapping[str, str], odd: ErrorBody | None, *, split_thinking: bool
) -> ChatReply | Failure:
    request_id = request_id_in(headers) or as_name(parsed.get("id"))
    choices = parsed.get("choices")
    choice = as_object(choices[0]) if isinstance(choices, list) and choices else NOTHING
    # An error in a 200 that names no status is taken as a gateway's, which may pass.
    reported = _reported_error(parsed, choice) or (None if odd is None else (502, odd))
    if reported is not None:
        return refused_by_endpoint(reported[0], headers, reported[1])
    if choices is not None and not isinstance(choices, list):
        return failure("invalid_reply", "`choices` is not a list", status=status, request_id=request_id)
    message = as_object(choice.get("message"))
    refusal = as_text(message.get("refusal"))
    text = refusal or _content(message.get("content"))
    if split_thinking:
        text = without_thoughts(text)
    calls = _tool_calls(message)
    finish = _finish(choice.get("finish_reason"), refusal, calls)
    if not text.strip() and finish in {"stop", "other"}:
        what = "holds no text" if choice else "holds no choice"
        return failure("empty", f"the reply {what}", status=status, request_id=request_id)
    return ChatReply(
        text=text,
        finish=finish,
        tool_calls=calls,
        usage=_usage(as_object(parsed.get("usage"))),
        model=as_name(parsed.get("model")),
        request_id=request_id,
    )


def without_thoughts(text: str) -> str:
    """An answer without the thinking that some servers leave in front of it, also when its opening tag is missing."""
    text = _THOUGHT.sub("", text)
    return text.rpartition("</think>")[2].lstrip() if "</think>" in text and "<think>" not in text else text


def _reported_error(parsed: Object, choice: Object) -> tuple[int, ErrorBody] | None:
    """The error that some gateways put into a 200, such as OpenRouter, with a status as its code."""
    for place in (choice, parsed):
        error = place.get("error")
        # Beside a choice, an error of the whole reply did not cost the answer.
        if error and (place is choice or not choice):
            return status_in(as_object(error)), error_in(place)
    return None


def _finish(reason: object, refusal: str, calls: tuple[ToolCall, ...]) -> FinishReason:
    if refusal:
        return "refused"
    # Some servers say `stop` with a call of tools. One that was cut off must not be made.
    if calls and reason != "length":
        return "tools"
    return _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"


def _content(content: object) -> str:
    if isinstance(content, list):
        return "".join(as_text(as_object(part).get("text")) for part in content)
    return as_text(content)


def _tool_calls(message: Object) -> tuple[ToolCall, ...]:
    found = message.get("tool_calls")
    if not isinstance(found, list) or not found:
        return ()
    calls = []
    for number, call in enumerate(map(as_object, found)):
        function = as_object(call.get("function"))
        name = as_text(function.get("name"))
        calls.append(
            # Some servers give calls no id, but the result of a call has to name one.
            ToolCall(as_text(call.get("id")) or f"call_{number}", name, as_text(function.get("arguments")) or "{}")
        )
    return tuple(calls)


def _usage(usage: Object) -> Usage:
    return Usage(
        input=_either(usage, "prompt_tokens", "input_tokens"),
        output=_either(usage, "completion_tokens", "output_tokens"),
        cached=as_count(as_object(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning=as_count(as_object(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _either(usage: Object, name: str, other: str) -> int | None:
    found = as_count(usage.get(name))
    return as_count(usage.get(other)) if found is None else found
