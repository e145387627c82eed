"""
What every model adapter keeps to, one check each; a check that fails raises an AssertionError that says what is wrong.

The first checks suit any adapter. Those over HTTP need `answers`, which makes the body of a reply that says a text;
other adapters pass them untried.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, get_args

from attrs import evolve, field, frozen

from skillopt_es.errors import ConfigError
from skillopt_es.ports import (
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    FailureKind,
    FinishReason,
    Message,
    ModelSettings,
    OpenModel,
)
from skillopt_es.testing.endpoint import Endpoint, Reply

T = TypeVar("T")
KEY_NAME = "CONFORMANCE_KEY"
KEY = "sk-conformance-0123456789abcdefghij"
_PATIENCE = 10.0  # a model that waits for ever fails its test instead of hanging the suite


@frozen(kw_only=True)
class ModelCase:
    """
    An adapter and how to open it.

    `settings` must work, with `environ` beside it. `base_path` is what follows an endpoint's address in `base_url`.
    """

    open: OpenModel
    settings: ModelSettings
    environ: Mapping[str, str] = field(factory=dict)
    answers: Callable[[str], bytes] | None = None
    base_path: str = "/v1"

    def model(self, **changes: object) -> ChatModel:
        """The adapter, opened."""
        return self.open(evolve(self.settings, **changes), self.environ)  # type: ignore[arg-type]

    def at(self, url: str, **changes: object) -> ChatModel:
        """The adapter, opened for a loopback endpoint with a key, impatient between its tries."""
        quick = {
            "backoff_seconds": 0.001,
            "backoff_cap_seconds": 0.002,
            "attempts": 3,
            "patience_seconds": 0.0035,
            "timeout_seconds": _PATIENCE,
        }
        here = {"base_url": url + self.base_path, "api_key_env": KEY_NAME, **quick, **changes}
        return self.open(evolve(self.settings, **here), {**self.environ, KEY_NAME: KEY})  # type: ignore[arg-type]


def question(number: int = 0, text: str = "2+2?") -> ChatRequest:
    """A short question; each number is another place of the algorithm."""
    messages = (Message("system", "Answer briefly."), Message("user", text))
    return ChatRequest(slot=f"conformance/{number}", stage="probe", messages=messages, max_tokens=64)


# --- any adapter ----------------------------------------------------------------------------------------------------


def an_identity_names_the_model_and_holds_no_secret(case: ModelCase) -> None:
    """The same settings give the same identity in every process; no value of the environment is part of it."""
    first, second = case.model(), case.model()
    assert first.identity, "identity is empty"
    assert first.identity == second.identity, f"two identities for the same settings: {first.identity}"
    for value in case.environ.values():
        assert len(value) < 8 or value not in f"{first.identity} {first!r}", "a secret is part of identity or repr"


def a_question_has_an_answer(case: ModelCase) -> None:
    """A reply of the types that the port promises."""

    async def scenario(model: ChatModel) -> None:
        _check_reply(await model.complete(question()))

    _with_answers(case, scenario)


def many_questions_may_be_asked_at_once(case: ModelCase) -> None:
    """And each has its own answer."""

    async def scenario(model: ChatModel) -> None:
        replies = await asyncio.gather(*(model.complete(question(number)) for number in range(32)))
        for reply in replies:
            _check_reply(reply)

    _with_answers(case, scenario)


def a_model_works_in_one_event_loop_after_another(case: ModelCase) -> None:
    """Connections belong to a loop, a model does not."""
    with _answering(case) as url:
        model = _opened(case, url)

        async def scenario() -> None:
            _check_reply(await model.complete(question()))
            await model.aclose()

        _run(scenario())
        _run(scenario())


def closing_twice_is_closing(case: ModelCase) -> None:
    """Also when nothing was ever asked."""

    async def scenario(model: ChatModel) -> None:
        await model.aclose()
        await model.aclose()

    _with_answers(case, scenario)


def a_cancelled_call_leaves_no_task(case: ModelCase) -> None:
    """Wherever it is cancelled."""

    async def scenario(model: ChatModel) -> None:
        before = asyncio.all_tasks()
        # Cancelled before it begins, and then one turn of the loop later each time.
        for turns in range(8):
            call = asyncio.ensure_future(model.complete(question(turns)))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await model.aclose()
        left = asyncio.all_tasks() - before
        assert not left, f"tasks are left: {left}"

    _with_answers(case, scenario)


def one_model_does_not_touch_another(case: ModelCase) -> None:
    """Nor the process: closing one leaves the other working, and the environment is as it was."""
    before = dict(os.environ)

    async def scenario(model: ChatModel) -> None:
        other = case.model()
        await other.aclose()
        _check_reply(await model.complete(question()))

    _with_answers(case, scenario)
    assert dict(os.environ) == before, "the process's environment was changed"


def a_key_that_is_missing_is_named(case: ModelCase) -> None:
    """A ConfigError with the variable's name, when the model is opened; adapters without keys may ignore it."""
    said = ""
    try:
        case.open(evolve(case.settings, api_key_env="NO_SUCH_VARIABLE"), {})
    except ConfigError as error:
        said = f"{error.message} {error.hint}"
    assert not said or "NO_SUCH_VARIABLE" in said, f"it does not name the variable: {said}"


# --- over HTTP ------------------------------------------------------------------------------------------------------

# What each status means (RFC 9110) for a run: whether it is the user's to mend, and whether to ask again.
_KINDS: Mapping[int, tuple[FailureKind, bool]] = {
    400: ("config", False),
    401: ("auth", False),
    402: ("quota", False),
    403: ("auth", False),
    404: ("config", False),
    413: ("context_length", False),
    429: ("rate_limit", True),
    500: ("server", True),
    503: ("server", True),
}


def each_status_has_its_kind(case: ModelCase) -> None:
    """
    What cannot work is asked once, what may pass as often as configured; each request is listed as a try.

    Who is only put off is asked as long as there is patience.
    """
    for status, (kind, again) in _KINDS.items():
        failed, requests = _failure(case, Reply(status=status, body=b'{"error": {"message": "no"}}'))
        assert failed.kind == kind, f"HTTP {status} is {failed.kind}, but should be {kind}"
        assert failed.status == status, f"HTTP {status} is reported as {failed.status}"
        asked = 2 <= requests <= 6 if kind == "rate_limit" else requests == (3 if again else 1)
        assert asked, f"HTTP {status} was asked {requests} times"
        assert len(failed.tries) == requests, f"HTTP {status}: {len(failed.tries)} tries for {requests} requests"


def what_is_no_answer_is_a_failure(case: ModelCase) -> None:
    """Garbage, half a reply, or a reply without a word."""
    assert case.answers is not None
    whole = case.answers("a whole answer")
    for reply in (Reply(body=b"<html>"), Reply(body=b""), Reply(body=whole, cut=True)):
        failed, _ = _failure(case, reply)
        assert failed.kind == "transport", f"{reply} is {failed.kind}, but should be transport"
    failed, _ = _failure(case, Reply(body=case.answers("")))
    assert failed.kind == "empty", f"an empty answer is {failed.kind}"


def a_passing_fault_costs_a_try(case: ModelCase) -> None:
    """The answer that follows lists what went before."""
    assert case.answers is not None
    body = case.answers("four")

    def reply(number: int) -> Reply:
        return Reply(status=500) if number == 1 else Reply(body=body)

    async def scenario(url: str) -> ChatReply:
        return await _closing(case.at(url), lambda model: model.complete(question()))

    with Endpoint(reply) as endpoint:
        answer = _run(scenario(endpoint.url))
    assert answer.text == "four", f"the answer is {answer.text!r}"
    assert [one.kind for one in answer.tries] == ["server"], f"its tries are {answer.tries}"


def no_more_calls_are_in_flight_than_configured(case: ModelCase) -> None:
    """`concurrency` is a limit, whatever is asked."""
    assert case.answers is not None
    body = case.answers("four")

    async def scenario(url: str) -> list[ChatReply]:
        async def ask(model: ChatModel) -> list[ChatReply]:
            return list(await asyncio.gather(*(model.complete(question(number)) for number in range(24))))

        return await _closing(case.at(url, concurrency=4), ask)

    with Endpoint(lambda _: Reply(body=body, delay=0.005)) as endpoint:
        _run(scenario(endpoint.url))
        assert endpoint.most_in_flight <= 4, f"{endpoint.most_in_flight} calls were in flight at once"
        assert endpoint.requests == 24, f"{endpoint.requests} requests for 24 questions"


def a_key_is_shown_nowhere(case: ModelCase) -> None:
    """Neither by the adapter, nor in an error that quotes it."""
    echo = b'{"error": {"message": "the key ' + KEY.encode() + b' is wrong"}}'
    failed, _ = _failure(case, Reply(status=401, body=echo))
    assert KEY not in f"{failed!r} {vars(failed)}", "an error shows the key"
    assert KEY not in f"{case.at('http://127.0.0.1:9')!r}", "repr shows the key"


def _failure(case: ModelCase, reply: Reply) -> tuple[CallFailed, int]:
    async def scenario(url: str) -> CallFailed:
        async def ask(model: ChatModel) -> CallFailed:
            try:
                answer = await model.complete(question())
            except CallFailed as failed:
                return failed
            raise AssertionError(f"{reply} was taken for an answer: {answer.text!r}")

        return await _closing(case.at(url), ask)

    with Endpoint(lambda _: reply) as endpoint:
        return _run(scenario(endpoint.url)), endpoint.requests


# --- helpers --------------------------------------------------------------------------------------------------------


def _check_reply(reply: ChatReply) -> None:
    assert isinstance(reply, ChatReply), f"the answer is a {type(reply).__name__}"
    assert reply.finish in get_args(FinishReason), f"finish is {reply.finish!r}"
    for name in ("input", "output", "cached", "reasoning"):
        count = getattr(reply.usage, name)
        assert count is None or (type(count) is int and count >= 0), f"usage.{name} is {count!r}"
    assert reply.latency_ms >= 0, f"latency_ms is {reply.latency_ms}"


class _Nowhere:
    """In place of an endpoint, for adapters that need none."""

    def __enter__(self) -> str:
        return ""

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


class _Answering(_Nowhere):
    """An endpoint that gives one answer to everything."""

    def __init__(self, body: bytes) -> None:
        self._endpoint = Endpoint(lambda _: Reply(body=body))

    def __enter__(self) -> str:
        return self._endpoint.__enter__().url

    def __exit__(self, *_: object) -> None:
        self._endpoint.__exit__(None, None, None)


def _answering(case: ModelCase) -> _Nowhere:
    return _Nowhere() if case.answers is None else _Answering(case.answers("four"))


def _opened(case: ModelCase, url: str) -> ChatModel:
    return case.at(url) if url else case.model()


def _with_answers(case: ModelCase, scenario: Callable[[ChatModel], Awaitable[None]]) -> None:
    with _answering(case) as url:
        _run(_closing(_opened(case, url), scenario))


async def _closing(model: ChatModel, scenario: Callable[[ChatModel], Awaitable[T]]) -> T:
    try:
        return await scenario(model)
    finally:
        await model.aclose()


def _run(scenario: Awaitable[T]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(scenario, _PATIENCE)

    return asyncio.run(bounded())


def _over_http(check: Callable[[ModelCase], None]) -> Callable[[ModelCase], None]:
    def checked(case: ModelCase) -> None:
        if case.answers is not None:
            check(case)

    checked.__doc__ = check.__doc__
    return checked


_ANY = (
    an_identity_names_the_model_and_holds_no_secret,
    a_question_has_an_answer,
    many_questions_may_be_asked_at_once,
    a_model_works_in_one_event_loop_after_another,
    closing_twice_is_closing,
    a_cancelled_call_leaves_no_task,
    one_model_does_not_touch_another,
    a_key_that_is_missing_is_named,
)
_HTTP = (
    each_status_has_its_kind,
    what_is_no_answer_is_a_failure,
    a_passing_fault_costs_a_try,
    no_more_calls_are_in_flight_than_configured,
    a_key_is_shown_nowhere,
)
MODEL_CHECKS: Mapping[str, Callable[[ModelCase], None]] = {
    **{check.__name__: check for check in _ANY},
    **{check.__name__: _over_http(check) for check in _HTTP},
}
