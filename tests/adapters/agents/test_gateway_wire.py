"""Chat Completions from the endpoint's side."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from skillopt_es.adapters.agents.gateway_wire import RefusedError, Wanted, read_wanted, reply_events, reply_json
from skillopt_es.adapters.models.chat_completions import assemble, parse_reply
from skillopt_es.adapters.models.reading import ServerEvent
from skillopt_es.ports import ChatReply, Image, Message, Tool, ToolCall, Usage

PNG = b"\x89PNG made up"
REPLY = ChatReply(
    text="Let me look.",
    finish="tools",
    tool_calls=(ToolCall("c1", "search", '{"for": "tea"}'), ToolCall("c2", "stock", "{}")),
    usage=Usage(input=10, output=4, cached=3),
)


def wanted(**body: Any) -> Wanted:
    """A body, read."""
    whole = {"model": "small", "messages": [{"role": "user", "content": "Tea?"}], **body}
    return read_wanted(json.dumps(whole).encode(), slot="here", model="small", most_tokens=500)


def test_a_question_is_read_with_all_that_it_says() -> None:
    """Roles by both their names, parts, images, tools with their results, lengths by both their names."""
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    shown = {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}", "detail": "low"}
    asked = wanted(
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Tea?"}, {"type": "image_url", "image_url": shown}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "2 hits"},
        ],
        tools=[{"type": "function", "function": {"name": "search", "description": "Looks.", "parameters": {"a": 1}}}],
        tool_choice={"type": "function", "function": {"name": "search"}},
        max_completion_tokens=50,
        temperature=0,
        top_p=0.5,
        stop=None,
        response_format={"type": "json_object"},
    ).request
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "Tea?", images=(Image("image/png", PNG, "low"),)),
        Message("assistant", "", (ToolCall("c1", "search", "{}"),)),
        Message("tool", "2 hits", (), "c1"),
    )
    assert asked.tools == (Tool("search", "Looks.", {"a": 1}),)
    assert (asked.tool_choice, asked.max_tokens, asked.temperature, asked.slot) == ("search", 50, 0.0, "here")
    assert asked.extra == {"top_p": 0.5, "response_format": {"type": "json_object"}}
    assert wanted().request.max_tokens == 500


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_an_answer_is_no_longer_than_the_config_allows(name: str) -> None:
    """However much an agent asks for."""
    assert wanted(**{name: 1_000_000_000_000}).request.max_tokens == 500
    assert wanted(**{name: 20}).request.max_tokens == 20


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"model": "large"}, 404, "this run's model is 'small', not 'large'"),
        ({"messages": []}, 400, "`messages` must be a list"),
        ({"messages": [{"role": "robot", "content": ""}]}, 400, "the role 'robot'"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, 400, "of type 'input_audio'"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y"}}]}]},
            400,
            "must be a data: URL",
        ),
        ({"n": 3}, 400, "`n` must be 1"),
        ({"logprobs": True}, 400, "cannot answer with `logprobs`"),
        ({"max_tokens": 0}, 400, "`max_tokens` must be a whole number"),
        ({"temperature": float("nan")}, 400, "the body is not JSON: NaN is not JSON"),
        ({"tools": [{"x": float("-inf")}]}, 400, "-Infinity is not JSON"),
        ({"models": ["large"]}, 400, "cannot answer with `models`"),
        ({"temperature": "hot"}, 400, "`temperature` must be a number"),
        ({"tools": [{"type": "web_search"}]}, 400, "a tool must be a function"),
    ],
)
def test_what_cannot_be_put_as_it_is_meant_is_refused(body: dict[str, Any], status: int, said: str) -> None:
    """Never quietly changed."""
    with pytest.raises(RefusedError, match=said) as refused:
        wanted(**body)
    assert refused.value.status == status


def test_bytes_that_are_no_question_are_refused() -> None:
    """With a sentence, too."""
    for body in (b"<html>", b"[]"):
        with pytest.raises(RefusedError, match="not"):
            read_wanted(body, slot="", model="small", most_tokens=1)


def test_an_answer_is_read_by_our_own_client_as_what_it_was() -> None:
    """Whole, and as a stream."""
    body = json.dumps(reply_json(REPLY, model="small", number="1")).encode()
    read = parse_reply(200, {}, body)
    assert isinstance(read, ChatReply)
    assert (read.text, read.finish, read.tool_calls) == (REPLY.text, "tools", REPLY.tool_calls)
    assert (read.usage.input, read.usage.output, read.usage.cached) == (10, 4, 3)

    events = list(reply_events(REPLY, model="small", number="1", usage=True))
    pieces = [ServerEvent(name="", data=event.decode().removeprefix("data: ").strip()) for event in events]
    whole = assemble(pieces)
    streamed = parse_reply(200, {}, json.dumps(whole).encode())
    assert isinstance(streamed, ChatReply)
    assert (streamed.text, streamed.finish, streamed.tool_calls) == (REPLY.text, "tools", REPLY.tool_calls)
    assert streamed.usage.input == 10
    assert len(list(reply_events(REPLY, model="small", number="1", usage=False))) == len(events) - 1
