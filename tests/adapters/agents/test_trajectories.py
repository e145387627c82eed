"""What an agent did, in whichever form it says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillopt_es.adapters.agents.trajectories import UnreadableError, read_messages, read_spans, read_steps
from skillopt_es.ports import AgentStep

CALL = AgentStep(kind="tool", text='search {"for": "tea"}', output="2 hits")


def test_plain_steps_are_what_they_say() -> None:
    """Texts are messages; a command has its exit code."""
    assert read_steps(
        [
            "First I look.",
            {"tool": "search", "input": {"for": "tea"}, "output": "2 hits"},
            {"kind": "command", "text": "ls", "output": "a b", "exit_code": 0, "ok": True},
        ]
    ) == [
        AgentStep(kind="message", text="First I look."),
        CALL,
        AgentStep(kind="command", text="ls", output="a b", exit_code=0, ok=True),
    ]


def test_a_conversation_is_read_from_what_the_agent_says_first() -> None:
    """Each call of a tool has its own result, whichever comes first; a user who answers is named."""

    def call(name: str, arguments: str, number: str) -> dict[str, Any]:
        return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}

    messages = [
        {"role": "system", "content": "You sell tea."},
        {"role": "user", "content": "Do you have tea?"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I must look.",
            "tool_calls": [call("search", '{"for": "tea"}', "1"), call("stock", "", "2")],
        },
        {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "9"}]},
        {"role": "tool", "tool_call_id": "1", "content": "2 hits"},
        {"role": "assistant", "content": "Green or black?"},
        {"role": "user", "content": "Green."},
        {"role": "assistant", "content": [{"type": "text", "text": "Here it is."}]},
    ]
    assert read_messages(messages) == [
        AgentStep(kind="reasoning", text="I must look."),
        CALL,
        AgentStep(kind="tool", text="stock", output="9"),
        AgentStep(kind="message", text="Green or black?"),
        AgentStep(kind="message", text="(user) Green."),
        AgentStep(kind="message", text="Here it is."),
    ]


def test_the_items_of_the_responses_api_are_a_conversation_too() -> None:
    """As an agent's SDK lists what it has done."""
    items = [
        {"role": "user", "content": "Do you have tea?"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I must look."}]},
        {"type": "function_call", "call_id": "c", "name": "search", "arguments": '{"for": "tea"}'},
        {"type": "function_call_output", "call_id": "c", "output": "2 hits"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
    ]
    assert read_messages(items) == [
        AgentStep(kind="reasoning", text="I must look."),
        CALL,
        AgentStep(kind="message", text="Yes."),
    ]


def spans() -> list[dict[str, Any]]:
    """A trace as its spans ended: the inner ones first."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}], "finish_reason": "stop"}]
    asks = [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "1", "name": "search", "arguments": {"for": "tea"}}],
        }
    ]
    return [
        {
            "startTimeUnixNano": "20",
            "attributes": {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.arguments": '{"for": "tea"}',
                "gen_ai.tool.call.result": "2 hits",
            },
        },
        {
            "startTimeUnixNano": "30",
            "attributes": {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said)},
        },
        {"startTimeUnixNano": "10", "attributes": {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asks}},
        {"startTimeUnixNano": "5", "name": "invoke_agent", "attributes": {"gen_ai.operation.name": "invoke_agent"}},
    ]


def wrapped(value: object) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [wrapped(each) for each in value]}}
    assert isinstance(value, dict)
    return {"kvlistValue": {"values": [{"key": key, "value": wrapped(inner)} for key, inner in value.items()]}}


def test_spans_are_read_as_a_list_and_as_otlp() -> None:
    """In the order in which they began; a call that has a span of its own is told once."""
    wanted = [CALL, AgentStep(kind="message", text="Yes.")]
    assert read_spans(spans()) == wanted
    otlp = [
        {**span, "attributes": [{"key": key, "value": wrapped(value)} for key, value in span["attributes"].items()]}
        for span in spans()
    ]
    assert read_spans({"resourceSpans": [{"scopeSpans": [{"spans": otlp}]}]}) == wanted


def test_without_spans_of_tools_the_calls_are_in_the_messages() -> None:
    """As the model asked for them; a span that failed says why."""
    broken = {"name": "chat small", "startTimeUnixNano": 40, "attributes": {}, "status": {"code": 2, "message": "429"}}
    assert read_spans([*spans()[1:], broken]) == [
        AgentStep(kind="tool", text='search {"for": "tea"}'),
        AgentStep(kind="message", text="Yes."),
        AgentStep(kind="error", text="429"),
    ]


def test_what_is_no_trajectory_is_refused() -> None:
    """Rather than read as an agent that did nothing."""
    with pytest.raises(UnreadableError, match="no span"):
        read_spans({"resourceSpan": []})
    with pytest.raises(UnreadableError, match="not a list of objects"):
        read_messages({"role": "assistant"})
