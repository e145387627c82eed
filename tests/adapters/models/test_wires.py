"""Every wire format against a loopback server: what is sent, and what each kind of reply comes to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import asdict, evolve
from support.chat import question, settings
from support.fake_time import FakeTime
from support.model_server import Answer, Handler, ModelServer
from support.params import each_of
from support.wires import FORMATS, STREAM, VERSION, Format, Said

from skillopt_es.adapters.models.http_model import Outside
from skillopt_es.adapters.models.redaction import REDACTED
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, Message, Tool, ToolCall, Usage

KEY = "sk-canary-0123456789abcdefWXYZ"
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = Tool("look_up", "Finds a word.", {"type": "object", "properties": {"word": {"type": "string"}}})
CALLS = (ToolCall("call_1", "look_up", '{"word": "é"}'), ToolCall("call_2", "look_up", '{"word": "b"}'))
SPOKEN = [pytest.param(each, id=name) for name, each in FORMATS.items()]
STREAMED = [pytest.param(False, id="whole"), pytest.param(True, id="streamed")]

Outcome = ChatReply | CallFailed


def ask(spoken: Format, handler: Handler, *requests: ChatRequest, **changes: Any) -> tuple[list[Outcome], ModelServer]:
    """What became of these calls, one after the other, through one adapter; no wait takes any time."""

    async def scenario() -> list[Outcome]:
        time = FakeTime()
        outside = Outside(clock=time.clock, sleep=time.sleep)
        given = settings(server.base_url, api_key_env="TEST_KEY")
        model = spoken.model(given, {"TEST_KEY": KEY}, outside, **changes)
        try:
            return [await outcome(model, request) for request in requests or (question(),)]
        finally:
            await model.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    with ModelServer(handler) as server:
        return asyncio.run(scenario()), server


async def outcome(model: Any, request: ChatRequest) -> Outcome:
    try:
        return await model.complete(request)  # type: ignore[no-any-return]
    except CallFailed as error:
        return error


def reply_of(spoken: Format, answer: Answer, request: ChatRequest | None = None, **changes: Any) -> ChatReply:
    [result], _ = ask(spoken, lambda _body, _headers: answer, request or question(), **changes)
    assert isinstance(result, ChatReply), result
    return result


def failure_of(spoken: Format, answer: Answer, **changes: Any) -> tuple[CallFailed, int]:
    [result], server = ask(spoken, lambda _body, _headers: answer, **changes)
    assert isinstance(result, CallFailed), result
    return result, len(server.requests)


def sent(spoken: Format, request: ChatRequest, **changes: Any) -> dict[str, Any]:
    """The body that asks this question."""
    _, server = ask(spoken, lambda _body, _headers: spoken.answer(Said()), request, **changes)
    body: dict[str, Any] = server.requests[0].body
    return body


# What is sent

MESSAGES = [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "2+2?"}]
BODIES: Mapping[str, Mapping[str, Any]] = {
    "openai": {"model": "small", "messages": MESSAGES, "max_completion_tokens": 64},
    "openai-responses": {
        "model": "small",
        "instructions": "Answer briefly.",
        "input": [{"role": "user", "content": "2+2?"}],
        "max_output_tokens": 64,
        "store": False,
    },
    "anthropic": {
        "model": "small",
        "system": "Answer briefly.",
        "messages": [{"role": "user", "content": "2+2?"}],
        "max_tokens": 64,
    },
    "qwen": {"model": "small", "messages": MESSAGES, "max_tokens": 64},
    "minimax": {"model": "small", "messages": MESSAGES, "max_completion_tokens": 64, "reasoning_split": True},
}
SAME_BODY = {
    "azure-classic": "openai",
    "azure-v1": "openai",
    "azure-classic-responses": "openai-responses",
    "azure-v1-responses": "openai-responses",
}


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_question_is_one_post_with_exactly_this_path_these_headers_and_this_body(spoken: Format) -> None:
    """Those of the provider's reference, and nothing else."""
    _, server = ask(spoken, lambda _body, _headers: spoken.answer(Said()))
    [received] = server.requests
    assert (received.method, received.path) == ("POST", spoken.path)
    assert received.body == BODIES[SAME_BODY.get(spoken.name, spoken.name)]
    headers = {k: v for k, v in received.headers.items() if k not in {"host", "content-length", "x-client-request-id"}}
    expected = {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "user-agent": "skillopt-es",
        spoken.key_header: f"Bearer {KEY}" if spoken.key_header == "authorization" else KEY,
    }
    if spoken.name == "anthropic":
        expected["anthropic-version"] = "2023-06-01"
    assert headers == expected


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.startswith("azure")])
def test_no_key_is_invented(name: str) -> None:
    """An endpoint without a key gets no header for one; Azure has no such endpoint."""
    spoken = FORMATS[name]
    _, server = ask(spoken, lambda _body, _headers: spoken.answer(Said()), api_key_env="")
    assert spoken.key_header not in server.requests[0].headers


OPTIONAL: Mapping[str, Mapping[str, Any]] = {
    "chat": {
        "temperature": 0.0,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "rollout", "strict": True, "schema": SCHEMA},
        },
    },
    "responses": {
        "temperature": 0.0,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "rollout", "strict": True, "schema": SCHEMA}},
    },
    "messages": {
        "temperature": 0.0,
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    },
}


def family(spoken: Format) -> str:
    if spoken.name == "anthropic":
        return "messages"
    return "responses" if spoken.name.endswith("responses") else "chat"


@pytest.mark.parametrize("spoken", SPOKEN)
def test_optional_fields_have_the_provider_s_names(spoken: Format) -> None:
    """Temperature, effort and schema are there when they are given."""
    plain, full = sent(spoken, question()), sent(spoken, question(temperature=0.0, effort="low", schema=SCHEMA))
    assert {name: value for name, value in full.items() if name not in plain} == OPTIONAL[family(spoken)]


@pytest.mark.parametrize("spoken", SPOKEN)
def test_extra_fields_go_into_the_body(spoken: Format) -> None:
    """Whatever a server knows beyond the reference."""
    assert sent(spoken, question(), extra_body={"top_k": 20})["top_k"] == 20


TALK = (
    Message("system", "Use the tool."),
    Message("user", "What are é and b?"),
    Message("assistant", "", tool_calls=CALLS),
    Message("tool", "a letter", tool_call_id="call_1"),
    Message("tool", "another", tool_call_id="call_2"),
)
TOOL_BODIES: Mapping[str, Mapping[str, Any]] = {
    "chat": {
        "messages": [
            {"role": "system", "content": "Use the tool."},
            {"role": "user", "content": "What are é and b?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": c.id, "type": "function", "function": {"name": "look_up", "arguments": c.arguments}}
                    for c in CALLS
                ],
            },
            {"role": "tool", "content": "a letter", "tool_call_id": "call_1"},
            {"role": "tool", "content": "another", "tool_call_id": "call_2"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "look_up", "description": "Finds a word.", "parameters": TOOL.parameters},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "look_up"}},
    },
    "responses": {
        "input": [
            {"role": "user", "content": "What are é and b?"},
            *({"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments} for c in CALLS),
            {"type": "function_call_output", "call_id": "call_1", "output": "a letter"},
            {"type": "function_call_output", "call_id": "call_2", "output": "another"},
        ],
        "tools": [
            {"type": "function", "name": "look_up", "description": "Finds a word.", "parameters": TOOL.parameters}
        ],
        "tool_choice": {"type": "function", "name": "look_up"},
    },
    "messages": {
        "messages": [
            {"role": "user", "content": "What are é and b?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in CALLS
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "a letter"},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": "another"},
                ],
            },
        ],
        "tools": [{"name": "look_up", "description": "Finds a word.", "input_schema": TOOL.parameters}],
        "tool_choice": {"type": "tool", "name": "look_up"},
    },
}


@pytest.mark.parametrize("spoken", SPOKEN)
def test_tools_and_their_results_are_sent_in_the_provider_s_shape(spoken: Format) -> None:
    """Two calls at once, their results, and a choice by name."""
    body = sent(spoken, question(messages=TALK, tools=(TOOL,), tool_choice="look_up"))
    expected = TOOL_BODIES[family(spoken)]
    assert {name: body[name] for name in expected} == expected


def test_neighbours_of_one_role_are_one_turn_for_anthropic() -> None:
    """Its turns alternate."""
    talk = (Message("user", "a"), Message("user", "b"), Message("assistant", "c"))
    assert sent(FORMATS["anthropic"], question(messages=talk))["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
    ]


THINKING = [
    ("qwen", {"thinking": "enabled"}, {"chat_template_kwargs": {"enable_thinking": True}}),
    ("qwen", {"thinking": "disabled"}, {"chat_template_kwargs": {"enable_thinking": False}}),
    ("minimax", {"thinking": "disabled"}, {"thinking": {"type": "disabled"}}),
    ("minimax", {"thinking": "adaptive"}, {"thinking": {"type": "adaptive"}}),
    ("minimax", {"thinking": "enabled", "model": "MiniMax-M2.7"}, {"thinking": {"type": "adaptive"}}),
    ("anthropic", {"thinking": "disabled"}, {"thinking": {"type": "disabled"}}),
    ("anthropic", {"thinking": "adaptive", "model": "claude-opus-4-7"}, {"thinking": {"type": "adaptive"}}),
    (
        "anthropic",
        {"thinking": "enabled", "model": "claude-sonnet-4-5-20250929"},
        {"thinking": {"type": "enabled", "budget_tokens": 4000}},
    ),
]


@pytest.mark.parametrize(("name", "changes", "expected"), THINKING)
def test_thinking_is_asked_for_in_the_dialect(name: str, changes: Mapping[str, Any], expected: Any) -> None:
    """And not mentioned when the server is to decide."""
    body = sent(FORMATS[name], question(max_tokens=8000), **changes)
    assert {field: body[field] for field in expected} == expected
    assert not set(expected) & set(sent(FORMATS[name], question(max_tokens=8000)))


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("claude-opus-4-6", "high", {"output_config": {"effort": "high"}}),
        ("claude-haiku-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-3-7-sonnet-latest", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ],
)
def test_an_effort_is_a_budget_for_older_generations(model: str, effort: str, expected: Any) -> None:
    """Before 4.6 a model thinks by a number of tokens."""
    body = sent(FORMATS["anthropic"], question(effort=effort, max_tokens=8000), model=model)
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == expected


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gpt-5-codex", "/v1/responses"),
        ("gpt-5.4-pro-2026-03-05", "/v1/responses"),
        ("gpt-5.4", "/v1/chat/completions"),
        ("gpt-5.4-prototype", "/v1/chat/completions"),
    ],
)
def test_models_of_the_responses_endpoint_are_asked_there(model: str, path: str) -> None:
    """Unless the protocol is given."""
    spoken = FORMATS["openai"]
    _, server = ask(spoken, lambda _body, _headers: spoken.answer(Said()), model=model)
    assert server.requests[0].path == path
    _, server = ask(spoken, lambda _body, _headers: spoken.answer(Said()), model=model, protocol="chat_completions")
    assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("base", "version", "path"),
    [
        ("/openai/v1", "", "/openai/v1/chat/completions"),
        ("/openai/", "preview", "/openai/v1/chat/completions?api-version=preview"),
        ("/gateway", "2024-10-21", "/gateway/openai/deployments/small/chat/completions?api-version=2024-10-21"),
    ],
)
def test_an_azure_address_may_have_more_or_less_of_its_path(base: str, version: str, path: str) -> None:
    """What people copy from the portal works."""
    with ModelServer(lambda _body, _headers: FORMATS["openai"].answer(Said())) as server:

        async def scenario() -> None:
            given = settings(server.base_url.removesuffix("/v1") + base, api_key_env="TEST_KEY", api_version=version)
            spoken = FORMATS["azure-v1"]
            model = spoken.open(evolve(given, backend="azure_openai"), {"TEST_KEY": KEY}, Outside())
            await model.complete(question())
            await model.aclose()

        asyncio.run(scenario())
        assert server.requests[0].path == path


# What comes back


@pytest.mark.parametrize("stream", STREAMED)
@pytest.mark.parametrize("spoken", SPOKEN)
def test_an_answer_is_read_whole(spoken: Format, stream: bool) -> None:
    """Text, model and counts; what a provider does not report stays unknown."""
    said = Said(text='é "quoted"\n🙂\u2028 end')
    reply = reply_of(spoken, spoken.answer(said, stream=stream), stream=stream)
    assert (reply.text, reply.finish, reply.model) == (said.text, "stop", "small-2026")
    assert reply.usage == Usage(input=11, output=5, cached=8, reasoning=2 if spoken.counts_reasoning else None)


@pytest.mark.parametrize("stream", STREAMED)
@pytest.mark.parametrize("spoken", SPOKEN)
def test_asked_for_tools_are_read(spoken: Format, stream: bool) -> None:
    """Two at once, without any text."""
    said = Said(text="", finish="tools", calls=CALLS)
    reply = reply_of(spoken, spoken.answer(said, stream=stream), stream=stream)
    assert reply.finish == "tools"
    assert [(c.id, c.name, json.loads(c.arguments)) for c in reply.tool_calls] == [
        (c.id, c.name, json.loads(c.arguments)) for c in CALLS
    ]


@pytest.mark.parametrize("stream", STREAMED)
@pytest.mark.parametrize("spoken", SPOKEN)
def test_no_text_of_a_reply_keeps_the_key(spoken: Format, stream: bool) -> None:
    """Neither what is said nor what names a tool's call, which both go to the log and to an agent behind a gateway."""
    call = ToolCall(f"call_{KEY}", f"look_{KEY}", json.dumps({"word": KEY}))
    said = Said(text=f"it is {KEY}", finish="tools", calls=(call,))
    reply = reply_of(spoken, spoken.answer(said, stream=stream), stream=stream)
    assert KEY not in str(asdict(reply))
    assert reply.text == f"it is {REDACTED}"
    assert [(c.id, c.name) for c in reply.tool_calls] == [(f"call_{REDACTED}", f"look_{REDACTED}")]
    assert json.loads(reply.tool_calls[0].arguments) == {"word": REDACTED}


@pytest.mark.parametrize("stream", STREAMED)
@pytest.mark.parametrize("spoken", SPOKEN)
def test_how_an_answer_ended_is_told_apart(spoken: Format, stream: bool) -> None:
    """Cut, refused and filtered answers are answers, and cost one request."""
    for finish, text in (("length", "ha"), ("refused", "I will not."), ("filtered", "")):
        said = Said(text=text, finish=finish)  # type: ignore[arg-type]
        [reply], server = ask(spoken, lambda _b, _h, said=said: spoken.answer(said, stream=stream), stream=stream)
        assert isinstance(reply, ChatReply)
        # Anthropic has one word for both.
        expected = "refused" if spoken.name == "anthropic" and finish == "filtered" else finish
        assert (reply.finish, reply.text, len(server.requests)) == (expected, text, 1)


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_stream_may_be_cut_anywhere_into_pieces(spoken: Format) -> None:
    """Byte by byte over a real connection; the server is asked for a stream."""
    said = Said(text="é🙂", finish="tools", calls=CALLS)
    answer = spoken.answer(said, stream=True, piece=1)
    [reply], server = ask(spoken, lambda _b, _h: answer, stream=True)
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.finish, len(reply.tool_calls)) == ("é🙂", "tools", 2)
    assert server.requests[0].headers["accept"] == "text/event-stream"
    assert server.requests[0].body["stream"] is True


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_stream_that_ends_early_is_no_answer(spoken: Format) -> None:
    """Wherever it ends before its last event: never a short success."""
    whole = spoken.answer(Said(), stream=True).body
    marks = [at for at in range(len(whole)) if whole[at : at + 2] == b"\n\n"]
    for end in (*marks[:-1], 40, len(whole) // 2):
        answer = Answer(raw=whole[:end], headers=STREAM)
        failed, made = failure_of(spoken, answer, stream=True, attempts=2)
        assert (failed.kind, made) == ("transport", 2), whole[:end]


@pytest.mark.parametrize("spoken", SPOKEN)
def test_an_endpoint_that_does_not_stream_is_understood(spoken: Format) -> None:
    """A gateway may answer in one piece whatever it is asked."""
    assert reply_of(spoken, spoken.answer(Said()), stream=True).text == "4"


STREAM_ERRORS = {
    "chat": b'data: {"error": {"message": "busy", "type": "overloaded_error"}}\n\n',
    "responses": b'event: error\ndata: {"type": "error", "code": "rate_limit_exceeded", "message": "busy"}\n\n',
    "messages": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n',
}


@pytest.mark.parametrize("spoken", SPOKEN)
def test_an_error_in_the_middle_of_a_stream_has_its_kind(spoken: Format) -> None:
    """The status said 200 long ago."""
    begun = spoken.answer(Said(), stream=True).body.split(b"\n\n")[:3]
    raw = b"\n\n".join([*begun, STREAM_ERRORS[family(spoken)]])
    failed, made = failure_of(spoken, Answer(raw=raw, headers=STREAM), stream=True, patience_seconds=0)
    assert (failed.kind, made) == ("rate_limit", 1)
    assert "busy" in failed.message


def test_a_failed_response_has_its_kind() -> None:
    """The Responses API answers 200 and says failed."""
    spoken = FORMATS["openai-responses"]
    body = {**spoken.writes(Said()), "status": "failed", "error": {"code": "server_error", "message": "oops"}}
    failed, made = failure_of(spoken, Answer(raw=json.dumps(body)), attempts=2)
    assert (failed.kind, made) == ("server", 2)
    assert "oops" in failed.message


# What goes wrong

ERRORS = [
    (400, "invalid_request_error", "a bad field", "config", 1),
    (401, "invalid_api_key", "who are you", "auth", 1),
    (403, "permission_error", "not you", "auth", 1),
    (402, "billing_error", "pay first", "quota", 1),
    (404, "model_not_found", "no such model", "config", 1),
    (413, "request_too_large", "too big", "context_length", 1),
    (400, "invalid_request_error", "prompt is too long: 9 > 8", "context_length", 1),
    (429, "rate_limit_error", "slow down", "rate_limit", 1),
    (500, "api_error", "oops", "server", 3),
    (503, "api_error", "down", "server", 3),
    (504, "timeout_error", "late", "server", 3),
    (529, "overloaded_error", "busy", "rate_limit", 1),
]


@each_of("spoken", SPOKEN)
@each_of(("status", "code", "message", "kind", "made"), ERRORS)
def test_each_error_has_its_kind_and_its_number_of_requests(
    spoken: Format, status: int, code: str, message: str, kind: str, made: int
) -> None:
    """In every provider's own words; the message reaches the user."""
    failed, requests = failure_of(spoken, spoken.refusal(status, code, message), attempts=3, patience_seconds=0)
    assert (failed.kind, failed.status, requests) == (kind, status, made)
    assert message in failed.message


@each_of("spoken", SPOKEN)
@each_of(
    ("answer", "kind"),
    [
        (Answer(cut=True), "transport"),
        (Answer(drop=True), "transport"),
        (Answer(raw="<html>a proxy's page</html>"), "transport"),
        (Answer(raw="{"), "transport"),
        (Answer(raw="[]"), "invalid_reply"),
        (Answer(raw="{}"), "empty"),
        (Answer(raw='{"choices": 5, "output": 5, "content": 5}'), "invalid_reply"),
        (Answer(raw='{"choices": [5], "output": [5], "content": [5], "status": "completed"}'), "empty"),
        (Answer(delay=30), "timeout"),
    ],
)
def test_what_is_no_answer_is_never_taken_for_one(spoken: Format, answer: Answer, kind: str) -> None:
    """Cut, garbage, of a strange shape, or late."""
    failed, _ = failure_of(spoken, answer, attempts=1, timeout_seconds=0.1 if answer.delay else 5)
    assert failed.kind == kind


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_refused_schema_is_left_out_and_that_is_recorded(spoken: Format) -> None:
    """The answer comes all the same, and the next question does not try again."""

    def handler(body: Any, _headers: Mapping[str, str]) -> Answer:
        if spoken.schema_field in body:
            words = {"text": "text.format", "output_config": "output_config.format: Extra inputs are not permitted"}
            return spoken.refusal(400, "unknown", words.get(spoken.schema_field, "response_format is not supported"))
        return spoken.answer(Said())

    asked = question(1, schema=SCHEMA), question(2, schema=SCHEMA)
    [first, second], server = ask(spoken, handler, *asked, attempts=1)
    assert isinstance(first, ChatReply)
    assert isinstance(second, ChatReply)
    assert [one.kind for one in first.tries] == ["downgrade"]
    assert second.tries == ()
    assert len(server.requests) == 3


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_field_that_is_not_taken_is_an_error_or_dropped_as_configured(spoken: Format) -> None:
    """By default an error with the setting's name; `drop` goes on without it and records that."""

    def handler(body: Any, _headers: Mapping[str, str]) -> Answer:
        if "temperature" in body:
            return spoken.refusal(400, "unsupported_value", "temperature is not supported with this model")
        return spoken.answer(Said())

    asked = question(temperature=0.0)
    [failed], _ = ask(spoken, handler, asked)
    assert isinstance(failed, CallFailed)
    assert (failed.kind, "model.temperature" in failed.hint) == ("config", True)
    [reply], _ = ask(spoken, handler, asked, unsupported_fields="drop")
    assert isinstance(reply, ChatReply)
    assert [(one.kind, one.status) for one in reply.tries] == [("downgrade", 400)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1002, "rate_limit"), (1004, "auth"), (2049, "auth"), (1008, "quota"), (1000, "server"), (2013, "config")],
)
def test_minimax_puts_its_errors_into_a_200(code: int, kind: str) -> None:
    """Beside a choice, and without one."""
    said = {"base_resp": {"status_code": code, "status_msg": "no"}}
    for body in ({**FORMATS["minimax"].writes(Said()), **said}, {"choices": None, **said}):
        failed, _ = failure_of(FORMATS["minimax"], Answer(raw=json.dumps(body)), attempts=1, patience_seconds=0)
        assert failed.kind == kind


@pytest.mark.parametrize("name", ["qwen", "minimax"])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>2 and 2</think>\n\n4", "4"),
        ("2 and 2</think>4", "4"),
        ("4", "4"),
        ("use <think> tags </think>", "use <think> tags </think>"),
    ],
)
def test_thoughts_in_front_of_an_answer_are_not_part_of_it(name: str, text: str, answer: str) -> None:
    """Servers without a reasoning parser leave them there."""
    assert reply_of(FORMATS[name], FORMATS[name].answer(Said(text=text))).text == answer
    assert reply_of(FORMATS["openai"], FORMATS["openai"].answer(Said(text=text))).text == text


def test_a_content_filter_of_azure_is_an_answer() -> None:
    """The prompt is refused for good; the run is not."""
    body = {"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}, "message": "x"}}
    for name in ("azure-classic", "azure-v1-responses"):
        assert reply_of(FORMATS[name], Answer(status=400, raw=json.dumps(body))).finish == "filtered"


@pytest.mark.parametrize("spoken", SPOKEN)
def test_a_key_that_is_echoed_is_shown_nowhere(spoken: Format) -> None:
    """Neither in errors nor in answers."""
    failed, _ = failure_of(spoken, spoken.refusal(401, "invalid_api_key", f"bad key {KEY}"))
    assert KEY not in f"{failed!r} {failed.hint} {failed.tries} {vars(failed)}"
    assert KEY not in reply_of(spoken, spoken.answer(Said(text=f"it is {KEY}"))).text


def test_every_api_version_in_use_is_named_in_an_identity() -> None:
    """Another version may answer otherwise."""
    given = settings("https://x.openai.azure.com/v1", api_key_env="TEST_KEY")
    model = FORMATS["azure-classic"].model(given, {"TEST_KEY": KEY})
    assert model.identity == f"azure-openai https://x.openai.azure.com small api_version={VERSION}"
