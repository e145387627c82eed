"""When a call is tried again, and after which wait."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from email.utils import formatdate

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from support.chat import open_chat, question, settings
from support.fake_time import FakeTime
from support.model_server import Answer, ModelServer

from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.exchange import Body, TooLongError
from skillopt_es.adapters.models.reading import said_wait, server_wait, spent_wait
from skillopt_es.adapters.models.retry import PastTries, RetryPolicy, in_words, seeded_draw
from skillopt_es.ports import CallFailed, ChatReply

NOW = 1_800_000_000.0
POLICY = RetryPolicy(attempts=5, base=0.1, cap=30.0, patience=900.0, seed=42, draw=lambda _key: 0.0)
BUSY = failure("server", "HTTP 503", status=503)
SLOW = failure("rate_limit", "HTTP 429", status=429)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "20.5", "retry-after": "9"}, 0.0205),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(NOW + 42, usegmt=True)}, 42.0),
        ({"retry-after": formatdate(NOW - 42, usegmt=True)}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": "3600"}, 3600.0),
    ],
)
def test_the_server_says_how_long_to_wait(headers: dict[str, str], wait: float | None) -> None:
    """Milliseconds win, then seconds or a date; nonsense is not a wait."""
    assert server_wait(headers, NOW) == wait


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "-1", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m6.5s"}, 66.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7"}, 7.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2h"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
        ({"x-ratelimit-remaining-tokens": "0"}, None),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:05Z",
            },
            5.0,
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:09Z",
            },
            9.0,
        ),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "8s",
            },
            8.0,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + 12)}, 12.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(1000 * NOW) + 2500)}, 2.5),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "9999-99-99"}, None),
    ],
)
def test_an_endpoint_says_that_its_allowance_is_spent(headers: dict[str, str], wait: float | None) -> None:
    """In a Go duration, in seconds, or as a moment."""
    found = spent_wait(headers, NOW)
    assert found == (None if wait is None else pytest.approx(wait))


@pytest.mark.parametrize(
    ("message", "wait"),
    [
        ("Rate limit reached for gpt-4.1 … Please try again in 120ms. Visit …", 0.12),
        ("Please try again in 6m0s.", 360.0),
        ("Rate limit is exceeded. Try again in 7 seconds.", 7.0),
        ("Please retry after 10 seconds.", 10.0),
        ("You exceeded your current quota. Please retry in 34.074824224s.", 34.074824224),
        ("Try again in 250 milliseconds", 0.25),
        ("Try again in 1 second", 1.0),
        ("try again in a moment", None),
        ("retry in 5 apples", None),
        ("", None),
    ],
)
def test_the_words_of_an_error_may_say_when_to_come_back(message: str, wait: float | None) -> None:
    """Some endpoints have no header for it."""
    assert said_wait(message) == (None if wait is None else pytest.approx(wait))


def test_waits_are_told_in_words() -> None:
    """As people say them."""
    told = [in_words(seconds) for seconds in (0.5, 34, 119, 120, 900, 3600, 5400)]
    assert told == ["0.5 s", "34 s", "119 s", "2 min", "15 min", "1 h", "1 h 30 min"]
    year = 365 * 24 * 3600
    assert [in_words(seconds) for seconds in (year, year + 1, 1e300)] == [
        "8760 h",
        "more than a year",
        "more than a year",
    ]


def test_backoff_begins_with_tens_of_milliseconds_and_grows_up_to_its_cap() -> None:
    """Without jitter the wait is half of base * 3^k, and never above half of the cap."""
    assert [POLICY.backoff("slot", attempt) for attempt in range(7)] == pytest.approx(
        [0.05, 0.15, 0.45, 1.35, 4.05, 12.15, 15]
    )
    assert POLICY.backoff("slot", 10_000) == 15


def test_jitter_is_drawn_from_seed_slot_and_attempt() -> None:
    """The same call waits the same in every run; other slots, attempts and seeds wait otherwise."""
    policy = evolve(POLICY, draw=seeded_draw)
    waits = {
        policy.backoff("a", 0),
        policy.backoff("b", 0),
        policy.backoff("a", 1) / 3,
        evolve(policy, seed=43).backoff("a", 0),
    }
    assert len(waits) == 4
    assert all(0.05 <= wait < 0.1 for wait in waits)
    assert policy.backoff("a", 0) == evolve(policy).backoff("a", 0)


@pytest.mark.parametrize(
    ("failed", "past", "wait"),
    [
        (BUSY, PastTries(), 0.05),
        (BUSY, PastTries(blind=3), 1.35),
        (BUSY, PastTries(blind=3, told=20, untold=4), 1.35),
        (BUSY, PastTries(blind=4), None),
        (SLOW, PastTries(blind=4), 0.05),
        (SLOW, PastTries(untold=4), 4.05),
        (SLOW, PastTries(put_off_seconds=899.96), None),
        (evolve(SLOW, server_wait=7.0), PastTries(), 7.0),
        (evolve(SLOW, server_wait=7.0), PastTries(blind=4, told=9), 7.0),
        (evolve(SLOW, server_wait=0.1), PastTries(), 0.1),
        (evolve(SLOW, server_wait=0.1), PastTries(told=14), 4.05),
        (evolve(SLOW, server_wait=900.0), PastTries(), 900.0),
        (evolve(SLOW, server_wait=900.5), PastTries(), None),
        (evolve(SLOW, server_wait=1.0), PastTries(put_off_seconds=899.5), None),
        (evolve(BUSY, server_wait=2.0), PastTries(blind=4), 2.0),
        (failure("empty", "no text"), PastTries(blind=1, kinds=("empty",)), 0.15),
        (failure("empty", "no text"), PastTries(blind=2, kinds=("empty", "empty")), None),
        (failure("timeout", "late"), PastTries(blind=2, kinds=("timeout", "timeout")), None),
        (failure("timeout", "late"), PastTries(blind=2, kinds=("empty", "timeout")), 0.45),
        (failure("auth", "HTTP 401"), PastTries(), None),
    ],
)
def test_a_failure_is_tried_again_or_not(failed: Failure, past: PastTries, wait: float | None) -> None:
    """Blind failures have a number of tries, being put off has a patience; None: no sense in another."""
    assert POLICY.wait_after(failed, "slot", past) == (None if wait is None else pytest.approx(wait))


@pytest.mark.parametrize(
    ("told", "put_off", "wait"),
    [(2.0, 0.0, 2.05), (100.0, 0.0, 100.5), (2.0, 898.0, 2.0), (2.0, 897.98, 2.02), (900.0, 0.0, 900.0)],
)
def test_a_wait_that_is_told_is_stretched_a_little_and_never_beyond_the_patience(
    told: float, put_off: float, wait: float
) -> None:
    """So that those who were refused together do not all come back together."""
    policy = evolve(POLICY, draw=lambda _key: 0.5)
    assert policy.wait_after(evolve(SLOW, server_wait=told), "s", PastTries(put_off_seconds=put_off)) == pytest.approx(
        wait
    )


def test_an_endpoint_that_says_in_a_moment_for_ever_is_asked_less_and_less_often() -> None:
    """Ten waits are taken at its word."""
    waits = [POLICY.wait_after(evolve(SLOW, server_wait=0.01), "s", PastTries(told=told)) for told in (9, 10, 11, 12)]
    assert waits == pytest.approx([0.01, 0.05, 0.15, 0.45])


def test_past_tries_remember_who_said_when_and_who_said_nothing() -> None:
    """One more of each kind."""
    past = PastTries().and_then(BUSY, 1.0).and_then(evolve(SLOW, server_wait=7.0), 7.0).and_then(SLOW, 0.5)
    past = past.and_then(failure("empty", "no text"), 1.0).and_then(SLOW, 0.25)
    assert past == PastTries(blind=2, told=1, untold=2, put_off_seconds=7.75, kinds=("empty",))


_WAITS = st.one_of(st.none(), st.floats(min_value=0.001, max_value=2000))
_FAILURES = st.builds(
    lambda kind, told: evolve(failure(kind, "no"), server_wait=told),
    st.sampled_from(["rate_limit", "server", "transport", "timeout", "empty"]),
    _WAITS,
)


@given(st.lists(_FAILURES, max_size=60), st.integers(1, 9), st.floats(0, 500))
def test_no_call_is_tried_for_ever(failures: list[Failure], attempts: int, patience: float) -> None:
    """Whatever an endpoint says: at most so many blind tries, and never put off for longer than the patience."""
    policy = evolve(POLICY, attempts=attempts, patience=patience, draw=seeded_draw)
    past = PastTries()
    for failed in failures:
        wait = policy.wait_after(failed, "slot", past)
        if wait is None:
            break
        assert wait > 0
        if failed.server_wait is not None:
            assert wait >= failed.server_wait
            assert past.told >= 10 or wait <= failed.server_wait + min(0.05 * failed.server_wait, 1)
        past = past.and_then(failed, wait)
    assert past.blind < attempts
    assert past.put_off_seconds <= patience


def ask(
    answers: list[Answer], time: FakeTime, *, clock: Callable[[], float] | None = None
) -> tuple[ChatReply | CallFailed, int]:
    """What became of one call to a server that answers like this, and how many requests it cost."""
    rest = iter(answers)

    async def call(base_url: str) -> ChatReply | CallFailed:
        model = open_chat(
            settings(base_url),
            {},
            clock=clock or time.clock,
            wall_clock=lambda: NOW,
            sleep=time.sleep,
            draw=lambda _key: 0.0,
        )
        try:
            return await model.complete(question())
        except CallFailed as error:
            return error
        finally:
            await model.aclose()

    with ModelServer(lambda _body, _headers: next(rest)) as server:
        return asyncio.run(call(server.base_url)), len(server.requests)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, 0.5),
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "0.1"}, 0.1),
        ({"Retry-After": "0"}, 0.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": formatdate(NOW + 42, usegmt=True)}, 42.0),
        ({"Retry-After": "120"}, 120.0),
    ],
)
def test_a_429_waits_exactly_once_and_then_succeeds(headers: dict[str, str], wait: float) -> None:
    """The pause of the limiter and the wait of the call are one and the same time."""
    time = FakeTime()
    reply, requests = ask([Answer(status=429, error="slow down", headers=headers), Answer(text="4")], time)
    assert isinstance(reply, ChatReply)
    assert (reply.text, requests, time.waits) == ("4", 2, [wait])
    assert [(one.kind, one.status, one.waited_ms) for one in reply.tries] == [("rate_limit", 429, round(wait * 1000))]


def test_a_wait_beyond_all_patience_pauses_the_run() -> None:
    """The call fails at once, as one that every later one would share, and says what the server said."""
    time = FakeTime()
    error, requests = ask([Answer(status=429, error="come back tomorrow", headers={"Retry-After": "86400"})], time)
    assert isinstance(error, CallFailed)
    assert (error.kind, error.systemic, requests, time.waits) == ("rate_limit", True, 1, [])
    assert error.message == (
        "HTTP 429: come back tomorrow; it asks to come back in 24 h, "
        "and model.target_patience_seconds (or model.patience_seconds) is 15 min"
    )
    assert "give it time" in error.hint


def test_an_endpoint_that_puts_everybody_off_for_too_long_pauses_the_run() -> None:
    """Told to wait four minutes again and again: three of them fit into a quarter of an hour."""
    time = FakeTime()
    error, requests = ask([Answer(status=429, error="slow down", headers={"Retry-After": "240"})] * 4, time)
    assert isinstance(error, CallFailed)
    assert (error.kind, requests, time.waits) == ("rate_limit", 4, [240, 240, 240])
    assert "it has answered nobody for 12 min" in error.message


def test_a_rate_limit_is_patience_and_not_a_number_of_tries() -> None:
    """Nine refusals, four tries allowed: it goes on, exactly as it is told to."""
    time = FakeTime()
    slow = Answer(status=429, error="slow down", headers={"Retry-After": "0.5"})
    reply, requests = ask([*[slow] * 9, Answer(text="4")], time)
    assert isinstance(reply, ChatReply)
    assert (requests, time.waits) == (10, [0.5] * 9)


def test_a_server_that_says_when_it_is_back_is_believed_whatever_its_error() -> None:
    """A 503 with Retry-After is not one of the tries."""
    time = FakeTime()
    away = Answer(status=503, error="maintenance", headers={"Retry-After": "2"})
    reply, requests = ask([*[away] * 6, Answer(text="4")], time)
    assert isinstance(reply, ChatReply)
    assert (requests, time.waits) == (7, [2.0] * 6)


def test_an_error_that_begins_with_its_status_does_not_have_it_twice() -> None:
    """As gateways pass on what they were told."""
    error, _ = ask([Answer(status=401, error="HTTP 401: no such key")], FakeTime())
    assert isinstance(error, CallFailed)
    assert error.message == "HTTP 401: no such key"


def test_there_is_no_sleep_after_the_last_try() -> None:
    """Four attempts wait three times."""
    time = FakeTime()
    error, requests = ask([Answer(status=503, error="busy")] * 4, time)
    assert isinstance(error, CallFailed)
    assert (error.kind, requests, time.waits) == ("server", 4, [0.5, 1.5, 4.5])
    assert [one.waited_ms for one in error.tries] == [500, 1500, 4500, 0]


@pytest.mark.parametrize(
    ("status", "wish", "requests"), [(500, "false", 1), (400, "true", 4), (429, "false", 1), (500, "maybe", 4)]
)
def test_the_server_may_overrule_the_table(status: int, wish: str, requests: int) -> None:
    """`x-should-retry` is obeyed in both directions; anything but true and false is ignored."""
    answer = Answer(status=status, error="no", headers={"X-Should-Retry": wish})
    error, made = ask([answer] * 4, FakeTime())
    assert isinstance(error, CallFailed)
    assert made == requests


def test_an_empty_reply_is_asked_again_twice() -> None:
    """Three empty replies are the last word, whatever attempts would allow."""
    error, requests = ask([Answer(text="")] * 4, FakeTime())
    assert isinstance(error, CallFailed)
    assert (error.kind, requests) == ("empty", 3)


def test_the_latency_is_that_of_the_try_that_succeeded() -> None:
    """Neither the failed tries nor the waits are part of it."""
    time = FakeTime()

    def ticking() -> float:
        time.now += 0.125
        return time.now

    answers = [Answer(status=500, error="oops"), Answer(text="4")]
    reply, _ = ask(answers, time, clock=ticking)
    assert isinstance(reply, ChatReply)
    assert (reply.latency_ms, time.waits) == (125, [0.5])


def test_no_try_begins_after_the_call_s_deadline() -> None:
    """A wait that would end later is not begun; the last failure is the answer."""
    time = FakeTime()

    async def scenario(base_url: str) -> CallFailed:
        given = settings(base_url, attempts=50, deadline_seconds=20)
        model = open_chat(given, {}, clock=time.clock, sleep=time.sleep, draw=lambda _key: 0.0)
        try:
            await model.complete(question())
        except CallFailed as failed:
            return failed
        finally:
            await model.aclose()
        raise AssertionError("it cannot have answered")

    with ModelServer(lambda _body, _headers: Answer(status=500, error="oops")) as server:
        failed = asyncio.run(scenario(server.base_url))
    assert time.waits == [0.5, 1.5, 4.5]
    assert (failed.kind, len(failed.tries), failed.tries[-1].waited_ms) == ("server", 4, 0)


def test_headers_that_trickle_are_given_up_at_the_deadline() -> None:
    """A byte at a time, so that there is never silence; the connection is closed."""

    async def scenario() -> tuple[CallFailed, bool]:
        closed = asyncio.Event()

        async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 4000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.005)
            except ConnectionError:
                closed.set()
            finally:
                writer.close()

        server = await asyncio.start_server(trickle, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = open_chat(settings(url, attempts=2, deadline_seconds=0.2), {})
        try:
            await model.complete(question())
        except CallFailed as failed:
            await asyncio.wait_for(closed.wait(), 5)
            return failed, closed.is_set()
        finally:
            await model.aclose()
            server.close()
        raise AssertionError("it cannot have answered")

    failed, closed = asyncio.run(asyncio.wait_for(scenario(), 10))
    assert (failed.kind, len(failed.tries), closed) == ("timeout", 1, True)
    assert "deadline" in failed.message


LARGE = b'{"choices": [{"message": {"content": "' + b"a" * 2_000_000 + b'"}}]}'


@pytest.mark.parametrize("coding", ["", "gzip", "deflate", "raw deflate"])
def test_a_reply_beyond_the_limit_is_a_failed_call(coding: str) -> None:
    """However it is packed: it is given up on the way, not asked for again, and the setting is named."""
    raw = {
        "": bytes,
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "raw deflate": lambda data: zlib.compress(data)[2:-4],
    }
    headers = {"Content-Encoding": coding.removeprefix("raw ")} if coding else {}
    answer = Answer(raw=raw[coding](LARGE), headers=headers)

    async def call(base_url: str, most: int) -> ChatReply | CallFailed:
        model = open_chat(settings(base_url, max_reply_bytes=most), {})
        try:
            return await model.complete(question())
        except CallFailed as error:
            return error
        finally:
            await model.aclose()

    with ModelServer(lambda _body, _headers: answer) as server:
        failed = asyncio.run(call(server.base_url, 1_000_000))
        assert isinstance(failed, CallFailed)
        assert (failed.kind, failed.systemic, len(server.requests)) == ("invalid_reply", False, 1)
        assert "more than 1000000 bytes" in failed.message
        reply = asyncio.run(call(server.base_url, 3_000_000))
        assert isinstance(reply, ChatReply)
        assert len(reply.text) == 2_000_000


def test_a_bomb_is_never_unpacked_beyond_the_limit() -> None:
    """A thousand times as large as it looks: what is kept of it ends at the limit."""
    bomb = gzip.compress(bytes(50_000_000))
    body = Body("gzip", 100_000)
    with pytest.raises(TooLongError):
        body.add(bomb)
    assert len(body._whole) <= 100_000


@pytest.mark.parametrize(
    "endless", [gzip.compress(b""), gzip.compress(b"a") + 200 * gzip.compress(b"")], ids=["nothing", "next to nothing"]
)
def test_a_packed_body_that_unpacks_to_next_to_nothing_ends_at_the_limit(endless: bytes) -> None:
    """What comes over the wire counts, too: a server could send empty members for ever."""
    body = Body("gzip", 100_000)
    for _ in range(100_000 // len(endless)):
        body.add(endless)
    with pytest.raises(TooLongError):
        body.add(endless)


@given(
    st.lists(st.binary(max_size=200), max_size=6), st.integers(1, 50), st.sampled_from(["gzip", "deflate", "identity"])
)
def test_a_packed_body_is_what_was_packed(parts: list[bytes], cut: int, coding: str) -> None:
    """In pieces of any size; a gzip may have several members."""
    plain = b"".join(parts)
    packed = {"gzip": b"".join(map(gzip.compress, parts)), "deflate": zlib.compress(plain), "identity": plain}[coding]
    body = Body(coding, 10_000)
    for at in range(0, len(packed), cut):
        body.add(packed[at : at + cut])
    assert body.whole == plain


def test_a_reply_that_never_ends_is_given_up_at_the_deadline() -> None:
    """Each byte comes in time, the whole would not."""

    async def scenario(base_url: str) -> CallFailed:
        model = open_chat(settings(base_url, attempts=2, deadline_seconds=0.2), {})
        try:
            await model.complete(question())
        except CallFailed as failed:
            return failed
        finally:
            await model.aclose()
        raise AssertionError("it cannot have answered")

    endless = Answer(raw=b" " * 4000, piece=1, gap=0.01)
    with ModelServer(lambda _body, _headers: endless) as server:
        failed = asyncio.run(asyncio.wait_for(scenario(server.base_url), 5))
        assert server.wait_until(lambda seen: seen.open_connections == 0)
        assert len(server.requests) == 1
    assert failed.kind == "timeout"
    assert "deadline" in failed.message
