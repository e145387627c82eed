"""
What an agent asks the gateway, and what it is answered: OpenAI's Chat Completions, seen from the endpoint's side.

All of it is pure. Fields that change an answer and that we do not know ourselves are handed on as they are; what would
be answered wrongly (several choices, log probabilities) is refused with a sentence.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError
from typing import cast

from attrs import frozen

from skillopt_es.adapters.agent_output import inside, objects_in, text_in
from skillopt_es.adapters.strict_json import STRICT
from skillopt_es.events.values import Json
from skillopt_es.ports import (
    CallFailed,
    ChatReply,
    ChatRequest,
    Image,
    ImageDetail,
    ImageType,
    Message,
    MessageRole,
    Tool,
    ToolCall,
)

_ROLES: Mapping[str, MessageRole] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_READ = frozenset(
    (
        *("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "reasoning_effort"),
        *("tools", "tool_choice", "stream", "stream_options", "n"),
    )
)
# What a reply of ours has no place for, and other models.
_REFUSED = (
    *("models", "logprobs", "top_logprobs", "audio", "modalities", "web_search_options"),
    *("functions", "function_call"),
)
_IMAGE = re.compile(r"data:(image/(?:png|jpeg));base64,(.*)", re.DOTALL)
_FINISHES = {"stop": "stop", "length": "length", "tools": "tool_calls", "refused": "stop", "filtered": "content_filter"}
# As OpenAI answers (RFC 9110 has the statuses), so that its libraries raise the error that an agent expects.
STATUSES: Mapping[str, int] = {"bad_request": 400, "context_length": 400, "rate_limit": 429, "timeout": 504}


class RefusedError(Exception):
    """Why a request is not put: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@frozen
class Wanted:
    """A question, and how its answer is to be sent."""

    request: ChatRequest
    stream: bool
    usage_in_stream: bool


def read_wanted(body: bytes, *, slot: str, model: str, most_tokens: int) -> Wanted:
    """The question in a body; raises RefusedError for what cannot be put as it is meant."""
    try:
        parsed: object = STRICT.decode(body.decode("utf-8-sig"))
    except JSONDecodeError:
        raise RefusedError(400, "the body is not JSON") from None
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise RefusedError(400, f"the body is not JSON: {why}") from None
    if not isinstance(parsed, dict):
        raise RefusedError(400, "the body is not a JSON object")
    asked = cast("Mapping[str, Json]", parsed)
    _check(asked, model)
    return Wanted(
        request=ChatRequest(
            slot=slot,
            stage="rollout",
            messages=tuple(_message(each) for each in _list(asked, "messages")),
            max_tokens=_most_tokens(asked, most_tokens),
            temperature=_temperature(asked),
            effort=text_in(asked, "reasoning_effort"),
            tools=tuple(_tool(each) for each in objects_in(asked, "tools")),
            tool_choice=_choice(asked.get("tool_choice")),
            extra={key: value for key, value in asked.items() if key not in _READ and value is not None},
        ),
        stream=asked.get("stream") is True,
        usage_in_stream=inside(asked, "stream_options", "include_usage") is True,
    )


def _check(asked: Mapping[str, Json], model: str) -> None:
    named = asked.get("model")
    if named not in (model, "default", None, ""):
        raise RefusedError(404, f"this run's model is {model!r}, not {named!r}: ask for it, or for 'default'")
    if asked.get("n") not in (None, 1):
        raise RefusedError(400, "`n` must be 1: one answer to a question is journaled")
    for name in _REFUSED:
        if asked.get(name):
            raise RefusedError(400, f"the gateway cannot answer with `{name}`: leave it out")


def _list(asked: Mapping[str, Json], key: str) -> Sequence[Mapping[str, Json]]:
    found = asked.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise RefusedError(400, f"`{key}` must be a list of objects, and not empty")
    return cast("Sequence[Mapping[str, Json]]", found)


def _most_tokens(asked: Mapping[str, Json], most: int) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        value = asked.get(name)
        if value is not None:
            if type(value) is not int or value < 1:
                raise RefusedError(400, f"`{name}` must be a whole number of at least 1")
            return min(value, most)
    return most


def _temperature(asked: Mapping[str, Json]) -> float | None:
    value = asked.get("temperature")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(400, "`temperature` must be a number")
    return float(value)


def _message(message: Mapping[str, Json]) -> Message:
    role = _ROLES.get(text_in(message, "role"))
    if role is None:
        raise RefusedError(400, f"a message has the role {message.get('role')!r}, not one of {', '.join(_ROLES)}")
    text, images = _content(message.get("content"))
    calls = tuple(
        ToolCall(text_in(call, "id"), text_in(call, "function", "name"), text_in(call, "function", "arguments"))
        for call in objects_in(message, "tool_calls")
    )
    if images and role != "user":
        raise RefusedError(400, "only a message of the user may show an image")
    return Message(role, text, calls, text_in(message, "tool_call_id"), images=images)


def _content(content: Json) -> tuple[str, tuple[Image, ...]]:
    if content is None or isinstance(content, str):
        return content or "", ()
    texts: list[str] = []
    images: list[Image] = []
    for part in content if isinstance(content, list) else [content]:
        kind = text_in(part, "type")
        if kind in ("text", "input_text", "refusal"):
            texts.append(text_in(part, "text") or text_in(part, "refusal"))
        elif kind == "image_url":
            images.append(_image(part))
        else:
            raise RefusedError(400, f"a part of a message is of type {kind!r}, not text or image_url")
    return "\n".join(texts), tuple(images)


def _image(part: Json) -> Image:
    found = _IMAGE.fullmatch(text_in(part, "image_url", "url"))
    detail = text_in(part, "image_url", "detail") or "auto"
    try:
        data = base64.b64decode(found[2], validate=True) if found else b""
    except binascii.Error:
        data = b""
    if found is None or not data or detail not in ("auto", "low", "high"):
        raise RefusedError(
            400, "an image must be a data: URL of a PNG or JPEG, so that the journal has all that was asked"
        )
    return Image(cast(ImageType, found[1]), data, cast(ImageDetail, detail))


def _tool(tool: Mapping[str, Json]) -> Tool:
    parameters = inside(tool, "function", "parameters")
    name = text_in(tool, "function", "name")
    if not name:
        raise RefusedError(400, "a tool must be a function with a name")
    return Tool(name, text_in(tool, "function", "description"), parameters if isinstance(parameters, dict) else {})


def _choice(choice: Json) -> str:
    return choice if isinstance(choice, str) else text_in(choice, "function", "name")


# --- the answer ------------------------------------------------------------------------------------------------------


def message_json(reply: ChatReply) -> dict[str, Json]:
    """What the model said, as a message that may be sent back with the next question."""
    said: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
    if reply.finish == "refused":
        said |= {"content": None, "refusal": reply.text}
    if reply.tool_calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
    return said


def reply_json(reply: ChatReply, *, model: str, number: str) -> dict[str, Json]:
    """The whole answer; the same question of the same attempt always has the same one."""
    choice: Json = {"index": 0, "message": message_json(reply), "finish_reason": _finish(reply), "logprobs": None}
    return {**_head("chat.completion", model, number), "choices": [choice], "usage": _usage(reply)}


def reply_events(reply: ChatReply, *, model: str, number: str, usage: bool) -> Iterator[bytes]:
    """The same answer as the events of a stream: in one piece, for it is journaled before anybody sees it."""
    said = message_json(reply)
    calls = said.get("tool_calls")
    if isinstance(calls, list):
        said["tool_calls"] = [{"index": at, **cast("dict[str, Json]", call)} for at, call in enumerate(calls)]
    head = _head("chat.completion.chunk", model, number)
    yield _event({**head, "choices": [{"index": 0, "delta": said, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
    if usage:
        yield _event({**head, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def _head(kind: str, model: str, number: str) -> dict[str, Json]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": model}


def _event(value: Json) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _finish(reply: ChatReply) -> str:
    return _FINISHES.get(reply.finish, "stop")


def _usage(reply: ChatReply) -> Json:
    """Tokens as clients add them up; what the endpoint did not report is 0 here, and unknown in the journal."""
    told, said = reply.usage.input or 0, reply.usage.output or 0
    return {
        "prompt_tokens": told,
        "completion_tokens": said,
        "total_tokens": told + said,
        "prompt_tokens_details": {"cached_tokens": reply.usage.cached or 0},
        "completion_tokens_details": {"reasoning_tokens": reply.usage.reasoning or 0},
    }


def error_json(message: str, kind: str) -> dict[str, Json]:
    """An error as OpenAI's libraries show it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def failed_json(failure: CallFailed) -> tuple[int, dict[str, Json]]:
    """What an agent is told of a call that gave no answer."""
    return STATUSES.get(failure.kind, 502), error_json(failure.message, failure.kind)
