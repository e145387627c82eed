"""A target that asks for tools before it answers: both turns are in the journal, whatever comes between."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.model_server import ModelServer
from support.project import told
from support.scripted import (
    NOON,
    ScriptedEnvironment,
    ScriptedItem,
    ScriptedModel,
    ScriptedWorld,
    config,
    here,
    target_reply,
)
from support.wires import FORMATS, Said

from skillopt_es.errors import Interrupted
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import (
    Ask,
    ChatReply,
    ChatRequest,
    Episode,
    Item,
    Message,
    Tool,
    ToolCall,
    TrajectoryRecord,
)
from skillopt_es.sessions.opening import open_model
from skillopt_es.sessions.session import resume, start
from skillopt_es.sessions.wiring import Session, World

TOOL = Tool("kind_of", "Says of which kind an item is.", {"type": "object", "properties": {"id": {"type": "string"}}})


class ToolEnvironment(ScriptedEnvironment):
    """The target is not told an item's kind: it has to ask for it."""

    requires = frozenset({"text", "tools"})

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Two turns."""
        assert isinstance(item, ScriptedItem)
        talk = [Message("system", f"## Skill\n{skill.text}"), Message("user", f"id: {item.id}")]
        first = await ask(talk, tools=[TOOL], tool_choice="required")
        assert first.finish == "tools"
        [call] = first.tool_calls
        assert json.loads(call.arguments) == {"id": item.id}
        talk += [
            Message("assistant", first.text, tool_calls=first.tool_calls),
            Message("tool", f"kind: {item.task_type}", tool_call_id=call.id),
        ]
        reply = await ask(talk, tools=[TOOL])
        right = reply.text == "right"
        records = (
            TrajectoryRecord("reply", first.text),
            TrajectoryRecord("tool", call.arguments),
            TrajectoryRecord("reply", reply.text),
            TrajectoryRecord("feedback", f"kind: {item.task_type}, wanted: right, got: {reply.text}"),
        )
        return Episode(outcome=Measured(float(right), float(right)), task=f"id: {item.id}", records=records, turns=2)


def answer(request: ChatRequest) -> ChatReply | str:
    """First the tool, then what it said."""
    if request.messages[-1].role == "tool":
        return target_reply(request)
    said = request.messages[-1].content.removeprefix("id: ")
    call = ToolCall(f"call-{said}", "kind_of", json.dumps({"id": said}))
    return ChatReply(text="let me see", finish="tools", tool_calls=(call,))


def world() -> ScriptedWorld:
    return ScriptedWorld(environment=ToolEnvironment(), target=Tooled("scripted target", answer))


class Tooled(ScriptedModel):
    """A scripted model that can use tools."""

    provides = frozenset({"text", "messages", "tools"})


def test_a_run_that_is_resumed_asks_no_tool_question_again(tmp_path: Path) -> None:
    """Stopped after some calls and resumed: the same decisions, and no call made twice."""
    whole = world()
    asyncio.run(start(config(tmp_path / "a"), tmp_path / "a" / "run", whole.session()))
    parts = world()
    stopping = parts.session(stopping=lambda: parts.calls >= 30)
    with pytest.raises(Interrupted):
        asyncio.run(start(config(tmp_path / "b"), tmp_path / "b" / "run", stopping))
    assert parts.calls < whole.calls
    asyncio.run(resume(tmp_path / "b" / "run", parts.session()))
    assert told(tmp_path / "b" / "run") == told(tmp_path / "a" / "run")
    assert sorted(parts.target.asked) == sorted(whole.target.asked)


def test_tools_travel_over_a_wire(tmp_path: Path) -> None:
    """The same run over Chat Completions; the recorded answers hold what was asked for."""
    spoken = FORMATS["openai"]

    def handler(body: Any, _headers: Any) -> Any:
        request = spoken.reads(body)
        if "tools" not in body:
            return spoken.answer(Said(text='{"edits": []}'))
        said = answer(request)
        if isinstance(said, str):
            return spoken.answer(Said(text=said))
        return spoken.answer(Said(text=said.text, finish="tools", calls=said.tool_calls))

    with ModelServer(handler) as server:
        given = config(tmp_path, ["model.backend=openai", f"model.base_url={server.base_url}", "train.num_epochs=1"])
        made = World(
            model=lambda given, role: open_model(given, role, {}),
            environment=lambda _: ToolEnvironment(),
            executor=here,
        )
        asyncio.run(start(given, tmp_path / "run", Session(now=lambda: NOON, clock=lambda: 0.0, world=made)))
    with EventLog.open(tmp_path / "run") as log:
        finishes = [str(row[0]) for row in log.reader.rows("select finish from log_calls where role = 'target'")]
    assert set(finishes) == {"tools", "stop"}
    assert finishes.count("tools") == finishes.count("stop") > 20
