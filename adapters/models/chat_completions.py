"""
Chat Completions (`POST {base_url}/chat/completions`), the wire format of OpenAI and of every server that imitates it.

    body = ChatWire(...).body(request)                      pure
    answer = ChatWire(...).read(status, headers, body)      pure: a ChatReply, or a Failure as a value

What compatible servers do otherwise is data of the wire: the token field, extra fields, inline thoughts, odd errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from skillopt_es.adapters.models.chat_reply import OddError, no_odd_error, parse_reply
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.reading import Feature, data_uri
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatReply, ChatRequest, Image, Message, ModelSettings, Tool

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
class ChatWire:
    """Chat Completions for one model; `extra` is what a dialect adds to every body."""

    model: str
    token_field: TokenField = CURRENT
    schemas: bool = True
    stream: bool = False
    split_thinking: bool = False
    odd_error: OddError = no_odd_error
    extra: Mapping[str, Json] = field(factory=dict)

    @property
    def shows(self) -> frozenset[str]:
        """Images, each with how closely to look at it."""
        return frozenset({"images", "image_detail"})

    @property
    def names(self) -> Mapping[Feature, tuple[str, ...]]:
        """How endpoints call the optional fields."""
        return _NAMES

    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question."""
        body: dict[str, Json] = {
            "model": self.model,
            "messages": [_message(message) for message in request.messages],
            self.token_field: request.max_tokens,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.effort:
            body["reasoning_effort"] = request.effort
        if request.schema is not None and self.schemas:
            schema: dict[str, Json] = {"name": request.stage, "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.tools:
            body["tools"] = [{"type": "function", "function": _tool(tool)} for tool in request.tools]
            if request.tool_choice:
                body["tool_choice"] = _choice(request.tool_choice)
        if self.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
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


def _tool(tool: Tool) -> dict[str, Json]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _choice(choice: str) -> Json:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}
