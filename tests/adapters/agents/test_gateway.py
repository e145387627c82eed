"""The gateway: whose calls are whose, what an agent is told, and what ends an attempt without a result."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import define, evolve, field
from support.agents import all_gone
from support.chat import question, settings
from support.ready import PATIENCE

from skillopt_es.adapters.agents import command, python_code
from skillopt_es.adapters.agents.gateway import GatewayAgent, with_gateway
from skillopt_es.adapters.models import simulated
from skillopt_es.errors import BackendError
from skillopt_es.ports import (
    AgentSettings,
    AgentStep,
    CallFailed,
    ChatReply,
    ChatRequest,
    Message,
    NotStarted,
    OwnCalls,
    ToolCall,
    Usage,
)

OWN = AgentSettings(command="", access="read", network=False, env=(), processes=4)
QUESTION = question(messages=(Message("user", "Tea?"),))
LOOKS = ToolCall("c1", "search", '{"for": "tea"}')


@define
class Shop:
    """The run's calls: a model that looks once and then answers; what it was asked, and what it raises instead."""

    raises: BaseException | None = None
    delay: float = 0.0
    begun: Path | None = None
    asked: list[ChatRequest] = field(factory=list)
    ended: int = 0
    over_with: list[str] = field(factory=list)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """A tool, then the answer."""
        self.asked.append(request)
        if self.begun is not None:
            self.begun.touch()
        await asyncio.sleep(self.delay)
        self.ended += 1
        if self.raises is not None:
            raise self.raises
        if request.tools and request.messages[-1].role != "tool":
            return ChatReply(text="", finish="tools", tool_calls=(LOOKS,), usage=Usage(input=5, output=2))
        return ChatReply(text="green", finish="stop", usage=Usage(input=9, output=1))

    def over(self, slot: str, *, lost: bool = False) -> None:
        """An attempt has ended."""
        self.over_with.append(slot)


def agent(folder: Path, code: str, shop: OwnCalls, **changes: object) -> GatewayAgent:
    """An agent in a file, behind a gateway to the shop."""
    (folder / "mine.py").write_text("import json, httpx\n" + code)
    given = settings("", backend="python:mine.py:answer", agent=evolve(OWN, folder=str(folder)), **changes)
    made = with_gateway(python_code.open_model, simulated.open_model, "simulated", given, {})
    assert isinstance(made, GatewayAgent)
    made.route(shop)
    return made


def asked(made: GatewayAgent) -> ChatReply:
    """The answer of one attempt."""

    async def once() -> ChatReply:
        try:
            return await made.complete(QUESTION)
        finally:
            await made.aclose()

    return asyncio.run(once())


CALLS = """
TOOL = {"type": "function", "function": {"name": "search", "parameters": {}}}

def call(task, **body):
    headers = {"Authorization": f"Bearer {task.gateway.api_key}"}
    with httpx.Client(trust_env=False, timeout=60) as client:
        whole = {"model": task.gateway.model, **body}
        return client.post(f"{task.gateway.base_url}/chat/completions", json=whole, headers=headers)

def answer(task):
    talk = [{"role": "user", "content": task.task}]
    said = call(task, messages=talk, tools=[TOOL]).json()["choices"][0]["message"]
    talk += [said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "2 hits"}]
    last = call(task, messages=talk, tools=[TOOL]).json()
    assert last["usage"]["total_tokens"] == 10, last
    return {"answer": last["choices"][0]["message"]["content"], "usage": {"input": 999}}
"""


def test_calls_of_an_agent_are_the_runs_and_tell_what_it_did(tmp_path: Path) -> None:
    """At its attempt's place; the attempt itself spends nothing, and its steps are read from the conversation."""
    shop = Shop()
    made = agent(tmp_path, CALLS, shop)
    reply = asked(made)
    assert reply.text == "green"
    assert reply.steps == (AgentStep(kind="tool", text='search {"for": "tea"}', output="2 hits"),)
    assert reply.usage == Usage(input=0, output=0, cached=0, reasoning=0)
    assert [request.slot for request in shop.asked] == [QUESTION.slot] * 2
    assert shop.over_with == [QUESTION.slot]
    assert "via" in made.identity
    assert made.upstream.identity in made.identity


def test_steps_that_an_agent_reports_come_first(tmp_path: Path) -> None:
    """It knows better what it did."""
    code = CALLS + '\ntalked = answer\ndef answer(task): return {**talked(task), "steps": ["I looked."], "score": 1}\n'
    assert [step.kind for step in asked(agent(tmp_path, code, Shop())).steps] == ["message", "score"]


STREAMS = (
    CALLS
    + """
def answer(task):
    said = call(task, messages=[{"role": "user", "content": "x"}], stream=True, stream_options={"include_usage": True})
    assert said.headers["content-type"].startswith("text/event-stream"), said.headers
    pieces = [json.loads(line[6:]) for line in said.text.splitlines() if line.startswith("data: {")]
    assert said.text.endswith("data: [DONE]\\n\\n"), said.text
    assert pieces[-1]["usage"]["total_tokens"] == 10, pieces
    return "".join(each["delta"].get("content") or "" for piece in pieces for each in piece["choices"])
"""
)


def test_an_answer_may_be_streamed(tmp_path: Path) -> None:
    """In one piece: it is journaled before anybody sees it."""
    assert asked(agent(tmp_path, STREAMS, Shop())).text == "green"


TRIES = """
def answer(task):
    said = []
    with httpx.Client(trust_env=False, base_url=task.gateway.base_url.removesuffix("/v1")) as client:
        good = {"Authorization": f"Bearer {task.gateway.api_key}"}
        for method, path, headers in (
            ("GET", "/v1/models", {}),
            ("GET", "/v1/models", {"Authorization": "Bearer sk-made-up"}),
            ("GET", "/v1/models", good),
            ("POST", "/v1/responses", good),
        ):
            reply = client.request(method, path, headers=headers)
            said.append([reply.status_code, reply.json()])
    return json.dumps(said)
"""


def test_a_key_or_a_path_that_is_unknown_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """In the form that OpenAI's libraries show."""
    without, made_up, models, elsewhere = json.loads(asked(agent(tmp_path, TRIES, Shop())).text)
    for status, body in (without, made_up):
        assert (status, "no attempt that is under way" in body["error"]["message"]) == (401, True)
    assert (models[0], models[1]["data"][0]["id"]) == (200, "small")
    assert (elsewhere[0], "POST /v1/chat/completions" in elsewhere[1]["error"]["message"]) == (404, True)


def test_a_key_is_worth_nothing_after_its_attempt(tmp_path: Path) -> None:
    """Also while another attempt is under way."""
    code = "def answer(task): return f'{task.gateway.base_url} {task.gateway.api_key}'"

    async def later() -> int:
        made = agent(tmp_path, code, Shop())
        url, key = (await made.complete(QUESTION)).text.split()
        async with httpx.AsyncClient(trust_env=False) as client:
            reply = await client.get(f"{url}/models", headers={"Authorization": f"Bearer {key}"})
        await made.aclose()
        return reply.status_code

    assert asyncio.run(later()) == 401


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (CallFailed("bad_request", "no such field"), 400),
        (CallFailed("rate_limit", "too many"), 429),
        (CallFailed("timeout", "late"), 504),
        (CallFailed("server", "broken"), 502),
    ],
)
def test_a_call_that_failed_is_the_agents_to_deal_with(failure: CallFailed, status: int, tmp_path: Path) -> None:
    """It is told what happened, and that asking again at once is no use."""
    code = (
        CALLS
        + """
def answer(task):
    reply = call(task, messages=[{"role": "user", "content": "x"}])
    return f"{reply.status_code} {reply.headers['x-should-retry']} {reply.json()['error']['message']}"
"""
    )
    assert asked(agent(tmp_path, code, Shop(raises=failure))).text == f"{status} false {failure.message}"


def test_an_agent_that_crashes_over_a_call_is_not_alone_in_it(tmp_path: Path) -> None:
    """Its own words seldom say what was wrong with the model."""
    code = CALLS + "\ndef answer(task): call(task, messages=[{'role': 'user', 'content': 'x'}]).raise_for_status()\n"
    with pytest.raises(CallFailed) as crash:
        asked(agent(tmp_path, code, Shop(raises=CallFailed("server", "nobody is there"))))
    assert crash.value.kind == "crash"
    assert crash.value.message.endswith("; a call of small had failed: nobody is there")


PAUSES: list[Callable[[], BaseException]] = [NotStarted, lambda: BackendError("the key is refused", kind="auth")]


@pytest.mark.parametrize("pause", PAUSES)
def test_a_call_that_cannot_be_made_ends_the_attempt_without_a_result(
    pause: Callable[[], BaseException], tmp_path: Path
) -> None:
    """Whatever the agent would make of it: that is the run's affair, and no score."""
    error = pause()
    code = (
        CALLS + "\ndef answer(task):\n    call(task, messages=[{'role': 'user', 'content': 'x'}])\n    return 'sorry'\n"
    )
    with pytest.raises(type(error)):
        asked(agent(tmp_path, code, Shop(raises=error)))


def test_a_program_is_killed_when_a_call_cannot_be_made(tmp_path: Path) -> None:
    """It would go on for nothing."""
    (tmp_path / "agent.py").write_text(
        "import fcntl, os, time, urllib.request as web\n"
        "held = open('held', 'w')\n"
        "fcntl.flock(held, fcntl.LOCK_EX)\n"
        "asked = web.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', "
        'b\'{"messages": [{"role": "user", "content": "x"}]}\', '
        "{'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']})\n"
        "try: web.build_opener(web.ProxyHandler({})).open(asked)\n"
        f"finally: time.sleep({2 * PATIENCE})\n"
    )
    agent = evolve(OWN, folder=str(tmp_path), argv=(sys.executable, "agent.py"))
    given = settings("", backend="command", agent=agent, timeout_seconds=2 * PATIENCE)
    made: Any = with_gateway(command.open_model, simulated.open_model, "simulated", given, {})
    made.route(Shop(raises=NotStarted()))
    with pytest.raises(NotStarted):
        asked(made)
    assert all_gone(tmp_path / "held")


def test_a_call_that_has_begun_ends_before_its_attempt_does(tmp_path: Path) -> None:
    """Also when its agent does not wait for it: it is paid for, and must be journaled."""
    shop = Shop(delay=0.2, begun=tmp_path / "begun")
    code = (
        CALLS
        + f"""
import threading, time
from pathlib import Path

def answer(task):
    asked = dict(messages=[{{"role": "user", "content": "x"}}])
    threading.Thread(target=call, args=(task,), kwargs=asked, daemon=True).start()
    while not Path({str(tmp_path / "begun")!r}).exists():
        time.sleep(0.005)
    return "done"
"""
    )
    assert asked(agent(tmp_path, code, shop)).text == "done"
    assert shop.ended == 1


def test_a_crash_that_the_function_raises_itself_loses_its_keys_and_says_whether_it_asked(tmp_path: Path) -> None:
    """In its message and its tries; the call that it made says what it took."""
    code = (
        CALLS
        + """
from skillopt_es.ports import CallFailed

def answer(task):
    call(task, messages=[{"role": "user", "content": "x"}])
    raise CallFailed("crash", "refused for sk-named-by-the-config")
"""
    )
    made = agent(tmp_path, code, Shop(), attempts=1)
    made = evolve(made, agent=evolve(made.agent, secrets=("sk-named-by-the-config",)))
    made.route(Shop())
    with pytest.raises(CallFailed) as crash:
        asked(made)
    [only] = crash.value.tries
    assert crash.value.message == only.message == "refused for [redacted]"
    assert only.own_calls
    assert only.usage == Usage(input=0, output=0, cached=0, reasoning=0)
