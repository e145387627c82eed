"""The Chat Completions adapter against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import logging
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from support.chat import open_chat, question, settings
from support.fake_time import FakeTime
from support.model_server import Answer, Handler, ModelServer

from skillopt_es.adapters.models.chat_completions import ChatWire, parse_reply
from skillopt_es.adapters.models.endpoint import open_endpoint
from skillopt_es.adapters.models.http_model import HttpModel
from skillopt_es.adapters.models.openai import open_model
from skillopt_es.errors import ConfigError
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, Message, Try, Usage

KEY = "sk-canary-0123456789abcdefWXYZ"
ENVIRON = {"TEST_KEY": KEY}
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}

Outcome = ChatReply | CallFailed


def ask_all(
    server: ModelServer, requests: Sequence[ChatRequest], *, time: FakeTime | None = None, **changes: Any
) -> list[Outcome]:
    """What became of these calls, all started at once, through one adapter."""

    async def scenario() -> list[Outcome]:
        clock = time or FakeTime()
        model = open_chat(
            settings(server.base_url, **{"api_key_env": "TEST_KEY", **changes}),
            ENVIRON,
            clock=clock.clock,
            sleep=clock.sleep,
        )
        try:
            return list(await asyncio.gather(*(outcome(model, request) for request in requests)))
        finally:
            await model.aclose()

    return asyncio.run(scenario())


async def outcome(model: HttpModel, request: ChatRequest) -> Outcome:
    try:
        return await model.complete(request)
    except CallFailed as error:
        return error


def ask(handler: Handler, request: ChatRequest | None = None, **changes: Any) -> tuple[Outcome, ModelServer]:
    """What became of one call, and the server that saw it."""
    with ModelServer(handler) as server:
        [result] = ask_all(server, [request or question()], **changes)
    return result, server


def reply_to(answer: Answer, **changes: Any) -> ChatReply:
    result, _ = ask(lambda _body, _headers: answer, **changes)
    assert isinstance(result, ChatReply), result
    return result


def failure_of(answer: Answer, **changes: Any) -> tuple[CallFailed, int]:
    result, server = ask(lambda _body, _headers: answer, **changes)
    assert isinstance(result, CallFailed), result
    return result, len(server.requests)


# What is sent


def test_a_call_is_one_post_with_exactly_these_headers_and_this_body() -> None:
    """Method, path, headers and body are those of the wire reference, and nothing else."""
    result, server = ask(lambda _body, _headers: Answer(text="4"))
    assert isinstance(result, ChatReply)
    [received] = server.requests
    assert (received.method, received.path) == ("POST", "/v1/chat/completions")
    assert received.body == {
        "model": "small",
        "messages": [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "2+2?"}],
        "max_completion_tokens": 64,
    }
    headers = dict(received.headers)
    assert headers.pop("host") == server.base_url.removeprefix("http://").removesuffix("/v1")
    assert int(headers.pop("content-length")) > 0
    assert headers == {
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "authorization": f"Bearer {KEY}",
        "content-type": "application/json",
        "user-agent": "skillopt-es",
        "x-client-request-id": hashlib.sha256(b"rollout/e1/s1/b0/item-1").hexdigest()[:16],
    }


def test_no_authorization_is_sent_without_a_key() -> None:
    """A local server gets no invented key."""
    result, server = ask(lambda _body, _headers: Answer(), api_key_env="")
    assert isinstance(result, ChatReply)
    assert "authorization" not in server.requests[0].headers


def test_a_base_url_may_end_with_a_slash() -> None:
    """The path has no double slash."""
    with ModelServer() as server:

        async def scenario() -> None:
            model = open_model(settings(server.base_url + "/"), {})
            await model.complete(question())
            await model.aclose()

        asyncio.run(scenario())
        assert server.requests[0].path == "/v1/chat/completions"


def test_optional_fields_are_sent_only_when_given() -> None:
    """Temperature, effort and schema appear under their wire names; the token field is configured."""
    asked = question(temperature=0.0, effort="low", schema=SCHEMA)
    body = ChatWire(model="small", token_field="max_tokens").body(asked)
    assert body["temperature"] == 0.0
    assert body["reasoning_effort"] == "low"
    assert body["max_tokens"] == 64
    assert "max_completion_tokens" not in body
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "rollout", "strict": True, "schema": SCHEMA},
    }


def test_a_schema_is_not_sent_when_structured_output_is_off() -> None:
    """The setting wins over the request."""
    assert "response_format" not in ChatWire(model="small", schemas=False).body(question(schema=SCHEMA))


def test_extra_fields_and_headers_are_merged() -> None:
    """What a dialect needs is added as it is configured."""
    result, server = ask(lambda _body, _headers: Answer(), extra_body={"top_k": 20}, extra_headers={"X-Team": "skills"})
    assert isinstance(result, ChatReply)
    assert server.requests[0].body["top_k"] == 20
    assert server.requests[0].headers["x-team"] == "skills"


def test_any_text_survives_the_wire() -> None:
    """Emoji, newlines and quotes arrive as they were."""
    text = 'é "quoted" \n\t 🙂 \u2028 end'

    def echo(body: Any, _headers: Mapping[str, str]) -> Answer:
        return Answer(text=body["messages"][0]["content"])

    result, _ = ask(echo, question(messages=(Message("user", text),)))
    assert isinstance(result, ChatReply)
    assert result.text == text


def test_half_a_surrogate_never_leaves_the_adapter() -> None:
    """JSON can spell it, no database can hold it: in answers, names and errors it becomes a replacement."""
    reply = reply_to(Answer(raw=json.dumps({"model": "m\ud800", "choices": [{"message": {"content": "a\ud800b"}}]})))
    failed, _ = failure_of(Answer(status=400, error="bad\udfff"))
    assert f"{reply.text} {reply.model} {failed.message} {failed.tries[0].message}".encode()


# What comes back


def test_a_reply_is_read_whole() -> None:
    """Text, finish, usage with its details, model and request id."""
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    reply = reply_to(Answer(text="4", usage=usage, headers={"X-Request-Id": "req_7"}))
    assert (reply.text, reply.finish, reply.model, reply.request_id) == ("4", "stop", "small-2026", "req_7")
    assert reply.usage == Usage(input=11, output=5, cached=8, reasoning=2)
    assert reply.tries == ()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"prompt_tokens": 0, "completion_tokens": 3}, Usage(input=0, output=3)),
        ({"prompt_tokens": None, "completion_tokens": "3"}, Usage()),
        ({"prompt_tokens": 4, "prompt_tokens_details": None}, Usage(input=4)),
        ({"prompt_tokens": True, "completion_tokens": -1}, Usage()),
    ],
)
def test_unreported_usage_stays_unknown(usage: dict[str, Any] | None, expected: Usage) -> None:
    """None is not zero: a cost can then say that it is incomplete."""
    assert reply_to(Answer(usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("answer", "finish", "text"),
    [
        (Answer(text="a", finish="stop"), "stop", "a"),
        (Answer(text="a", finish="length"), "length", "a"),
        (Answer(text=None, finish="length"), "length", ""),
        (Answer(text=None, finish="content_filter"), "filtered", ""),
        (Answer(text=None, refusal="I will not."), "refused", "I will not."),
        (Answer(text="a", finish="tool_calls"), "other", "a"),
        (Answer(text="a", finish=None), "other", "a"),
        (Answer(status=400, error={"code": "content_filter", "message": "blocked"}), "filtered", ""),
    ],
)
def test_how_a_reply_ended_is_told_apart(answer: Answer, finish: str, text: str) -> None:
    """Cut, filtered and refused answers are answers, and cost one request."""
    result, server = ask(lambda _body, _headers: answer)
    assert isinstance(result, ChatReply)
    assert (result.finish, result.text, len(server.requests)) == (finish, text, 1)


def test_a_compressed_reply_is_read() -> None:
    """gzip is asked for, so it is understood."""
    packed = gzip.compress(Answer(text="packed").body)
    assert reply_to(Answer(raw=packed, headers={"Content-Encoding": "gzip"})).text == "packed"


def test_content_in_parts_is_joined() -> None:
    """Some gateways send a list of parts."""
    message = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    raw = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert reply_to(Answer(raw=raw)).text == "ab"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "transport"),
        (b"<html>", "transport"),
        (b'{"choices": [{"mess', "transport"),
        (b"\xff\xfe\xfd", "transport"),
        (b"[" * 100_000, "transport"),
        (b"[]", "invalid_reply"),
        (b'"text"', "invalid_reply"),
        (b'{"choices": 5}', "invalid_reply"),
        (b"{}", "empty"),
        (b'{"choices": []}', "empty"),
        (b'{"choices": [null]}', "empty"),
        (b'{"choices": [{"message": null}]}', "empty"),
        (b'{"choices": [{"message": {"content": 5}}]}', "empty"),
        (b'{"choices": [{"message": {"content": "  "}}]}', "empty"),
        (b'{"error": {"code": 429, "message": "upstream is busy"}}', "rate_limit"),
        (b'{"error": {"code": "oops", "message": "no"}}', "server"),
        (b'{"choices": [{"error": {"code": 502, "message": "no"}, "message": {"content": "half"}}]}', "server"),
    ],
)
def test_a_strange_200_is_a_failure_of_some_kind(body: bytes, kind: str) -> None:
    """Nothing is raised, nothing is taken for an answer."""
    result = parse_reply(200, {}, body)
    assert not isinstance(result, ChatReply)
    assert result.kind == kind


# What goes wrong


def error(code: str = "", message: str = "no", kind: str = "", param: str = "") -> dict[str, str]:
    return {"message": message, "code": code, "type": kind, "param": param}


@pytest.mark.parametrize(
    ("answer", "kind", "requests"),
    [
        (Answer(status=400, error=error("unsupported_parameter")), "config", 1),
        (Answer(status=404, error=error("model_not_found")), "config", 1),
        (Answer(status=404, error=error("DeploymentNotFound")), "config", 1),
        (Answer(status=404, raw="not here"), "config", 1),
        (Answer(status=422, raw='{"detail": [{"msg": "field required"}]}'), "config", 1),
        (Answer(status=307, headers={"Location": "http://127.0.0.1:9/"}), "config", 1),
        (Answer(status=401, error=error("invalid_api_key")), "auth", 1),
        (Answer(status=403, error=error(kind="permission_error")), "auth", 1),
        (Answer(status=402, error=error()), "quota", 1),
        (Answer(status=429, error=error("insufficient_quota")), "quota", 1),
        (Answer(status=429, error=error(kind="insufficient_quota")), "quota", 1),
        (Answer(status=403, error=error("billing_not_active")), "quota", 1),
        (Answer(status=503, raw=""), "server", 4),
        (Answer(status=500, error="oops"), "server", 4),
        (Answer(status=502, raw="<html>bad gateway</html>"), "server", 4),
        (Answer(status=504), "server", 4),
        (Answer(status=408), "server", 4),
        (Answer(status=409), "server", 4),
        (Answer(status=424), "server", 4),
        (Answer(status=413), "context_length", 1),
        (Answer(status=400, error=error("context_length_exceeded")), "context_length", 1),
        (Answer(status=400, error="This model's maximum context length is 4096 tokens."), "context_length", 1),
        (Answer(cut=True), "transport", 4),
        (Answer(drop=True), "transport", 4),
        (Answer(raw="<html>a proxy's page</html>"), "transport", 4),
        (Answer(raw='{"choices": [{"message": {"content": "ha'), "transport", 4),
        (Answer(raw=b"no gzip", headers={"Content-Encoding": "gzip"}), "transport", 4),
        (Answer(choices=False), "empty", 3),
        (Answer(text=None), "empty", 3),
        (Answer(raw="[]"), "invalid_reply", 1),
    ],
)
def test_each_error_has_its_kind_and_its_number_of_requests(answer: Answer, kind: str, requests: int) -> None:
    """The taxonomy, counted by the server; every request is listed as a try."""
    failed, made = failure_of(answer)
    assert (failed.kind, made, len(failed.tries)) == (kind, requests, requests)
    assert failed.systemic == (kind in {"config", "auth", "quota"})
    assert failed.status == (None if answer.cut or answer.drop or answer.raw == b"no gzip" else answer.status)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=429, error=error("rate_limit_exceeded")),
        Answer(status=529, error=error(kind="overloaded_error")),
        Answer(status=503, error=error("slow_down")),
    ],
)
def test_who_is_only_put_off_comes_again_while_there_is_patience(answer: Answer) -> None:
    """More often than `attempts`; when nobody has been answered all the while, every later call would fail, too."""
    failed, made = failure_of(answer)
    assert (failed.kind, failed.status, failed.systemic) == ("rate_limit", answer.status, True)
    assert made == len(failed.tries) > 30
    assert sum(one.waited_ms for one in failed.tries) < 900_000


def test_a_reply_without_a_word_says_what_it_used() -> None:
    """It was paid for: each of the tries has its tokens, none of them is the answer's."""
    failed, _ = failure_of(Answer(text=None))
    assert [one.usage for one in failed.tries] == [Usage(input=7, output=3)] * 3
    refused, _ = failure_of(Answer(status=429, error=error()))
    assert {one.usage for one in refused.tries} == {Usage()}


def test_an_endpoint_s_own_words_reach_the_user() -> None:
    """Message, code, status and request id are part of the error."""
    answer = Answer(status=400, error=error("bad_thing", "the thing is bad"), headers={"X-Request-Id": "req_9"})
    failed, _ = failure_of(answer)
    assert failed.message == "HTTP 400: the thing is bad (bad_thing)"
    assert (failed.status, failed.request_id) == (400, "req_9")


def test_a_long_error_page_is_shortened() -> None:
    """A megabyte of HTML is not a message."""
    failed, _ = failure_of(Answer(status=404, raw="<p>sorry</p>" * 100_000))
    assert len(failed.message) <= 500


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            '{"fault": {"text": "no tokens left", "code": 7}}',
            'HTTP 400: {"fault": {"text": "no tokens left", "code": 7}}',
        ),
        ('[{"errors": ["so", "so"]}]', 'HTTP 400: {"errors": ["so", "so"]}'),
        ('{"error": {"message": " ", "why": "so"}}', 'HTTP 400: {"error": {"message": " ", "why": "so"}}'),
        ('{"code": "E1", "reason": "so"}', 'HTTP 400: (e1): {"code": "E1", "reason": "so"}'),
        ('{"reason": "余额不足"}', 'HTTP 400: {"reason": "余额不足"}'),
        (r'{"reason": "\u001b[2J\u202e\n\ud800"}', r'HTTP 400: {"reason": "\u001b[2J\u202e\n\ud800"}'),
        ("{}", "HTTP 400"),
    ],
)
def test_an_error_of_unknown_shape_is_quoted(raw: str, message: str) -> None:
    """The endpoint's words are worth more than its status; none of them can move a terminal."""
    failed, _ = failure_of(Answer(status=400, raw=raw))
    assert (failed.kind, failed.message, failed.tries[-1].message) == ("config", message, message)


def test_a_quoted_error_is_short_and_without_the_key() -> None:
    """However the key is spelled in it, and however much else is there."""
    key = "sk/canary/0123456789/abcdefWXYZ"
    spelled = ["".join(f"\\u{ord(letter):04x}" for letter in key), key.replace("/", "\\/"), key]
    more = "so " * 100_000
    given = ", ".join(f'"{one}"' for one in spelled)
    raw = f'{{"given": [{given}], "more": "{more}"}}'
    with ModelServer(lambda _body, _headers: Answer(status=400, raw=raw)) as server:

        async def scenario() -> Outcome:
            model = open_chat(settings(server.base_url, api_key_env="TEST_KEY"), {"TEST_KEY": key})
            try:
                return await outcome(model, question())
            finally:
                await model.aclose()

        failed = asyncio.run(scenario())
    assert isinstance(failed, CallFailed)
    assert failed.message.startswith('HTTP 400: {"given": ["[redacted]", "[redacted]", "[redacted]"], "more": "so so')
    assert len(failed.message) <= 520
    assert "canary" not in f"{failed!r} {failed.hint} {failed.tries} {vars(failed)}"


def test_nothing_is_concluded_from_a_quoted_error() -> None:
    """It may hold the request itself: no field is dropped, no limit seen, no wait believed in because of its words."""
    said = {"request": {"temperature": 0.0, "response_format": "json_schema"}, "note": "context length; retry in 900 s"}
    changes = {"structured_output": "auto", "unsupported_fields": "drop", "attempts": 2, "patience_seconds": 0}
    asked = question(temperature=0.0)
    for status, kind in ((400, "config"), (429, "rate_limit")):
        failed, server = ask(lambda _body, _headers, s=status: Answer(status=s, raw=json.dumps(said)), asked, **changes)
        assert isinstance(failed, CallFailed)
        assert (failed.kind, len(server.requests), [one.kind for one in failed.tries]) == (kind, 1, [kind])
        assert "context length" in failed.message
        assert "model.temperature" not in failed.hint


@pytest.mark.parametrize(
    ("answer", "changes", "hint"),
    [
        (Answer(status=401, error="no"), {}, "TEST_KEY"),
        (Answer(status=401, error="no"), {"api_key_env": ""}, "model.target_api_key_env"),
        (Answer(status=404, error="no"), {}, "model.target (now 'small')"),
        (Answer(status=404, error="no"), {"role": "optimizer"}, "model.optimizer (now 'small')"),
        (Answer(status=400, error=error("model_not_found")), {}, "model.target (now 'small')"),
        (Answer(status=400, error=error(param="max_tokens")), {}, "model.token_field"),
        (Answer(status=301, error="moved"), {}, "model.target_base_url"),
        (Answer(status=402, error="no"), {}, "credit"),
    ],
)
def test_an_error_says_which_setting_to_look_at(answer: Answer, changes: dict[str, Any], hint: str) -> None:
    """The hint is in terms of the user's own config."""
    failed, _ = failure_of(answer, **changes)
    assert hint in failed.hint


def test_a_refused_connection_is_a_transport_failure_after_all_tries() -> None:
    """It names the host and is not systemic: the server may come back."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"

        async def scenario() -> Outcome:
            time = FakeTime()
            model = open_chat(settings(f"http://{host}/v1"), {}, clock=time.clock, sleep=time.sleep)
            try:
                return await outcome(model, question())
            finally:
                await model.aclose()

        failed = asyncio.run(scenario())
    assert isinstance(failed, CallFailed)
    assert (failed.kind, len(failed.tries), failed.systemic) == ("transport", 4, False)
    assert f"cannot connect to {host}" in failed.message
    assert "model.target_base_url" in failed.hint


def test_a_server_that_says_nothing_is_timed_out_and_asked_again() -> None:
    """The read timeout is the configured one; the last try's failure is the answer."""
    failed, made = failure_of(Answer(delay=30), timeout_seconds=0.05, attempts=2)
    assert (failed.kind, made) == ("timeout", 2)
    assert "0.05 s" in failed.message


def test_failed_tries_are_listed_with_what_was_waited() -> None:
    """A success tells what it took."""
    answers = iter([Answer(status=500, error="oops"), Answer(cut=True), Answer(text="4")])
    time = FakeTime()
    result, server = ask(lambda _body, _headers: next(answers), time=time, seed=3)
    assert isinstance(result, ChatReply)
    assert [(one.kind, one.status) for one in result.tries] == [("server", 500), ("transport", None)]
    assert [one.waited_ms for one in result.tries] == [round(1000 * wait) for wait in time.waits]
    assert len(server.requests) == 3


# The circuit


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (402, "quota"), (404, "config")])
def test_a_systemic_failure_stops_64_queued_calls(status: int, kind: str) -> None:
    """At most `concurrency` requests reach the endpoint; every call gets the same error, without waiting."""
    with ModelServer(lambda _body, _headers: Answer(status=status, error="no", delay=0.02)) as server:
        results = ask_all(server, [question(number) for number in range(64)], concurrency=8)
        assert len(server.requests) <= 8
    failures = [result for result in results if isinstance(result, CallFailed)]
    assert {(failed.kind, failed.status, failed.message) for failed in failures} == {
        (kind, status, f"HTTP {status}: no")
    }
    assert len(failures) == 64
    assert sum(len(failed.tries) for failed in failures) == len(server.requests)


def test_after_a_systemic_failure_the_wire_is_not_touched() -> None:
    """A later call fails at once, with the same hint."""
    with ModelServer(lambda _body, _headers: Answer(status=401, error="no")) as server:

        async def scenario() -> list[Outcome]:
            model = open_chat(settings(server.base_url, api_key_env="TEST_KEY"), ENVIRON)
            results = [await outcome(model, question(number)) for number in range(3)]
            await model.aclose()
            return results

        first, second, third = asyncio.run(scenario())
        assert len(server.requests) == 1
    assert isinstance(first, CallFailed)
    assert isinstance(second, CallFailed)
    assert isinstance(third, CallFailed)
    assert third.message == second.message == first.message
    assert second.hint == first.hint
    assert second.tries == ()


def test_a_failure_of_one_item_leaves_the_others_alone() -> None:
    """One prompt that is too long fails alone."""

    def handler(body: Any, _headers: Mapping[str, str]) -> Answer:
        too_long = body["messages"][0]["content"] == "long"
        return Answer(status=413, error="too long") if too_long else Answer()

    with ModelServer(handler) as server:
        requests = [question(1, messages=(Message("user", "long"),)), question(2), question(3)]
        kinds = [type(result) for result in ask_all(server, requests, concurrency=1)]
    assert kinds == [CallFailed, ChatReply, ChatReply]


# Limits


def test_a_429_among_answers_holds_back_its_own_call_alone() -> None:
    """The endpoint takes others; only when it refuses most do they all wait."""
    answers = iter([Answer(), Answer(), Answer(status=429, error="slow down", headers={"Retry-After": "7"})])
    with ModelServer(lambda _body, _headers: next(answers, Answer())) as server:

        async def scenario() -> None:
            time = FakeTime(jump=False)
            model = open_chat(settings(server.base_url), {}, clock=time.clock, sleep=time.sleep, draw=lambda _key: 0.0)
            await model.complete(question(1))
            await model.complete(question(2))
            refused = asyncio.create_task(model.complete(question(3)))
            await time.slept()
            assert (await asyncio.wait_for(model.complete(question(4)), 5)).tries == ()
            await time.advance(6.99)
            assert len(server.requests) == 4
            await time.advance(0.01)
            assert len((await asyncio.wait_for(refused, 5)).tries) == 1
            await model.aclose()

        asyncio.run(scenario())


def test_a_429_before_any_answer_holds_back_every_call() -> None:
    """A call that never saw it is sent when the server's wait is over, not before."""
    answers = iter([Answer(status=429, error="slow down", headers={"Retry-After": "7"})])
    with ModelServer(lambda _body, _headers: next(answers, Answer())) as server:

        async def scenario() -> None:
            time = FakeTime(jump=False)
            model = open_chat(settings(server.base_url), {}, clock=time.clock, sleep=time.sleep, draw=lambda _key: 0.0)
            first = asyncio.create_task(model.complete(question(1)))
            await time.slept()
            others = [asyncio.create_task(model.complete(question(number))) for number in range(2, 6)]
            await time.advance(6.99)
            assert len(server.requests) == 1
            await time.advance(0.01)
            replies = await asyncio.wait_for(asyncio.gather(first, *others), 5)
            assert [len(reply.tries) for reply in replies] == [1, 0, 0, 0, 0]
            await model.aclose()

        asyncio.run(scenario())
        assert len(server.requests) == 6


@pytest.mark.parametrize(("usage", "wait"), [({"prompt_tokens": 7, "completion_tokens": 3}, 1.0), (None, 11.3)])
def test_tokens_a_minute_count_what_was_really_used(usage: dict[str, int] | None, wait: float) -> None:
    """The estimate (body and max_tokens) is replaced by the reported usage, where there is one."""
    time = FakeTime()
    with ModelServer(lambda _body, _headers: Answer(usage=usage)) as server:
        requests = [question(number, messages=(Message("user", "x" * 110),)) for number in range(2)]
        ask_all(server, requests, time=time, concurrency=1, tokens_per_minute=600)
    assert time.waits == [pytest.approx(wait, abs=0.1)]


# Structured output


def refuse_schema(body: Any, _headers: Mapping[str, str]) -> Answer:
    if "response_format" in body:
        return Answer(status=400, error=error(message="'response_format' of type json_schema is not supported"))
    return Answer(text='{"a": "b"}')


def test_a_refused_schema_is_left_out_from_then_on() -> None:
    """The call succeeds without it, says so, and the next call does not try it again."""
    with ModelServer(refuse_schema) as server:
        one, two = question(1, schema=SCHEMA), question(2, schema=SCHEMA)
        first, second = ask_all(server, [one, two], concurrency=1, attempts=1)
        sent = ["response_format" in received.body for received in server.requests]
    assert isinstance(first, ChatReply)
    assert isinstance(second, ChatReply)
    message = "HTTP 400: 'response_format' of type json_schema is not supported"
    assert first.tries == (Try(kind="downgrade", status=400, message=message, waited_ms=0),)
    assert second.tries == ()
    assert sent == [True, False, False]


def test_a_schema_that_must_be_used_is_an_error_when_it_is_refused() -> None:
    """`on` means on."""
    result, server = ask(refuse_schema, question(schema=SCHEMA), structured_output="on")
    assert isinstance(result, CallFailed)
    assert (result.kind, len(server.requests)) == ("config", 1)
    assert "model.structured_output" in result.hint


def test_another_400_does_not_cost_the_schema() -> None:
    """Only a complaint about the schema is a reason to drop it."""
    failed, made = failure_of(Answer(status=400, error="temperature is not allowed"), structured_output="auto")
    assert (failed.kind, made) == ("config", 1)


# Secrets

ECHOES: Mapping[str, Callable[[str], Answer]] = {
    "whole": lambda key: Answer(status=401, error=error(message=f"Incorrect API key provided: {key}.")),
    "header": lambda key: Answer(status=401, error=error(message=f"bad header Authorization: Bearer {key}")),
    "masked": lambda key: Answer(
        status=401, error=error(message=f"Incorrect API key provided: {key[:8]}********{key[-4:]}.")
    ),
    "pieces": lambda key: Answer(status=401, error=error(message=f"key {key[:14]}... ending in {key[-4:]} is unknown")),
    "fields": lambda key: Answer(status=400, error=error(code=key, kind=key, param=key, message=key.upper())),
    "page": lambda key: Answer(
        status=500, raw=f"<pre>Authorization: Bearer {key}</pre>", headers={"X-Request-Id": key}
    ),
    "rate-limit": lambda key: Answer(status=429, error=key, headers={"Retry-After": key, "X-Request-Id": f"req-{key}"}),
    "redirect": lambda key: Answer(status=302, headers={"Location": f"http://127.0.0.1:9/?key={key}"}),
    "not-json": lambda key: Answer(raw=f"not json: {key}"),
    "late-in-the-body": lambda key: Answer(raw=f"{'x' * 190} {key}"),
    "at-the-cut": lambda key: Answer(status=404, raw=f"{'x' * 480} {key}"),
    "broken-off": lambda key: Answer(cut=True, raw=f'{{"echo": "{key}"}}', headers={"X-Request-Id": key}),
    "answer": lambda key: Answer(text=f"your key is {key}", headers={"X-Request-Id": key}),
    "refusal": lambda key: Answer(text=None, refusal=f"I will not say {key}"),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_the_endpoint_echoes_is_seen_nowhere(echo: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not in errors, hints, tries, replies, tracebacks with locals or logs; nor a telling piece of it."""
    caplog.set_level(logging.DEBUG)
    result, _ = ask(lambda _body, _headers: ECHOES[echo](KEY), attempts=2)
    shown = [repr(result), str(result), caplog.text]
    if isinstance(result, CallFailed):
        shown += [repr(vars(result)), result.hint, repr(result.__cause__), repr(result.__context__)]
        shown += traceback.TracebackException.from_exception(result, capture_locals=True).format()
    text = "\n".join(shown).lower()
    pieces = [KEY[at : at + 10].lower() for at in range(len(KEY) - 9)]
    assert [piece for piece in pieces if piece in text] == []
    assert KEY[-4:].lower() not in text


def test_a_placeholder_key_is_not_cut_out_of_answers() -> None:
    """Local servers are given keys like `none`, which is also a word."""
    with ModelServer(lambda _body, _headers: Answer(text="none of them")) as server:

        async def scenario() -> str:
            model = open_model(settings(server.base_url, api_key_env="K"), {"K": "none"})
            reply = await model.complete(question())
            await model.aclose()
            return reply.text

        assert asyncio.run(scenario()) == "none of them"


def test_an_adapter_s_repr_and_identity_hold_no_key() -> None:
    """They name wire format, endpoint and model."""
    model = open_chat(settings("http://h:1/v1/", api_key_env="TEST_KEY"), ENVIRON)
    assert model.identity == "openai http://h:1/v1 small"
    assert repr(model) == "<openai http://h:1/v1 small>"
    assert KEY not in repr(vars(model))


def test_extra_body_fields_are_part_of_the_identity() -> None:
    """Another body is another question, so a recorded answer must not be reused for it."""
    plain, extra = settings("http://h/v1"), settings("http://h/v1", extra_body={"top_k": 1})
    assert open_chat(plain, {}).identity != open_chat(extra, {}).identity


# Opening


@pytest.mark.parametrize(
    ("changes", "environ", "words"),
    [
        ({"base_url": ""}, {}, "base_url"),
        ({"base_url": "localhost:8000/v1"}, {}, "base_url"),
        ({"base_url": "ftp://host/v1"}, {}, "base_url"),
        ({"base_url": "http:///v1"}, {}, "base_url"),
        ({"base_url": "http://host:99999/v1"}, {}, "base_url"),
        ({"base_url": "http://host/v1?key=1"}, {}, "base_url"),
        ({"base_url": "http://host/v1/chat/completions"}, {}, "base_url"),
        ({"base_url": "http://user:hunter2@host/v1"}, {}, "credentials"),
        ({"api_key_env": "NO_SUCH_KEY"}, {}, "NO_SUCH_KEY"),
        ({"api_key_env": "BLANK"}, {"BLANK": " \n"}, "BLANK"),
        ({"api_key_env": "SPLIT"}, {"SPLIT": "sk-a\nX-Evil: 1"}, "SPLIT"),
        ({"extra_headers": {"X-A": "1\r\nX-B: 2"}}, {}, "extra_headers"),
        ({"extra_body": {"stream": True}}, {}, "extra_body"),
    ],
)
def test_unusable_settings_are_refused_when_the_model_is_opened(
    changes: dict[str, Any], environ: dict[str, str], words: str
) -> None:
    """The error names the setting or the variable, and shows no secret."""
    with pytest.raises(ConfigError) as caught:
        open_model(settings(**{"base_url": "http://host/v1", **changes}), environ)
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "sk-a" not in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "environ", "proxy"),
    [
        ("https://api.test/v1", {}, None),
        ("https://api.test/v1", {"HTTPS_PROXY": "http://proxy.test:3128"}, "http://proxy.test:3128"),
        ("https://api.test/v1", {"https_proxy": "proxy.test:3128"}, "http://proxy.test:3128"),
        ("https://api.test/v1", {"HTTP_PROXY": "http://proxy.test:3128"}, None),
        ("https://api.test/v1", {"ALL_PROXY": "http://proxy.test:3128", "NO_PROXY": ".test"}, None),
        (
            "https://api.test/v1",
            {"ALL_PROXY": "http://proxy.test:3128", "NO_PROXY": "pi.test"},
            "http://proxy.test:3128",
        ),
        ("http://127.0.0.1:8000/v1", {"HTTP_PROXY": "http://proxy.test:3128"}, None),
    ],
)
def test_the_usual_proxy_variables_are_respected(base_url: str, environ: dict[str, str], proxy: str | None) -> None:
    """Except for this machine, which no proxy can reach."""
    endpoint = open_endpoint(settings(base_url), environ, "/chat/completions")
    assert (str(endpoint.proxy.url) if endpoint.proxy else None) == proxy


def test_a_proxy_gets_the_request_and_its_own_credentials() -> None:
    """A plain request goes through the proxy, which is told who we are; they are shown nowhere."""
    with ModelServer() as proxy:
        address = proxy.base_url.removeprefix("http://").removesuffix("/v1")

        async def scenario() -> None:
            environ = {"http_proxy": f"http://me:p%40ssword-of-mine@{address}"}
            model = open_chat(settings("http://model.test/v1"), environ)
            assert "ssword" not in repr(model._exchange.__dict__)
            await model.complete(question())
            await model.aclose()

        asyncio.run(scenario())
    [received] = proxy.requests
    assert received.path == "http://model.test/v1/chat/completions"
    assert received.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:p@ssword-of-mine").decode()


# Connections


def test_256_calls_are_really_in_flight_at_once() -> None:
    """The server sees all of them before it answers the first, and a second wave opens no new connections."""
    with ModelServer(lambda _body, _headers: Answer(delay=0.4)) as server:

        async def scenario() -> None:
            model = open_chat(settings(server.base_url, concurrency=256), {})
            for _wave in range(2):
                await asyncio.gather(*(model.complete(question(number)) for number in range(256)))
            await model.aclose()

        asyncio.run(scenario())
        assert server.most_in_flight == 256
        assert server.connections == 256


def test_never_more_than_the_configured_calls_are_in_flight() -> None:
    """Concurrency is a limit, whatever is asked."""
    with ModelServer(lambda _body, _headers: Answer(delay=0.01)) as server:
        ask_all(server, [question(number) for number in range(40)], concurrency=4)
        assert (server.most_in_flight, server.connections) == (4, 4)


def test_connections_are_used_again() -> None:
    """Twenty calls one after the other are one connection, errors included."""
    answers = iter([Answer(), Answer(status=500, error="oops")] * 20)
    with ModelServer(lambda _body, _headers: next(answers)) as server:
        ask_all(server, [question(number) for number in range(20)], concurrency=1)
        assert server.connections == 1


def test_a_cancelled_call_leaves_no_task_and_no_connection() -> None:
    """The server sees its callers go away, and the adapter still works."""
    with ModelServer(lambda body, _headers: Answer(delay=30 if "slow" in str(body) else 0)) as server:

        async def scenario() -> None:
            model = open_chat(settings(server.base_url), {})
            slow = [question(number, messages=(Message("user", "slow"),)) for number in range(20)]
            calls = [asyncio.create_task(model.complete(request)) for request in slow]
            await asyncio.to_thread(server.wait_until, lambda seen: seen.in_flight == 8)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert await asyncio.to_thread(server.wait_until, lambda seen: seen.in_flight == 0)
            assert await asyncio.to_thread(server.wait_until, lambda seen: seen.open_connections == 0)
            assert (await model.complete(question(99))).text == "ok"
            await model.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(scenario())
        assert len(server.requests) == 9
        assert server.wait_until(lambda seen: seen.open_connections == 0)


def test_a_call_cancelled_between_tries_makes_no_further_request() -> None:
    """The wait for the next try can be left at any time."""
    with ModelServer(lambda _body, _headers: Answer(status=500, error="oops")) as server:

        async def scenario() -> None:
            model = open_chat(settings(server.base_url, backoff_seconds=60, backoff_cap_seconds=60), {})
            call = asyncio.create_task(model.complete(question()))
            await asyncio.to_thread(server.wait_until, lambda seen: len(seen.requests) == 1)
            await asyncio.sleep(0.02)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await model.aclose()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(scenario())
        assert len(server.requests) == 1


def test_a_slot_is_free_as_soon_as_the_reply_is_there() -> None:
    """A call that waits for its next try does not keep others from being answered."""

    def handler(body: Any, _headers: Mapping[str, str]) -> Answer:
        return Answer(status=500, error="oops") if body["messages"][0]["content"] == "sick" else Answer()

    with ModelServer(handler) as server:

        async def scenario() -> None:
            time = FakeTime(jump=False)
            model = open_chat(settings(server.base_url, concurrency=1), {}, clock=time.clock, sleep=time.sleep)
            sick = asyncio.create_task(model.complete(question(1, messages=(Message("user", "sick"),))))
            await time.slept()
            assert (await asyncio.wait_for(model.complete(question(2)), 5)).text == "ok"
            sick.cancel()
            await asyncio.gather(sick, return_exceptions=True)
            await model.aclose()

        asyncio.run(scenario())


def test_an_adapter_works_in_one_event_loop_after_another() -> None:
    """Connections belong to a loop; the adapter does not."""
    with ModelServer() as server:
        model = open_chat(settings(server.base_url), {})

        async def scenario() -> str:
            reply = await model.complete(question())
            await model.aclose()
            return reply.text

        assert [asyncio.run(scenario()), asyncio.run(scenario())] == ["<answer>Paris</answer>"] * 2


def test_cookies_are_not_kept() -> None:
    """One call tells the endpoint nothing about another."""
    answer = Answer(headers={"Set-Cookie": "session=1; Path=/"})
    with ModelServer(lambda _body, _headers: answer) as server:
        ask_all(server, [question(1), question(2)], concurrency=1)
        assert all("cookie" not in received.headers for received in server.requests)
