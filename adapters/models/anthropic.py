"""
Anthropic Messages (`POST {base_url}/v1/messages`): `model.backend: anthropic`, and endpoints that imitate it.

System text is no message here, a tool's result is part of a user turn, and the token counts leave out the cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from attrs import evolve, field, frozen

from skillopt_es.adapters.models.anthropic_reply import assemble, read
from skillopt_es.adapters.models.endpoint import open_endpoint, refused
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.families import check_anthropic, refuse_others
from skillopt_es.adapters.models.http_model import REAL, HttpModel, Outside, identity_of
from skillopt_es.adapters.models.reading import Feature, base64_of, read_reply
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatModel, ChatReply, ChatRequest, Message, ModelSettings, Thinking, provider

PUBLIC = "https://api.anthropic.com"
VERSION = "2023-06-01"
_NAMES: Mapping[Feature, tuple[str, ...]] = {
    "schema": ("output_config.format", "output_format", "json_schema", "output_config: Extra"),
    "temperature": ("temperature",),
    "effort": ("effort", "budget_tokens"),
}
_GENERATION = re.compile(r"claude-(?:(?:opus|sonnet|haiku)-)?(\d+)(?:[.-](\d{1,2})(?!\d))?")
# Before generation 4.6 a model thinks by a budget of tokens instead of an effort.
_FIRST_ADAPTIVE = (4, 6)
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 49152}
_SMALLEST_BUDGET = 1024


@provider(takes=["thinking"])
def open_model(settings: ModelSettings, environ: Mapping[str, str], outside: Outside = REAL) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for what the Messages API cannot do."""
    refuse_others(settings, open_model.takes)
    check_anthropic(settings)
    settings = evolve(settings, base_url=settings.base_url.strip() or PUBLIC)
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
class MessagesWire:
    """Messages for one model; `budgets` is true for the generations that think by a number of tokens."""

    model: str
    thinking: Thinking = "server_default"
    budgets: bool = False
    schemas: bool = True
    stream: bool = False
    names: Mapping[Feature, tuple[str, ...]] = field(factory=lambda: _NAMES)

    @property
    def shows(self) -> frozenset[str]:
        """Images; how closely to look at them cannot be said."""
        return frozenset({"images"})

    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question."""
        body: dict[str, Json] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": _turns(request.messages),
        }
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        if system:
            body["system"] = system
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body.update(self._thinking(request))
        output = self._output(request)
        if output:
            body["output_config"] = output
        if request.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)}
                for t in request.tools
            ]
            if request.tool_choice:
                body["tool_choice"] = _choice(request.tool_choice)
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


def _choice(choice: str) -> dict[str, Json]:
    if choice == "required":
        return {"type": "any"}
    return {"type": choice} if choice in {"auto", "none"} else {"type": "tool", "name": choice}
