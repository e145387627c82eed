"""
Anthropic Messages (`POST {base_url}/v1/messages`): `model.backend: anthropic`, and endpoints that imitate it.

System text is no message here, a tool's result is part of a user turn, and the token counts leave out the cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from skillopt_es.adapters.models.endpoint import open_endpoint, refused
from skillopt_es.adapters.models.errors import Failure, error_in, failure, status_in
from skillopt_es.adapters.models.families import check_anthropic, refuse_others
from skillopt_es.adapters.models.http_model import REAL, HttpModel, Outside, identity_of
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
    base64_of,
    read_reply,
    refused_by_endpoint,
    request_id_in,
    shared,
    system_text,
    total,
)
from skillopt_es.events.values import Json
from skillopt_es.ports import (
    ChatModel,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    ModelSettings,
    Thinking,
    Tool,
    ToolCall,
    Usage,
    provider,
)

PUBLIC = "https://api.anthropic.com"
VERSION = "2023-06-01"
_NAMES: Mapping[Feature, tuple[str, ...]] = {
    "schema": ("output_config.format", "output_format", "json_schema", "output_config: Extra"),
    "temperature": ("temperature",),
    "effort": ("effort", "budget_tokens"),
}
# The look-ahead keeps a date (claude-opus-4-20250514) from being taken for the second number of the version.
_GENERATION = re.compile(r"claude-(?:(?:opus|sonnet|haiku)-)?(\d+)(?:[.-](\d{1,2})(?!\d))?")
# Before generation 4.6 a model thinks by a budget of tokens instead of an effort.
_FIRST_ADAPTIVE = (4, 6)
# Our own scale, from the API's smallest on: a model that thinks by budget knows no efforts. A larger one thinks longer,
# and leaves less of max_tokens to the answer.
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 49152}
# The API takes no smaller one.
_SMALLEST_BUDGET = 1024


@provider(takes=["thinking"])
def open_model(settings: ModelSettings, environ: Mapping[str, str], outside: Outside = REAL) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for what the Messages API cannot do."""
    refuse_others(settings, open_model.takes)
    check_anthropic(settings)
    settings = evolve(settings, base_url=settings.base_url.strip() or PUBLIC)
    # People write this address with and without /v1.
    path = "/messages" if settings.base_url.rstrip("/").endswith("/v1") else "/v1/messages"
    wire = MessagesWire(
        model=settings.model,
        thinking=settings.thinking,
        budgets=_thinks_by_budget(settings.model),
        schemas=settings.structured_output != "off",
        stream=settings.stream,
    )
    if settings.token_field == "max_completion_tokens":  # noqa: S105 - a field's name
        raise refused(
            settings,
            "token_field",
            f" is {settings.token_field!r}, but anthropic calls it max_tokens",
            hint="set it to auto",
        )
    endpoint = open_endpoint(
        settings, environ, path, key_header="x-api-key", headers_of_api={"anthropic-version": VERSION}
    )
    identity = identity_of(settings, "anthropic", settings.base_url, thinking=settings.thinking)
    return HttpModel(settings, identity=identity, wire=wire, endpoint=endpoint, outside=outside)


@frozen(kw_only=True)
class MessagesWire(Wire):
    """Messages for one model; `budgets` is true for the generations that think by a number of tokens."""

    shows = frozenset({"images"})
    names = _NAMES
    thinking: Thinking = "server_default"
    budgets: bool = False

    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question."""
        body: dict[str, Json] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": _turns(request.messages),
            **shared(request, _tool, _choice),
        }
        system = system_text(request)
        if system:
            body["system"] = system
        body.update(self._thinking(request))
        output = self._output(request)
        if output:
            body["output_config"] = output
        if self.stream:
            body["stream"] = True
        return body

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ChatReply | Failure:
        """The model's answer, or what went wrong instead."""
        return read_reply(status, headers, body, read, assemble)

    def _thinking(self, request: ChatRequest) -> dict[str, Json]:
        if self.thinking == "disabled":
            return {"thinking": {"type": "disabled"}}
        if self.budgets:
            return self._budget(request)
        return {"thinking": {"type": "adaptive"}} if self.thinking in {"enabled", "adaptive"} else {}

    def _budget(self, request: ChatRequest) -> dict[str, Json]:
        if self.thinking == "server_default" and not request.effort:
            return {}
        # The budget is part of max_tokens: what is left of it is for the answer.
        budget = min(_BUDGETS.get(request.effort, _BUDGETS["medium"]), request.max_tokens // 2)
        return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _SMALLEST_BUDGET else {}

    def _output(self, request: ChatRequest) -> dict[str, Json]:
        output: dict[str, Json] = {}
        if request.effort and not self.budgets:
            output["effort"] = request.effort
        if request.schema is not None and self.schemas:
            output["format"] = {"type": "json_schema", "schema": dict(request.schema)}
        return output


def _thinks_by_budget(model: str) -> bool:
    found = _GENERATION.search(model.lower())
    return found is not None and (int(found[1]), int(found[2] or 0)) < _FIRST_ADAPTIVE


def _turns(messages: tuple[Message, ...]) -> list[Json]:
    """User and assistant in turn: neighbours of one role become one turn."""
    turns: list[tuple[str, list[Json]]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "user" if message.role == "tool" else message.role
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].extend(_blocks(message))
    return [{"role": role, "content": _content(blocks)} for role, blocks in turns]


def _blocks(message: Message) -> list[Json]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}]
    said: list[Json] = [{"type": "text", "text": message.content}] if message.content else []
    shown: list[Json] = [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": base64_of(image)},
        }
        for image in message.images
    ]
    calls: list[Json] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call.arguments)}
        for call in message.tool_calls
    ]
    return [*said, *shown, *calls]


def _content(blocks: list[Json]) -> Json:
    """One text is sent as text."""
    if len(blocks) == 1 and isinstance(blocks[0], dict) and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks


def _arguments(text: str) -> Json:
    """The arguments as an object; what the model wrote wrongly is sent back to it as it was."""
    try:
        parsed: Json = json.loads(text)
    except ValueError:
        return {"invalid": text}
    return parsed if isinstance(parsed, dict) else {"invalid": text}


def _tool(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _choice(choice: str) -> dict[str, Json]:
    if choice == "required":
        return {"type": "any"}
    return {"type": choice} if choice in {"auto", "none"} else {"type": "tool", "name": choice}


# --- the reply, whole or streamed ------------------------------------------------------------------------------------

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
    # A reply that calls tools, was cut or refused may be without text.
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
            # The counts come in two parts, with the first event and the last; a null must not overwrite a number.
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
