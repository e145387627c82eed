"""Event streams as the real command lines print them, read into the one form."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.adapters.agent_output import MOST_OUTPUT, short
from skillopt_es.adapters.harnesses.agent import Agent, Event, Run, Transcript
from skillopt_es.adapters.harnesses.claude_code import ClaudeCode
from skillopt_es.adapters.harnesses.codex import Codex
from skillopt_es.adapters.harnesses.copilot import Copilot
from skillopt_es.adapters.harnesses.cursor import Cursor
from skillopt_es.adapters.harnesses.stream import read_stream
from skillopt_es.ports import AgentStep


def read(agent: Agent, *events: Event, structured: bool = False) -> Transcript:
    """What an agent makes of its events."""
    run = Run(
        model="m",
        access="edit",
        network=False,
        effort="",
        schema={"type": "object"} if structured else None,
        base_url="",
        has_key=False,
        workspace=Path("/w"),
        notes=Path("/nowhere"),
    )
    return agent.read(events, run)


def item(**fields: object) -> Event:
    """A finished item of Codex."""
    return {"type": "item.completed", "item": {"id": "item_1", **fields}}  # type: ignore[dict-item]


DONE: Event = {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}}


def test_codex_items_of_every_kind() -> None:
    """Commands with exit codes, changed files, tools, searches, thoughts and warnings."""
    found = read(
        Codex(),
        {"type": "thread.started", "thread_id": "t"},
        item(type="error", message="Model metadata not found."),
        item(type="reasoning", text="hm"),
        item(type="command_execution", command="ls x", aggregated_output="no x\n", exit_code=2, status="failed"),
        item(type="file_change", changes=[{"path": "a.py", "kind": "add"}], status="completed"),
        item(type="mcp_tool_call", server="s", tool="t", arguments={"a": 1}, status="failed"),
        item(type="web_search", query="q"),
        item(type="todo_list", items=[]),
        item(type="agent_message", text="nearly"),
        item(type="agent_message", text="done"),
        DONE,
    )
    assert found.answer == "done"
    assert found.session == "t"
    assert found.steps == (
        AgentStep(kind="error", text="Model metadata not found."),
        AgentStep(kind="reasoning", text="hm"),
        AgentStep(kind="command", text="ls x", output="no x\n", exit_code=2, ok=False),
        AgentStep(kind="file", text="add a.py", ok=True),
        AgentStep(kind="tool", text='s.t {"a": 1}', ok=False),
        AgentStep(kind="tool", text="web_search q"),
        AgentStep(kind="message", text="nearly"),
    )


def test_codex_recovers_from_reconnecting() -> None:
    """A notice is no failure once it goes on."""
    notice: Event = {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}
    assert read(Codex(), notice).complaint is not None
    assert read(Codex(), notice, item(type="agent_message", text="a")).complaint is None
    assert read(Codex(), notice, item(type="agent_message", text="a"), DONE).answer == "a"


def test_codex_has_no_answer_when_the_last_item_is_none() -> None:
    """A message before the last command is not the answer."""
    command = item(type="command_execution", command="ls", aggregated_output="", exit_code=0, status="completed")
    found = read(Codex(), item(type="agent_message", text="let me look"), command, DONE)
    assert (found.answer, found.finished) == (None, True)


def blocks(author: str, *content: dict[str, object]) -> Event:
    """A message of Claude's stream."""
    return {"type": author, "message": {"role": author, "content": list(content)}}  # type: ignore[dict-item]


def test_claude_tools_and_their_results() -> None:
    """A result joins its call by id; commands and changed files are told apart from other tools."""
    found = read(
        ClaudeCode(),
        {"type": "system", "subtype": "init", "model": "claude-x"},
        blocks("assistant", {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}),
        blocks(
            "assistant",
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "2", "name": "Edit", "input": {"file_path": "/w/a"}},
        ),
        blocks("user", {"type": "tool_result", "tool_use_id": "2", "content": "denied", "is_error": True}),
        blocks("user", {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "a"}]}),
        blocks("assistant", {"type": "text", "text": "done"}),
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "done",
            "usage": {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300},
        },
    )
    assert found.answer == "done"
    assert found.model == "claude-x"
    assert (found.usage.input, found.usage.cached, found.usage.output) == (321, 20, None)
    assert found.steps == (
        AgentStep(kind="reasoning", text="hm"),
        AgentStep(kind="message", text="I look."),
        AgentStep(kind="command", text="ls", output="a", ok=True),
        AgentStep(kind="file", text="Edit /w/a", output="denied", ok=False),
    )


def test_claude_structured_output_is_the_answer() -> None:
    """Where a schema was given and kept; else its words."""
    result: Event = {"type": "result", "subtype": "success", "is_error": False, "result": "words"}
    assert read(ClaudeCode(), {**result, "structured_output": {"a": 1}}, structured=True).answer == '{"a": 1}'
    assert read(ClaudeCode(), result, structured=True).answer == "words"
    assert read(ClaudeCode(), {**result, "structured_output": {"a": 1}}).answer == "words"


@pytest.mark.parametrize(
    "result",
    [
        {"subtype": "success", "is_error": True, "result": "Not logged in"},
        {"subtype": "error_during_execution", "is_error": False, "errors": ["Not logged in"]},
    ],
)
def test_claude_reports_its_errors_in_the_result(result: dict[str, object]) -> None:
    """What stands in `result` is then no answer."""
    found = read(ClaudeCode(), {"type": "result", **result})  # type: ignore[dict-item]
    assert found.answer is None
    assert found.complaint is not None
    assert found.complaint.message == "Not logged in"


def test_claude_goes_on_after_a_request_that_it_repeated() -> None:
    """Only one that nothing came after is a complaint; a result says more than any."""
    again: Event = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 401,
                    "error": "authentication_failed"}  # fmt: skip
    words: Event = {"type": "assistant", "message": {"content": [{"type": "text", "text": "on my way"}]}}
    complaint = read(ClaudeCode(), again).complaint
    assert complaint is not None
    assert (complaint.message, complaint.status) == ("HTTP 401 (authentication failed), try 1 of 10", 401)
    assert read(ClaudeCode(), again, words).complaint is None
    result: Event = {"type": "result", "subtype": "success", "is_error": False, "result": "words"}
    assert read(ClaudeCode(), again, result).answer == "words"


def cursor_call(name: str, args: dict[str, object], result: dict[str, object]) -> Event:
    """A finished call of Cursor's."""
    call = {f"{name}ToolCall": {"args": args, "result": result}}
    return {"type": "tool_call", "subtype": "completed", "call_id": "1", "tool_call": call}  # type: ignore[dict-item]


def test_cursor_calls() -> None:
    """Shell commands, changed files, other tools; a rejected call failed."""
    found = read(
        Cursor(),
        cursor_call("shell", {"command": "ls"}, {"success": {"stdout": "a", "exitCode": 0}}),
        cursor_call("write", {"path": "a"}, {"error": {"message": "denied"}}),
        cursor_call("grep", {"pattern": "x"}, {"rejected": {}}),
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "done"}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "done"},
    )
    assert found.answer == "done"
    assert [(step.kind, step.text, step.exit_code, step.ok) for step in found.steps] == [
        ("command", "ls", 0, True),
        ("file", "write a", None, False),
        ("tool", 'grep {"pattern": "x"}', None, False),
    ]
    failed = read(Cursor(), {"type": "result", "subtype": "error", "is_error": True, "result": "no"})
    assert failed.answer is None
    assert failed.complaint is not None


def test_copilot_takes_the_last_message_only() -> None:
    """What it thinks aloud between its tools is not part of the answer."""
    found = read(
        Copilot(),
        {"type": "assistant.message", "data": {"content": "I look.", "model": "gpt-x"}},
        {
            "type": "tool.execution_start",
            "data": {"toolCallId": "1", "toolName": "bash", "arguments": {"command": "ls"}},
        },
        {"type": "tool.execution_complete", "data": {"toolCallId": "1", "success": False, "error": {"message": "no"}}},
        {"type": "assistant.message", "data": {"content": "done", "model": "gpt-x"}},
        {"type": "result", "exitCode": 0, "sessionId": "s"},
    )
    assert (found.answer, found.model, found.session) == ("done", "gpt-x", "s")
    assert found.steps == (
        AgentStep(kind="message", text="I look."),
        AgentStep(kind="command", text="ls", output="no", ok=False),
    )
    assert found.usage.input is None


@pytest.mark.parametrize("agent", [Codex(), ClaudeCode(), Cursor(), Copilot()])
def test_events_of_any_shape_are_survived(agent: Agent) -> None:
    """Other versions print other things: what is not understood is passed over."""
    odd: list[Event] = [
        {},
        {"type": 7},
        {"type": "item.completed", "item": None},
        {"type": "item.completed", "item": {"type": "file_change", "changes": [None, {"path": 1}]}},
        {"type": "assistant", "message": {"content": "text"}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "9", "content": None}]}},
        {"type": "tool_call", "subtype": "completed", "tool_call": {"x": 1}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "9"}},
        {"type": "turn.completed", "usage": {"input_tokens": "many"}},
    ]
    assert read(agent, *odd).answer is None


def test_lines_that_are_no_events_are_kept_apart() -> None:
    """The first of them is shown when there is nothing else."""
    stream = read_stream(b'\xff{"a": 1}\n[1]\n{"type": "x"}\n\n{"type": "cut')
    assert stream.events == ({"type": "x"},)
    assert stream.garbage == '\ufffd{"a": 1}'


def test_a_long_output_keeps_its_head_and_tail() -> None:
    """And says how much is missing."""
    text = short("a" * 10_000 + "z" * 10_000)
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "[… 16000 characters cut …]" in text
    assert len(text) < MOST_OUTPUT + 50
