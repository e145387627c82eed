"""
A real model endpoint on loopback: plain functions answer, every request is kept to be looked at.

    with ModelServer(lambda body, headers: Answer(text="4")) as server:
        ...  # server.base_url, server.requests, server.most_in_flight, server.connections

As a process of its own, from tests/: `python -m support.model_server --delay-ms 50 --faults 429:0.2,500:0.05`.
It prints its base_url as the first line and runs until it is ended; a line sent to it is answered with its counts.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, cast

from aiohttp import web
from attrs import evolve, field, frozen

from support.ready import PATIENCE

USAGE: Mapping[str, object] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
LARGEST_BODY = 64 * 2**20


@frozen(kw_only=True)
class Answer:
    """
    What the endpoint sends back after `delay` seconds.

    `raw` replaces the whole body; `error` is OpenAI's error object; `cut` breaks off in the middle of the body,
    `drop` closes the connection without a word; `piece` sends the body in pieces of that many bytes, each `gap` seconds
    after the last.
    """

    text: str | None = "ok"
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    usage: Mapping[str, object] | None = field(factory=lambda: USAGE)
    finish: str | None = "stop"
    refusal: str | None = None
    error: Mapping[str, object] | str | None = None
    choices: bool = True
    raw: str | bytes | None = None
    delay: float = 0.0
    cut: bool = False
    drop: bool = False
    piece: int = 0
    gap: float = 0.0

    @property
    def body(self) -> bytes:
        """The bytes after the headers."""
        if self.raw is not None:
            return self.raw.encode() if isinstance(self.raw, str) else self.raw
        if self.error is not None:
            return json.dumps({"error": self.error}).encode()
        message = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        reply: dict[str, object] = {"id": "chatcmpl-1", "object": "chat.completion", "model": "small-2026"}
        reply["choices"] = [choice] if self.choices else []
        if self.usage is not None:
            reply["usage"] = dict(self.usage)
        return json.dumps(reply).encode()


@frozen
class Received:
    """One request as it came over the wire; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


Handler = Callable[[Any, Mapping[str, str]], Answer]


def fixed_answer(_body: Any, _headers: Mapping[str, str]) -> Answer:
    """The same short answer to every question."""
    return Answer(text="<answer>Paris</answer>")


class ModelServer:
    """An HTTP endpoint in its own thread, open as long as the `with` block; a handler's own error comes out of it."""

    def __init__(self, handler: Handler = fixed_answer, *, port: int = 0, keep: bool = True) -> None:
        self.requests: list[Received] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.connections = 0
        self.errors: list[BaseException] = []
        self._handler = handler
        self._port = port
        self._keep = keep
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._down: asyncio.Event | None = None
        self._protocols: web.Server | None = None
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What a config's `model.base_url` is set to."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def open_connections(self) -> int:
        """How many connections clients hold open just now."""
        return len(self._protocols.connections) if self._protocols else 0

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._up.wait(PATIENCE):
            raise RuntimeError("the model server did not come up in time")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._down is not None
        self._loop.call_soon_threadsafe(self._down.set)
        self._thread.join(PATIENCE)
        if self.errors and error is None:
            raise self.errors[0]

    def wait_until(self, condition: Callable[[ModelServer], bool], seconds: float = PATIENCE) -> bool:
        """Whether the condition became true in time; for what happens in the server's thread."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._down = asyncio.Event()
        # Without cancellation a handler would not notice that its caller went away.
        self._protocols = protocols = web.Server(
            self._handle, handler_cancellation=True, access_log=None, keepalive_timeout=75, max_field_size=65536
        )
        server = await self._loop.create_server(
            lambda: self._counted(protocols()), "127.0.0.1", self._port, backlog=1024
        )
        self._port = server.sockets[0].getsockname()[1]
        self._up.set()
        await self._down.wait()
        server.close()
        await protocols.shutdown(0)

    def _counted(self, protocol: web.RequestHandler[Any]) -> web.RequestHandler[Any]:
        self.connections += 1
        return protocol

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":  # somebody else's, such as a page that asks for a server that had this port before
            return web.Response(status=405)
        request._client_max_size = LARGEST_BODY
        raw = await request.read()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = self._answer(request, raw)
            if answer.delay:
                await asyncio.sleep(answer.delay)
        finally:
            self.in_flight -= 1
        return await self._send(request, answer)

    def _answer(self, request: web.BaseRequest, raw: bytes) -> Answer:
        try:
            body = json.loads(raw)
            if self._keep:
                self.requests.append(Received(request.method, request.raw_path, _lower(request.headers), body))
            return self._handler(body, request.headers)
        except Exception as error:  # noqa: BLE001 - it belongs to the test, which gets it when the server goes down
            self.errors.append(error)
            return Answer(status=500, error="the test's own handler failed")

    async def _send_in_pieces(
        self, request: web.BaseRequest, answer: Answer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        for at in range(0, len(answer.body), answer.piece):
            await response.write(answer.body[at : at + answer.piece])
            await asyncio.sleep(answer.gap)
        await response.write_eof()
        return response

    async def _send(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        body = answer.body
        headers = {"Content-Type": "application/json", **answer.headers}
        if answer.piece:
            return await self._send_in_pieces(request, answer, headers)
        if not (answer.cut or answer.drop):
            return web.Response(status=answer.status, body=body, headers=headers)
        response = web.StreamResponse(status=answer.status, headers=headers)
        if answer.cut:
            response.content_length = len(body)
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
        transport = cast("asyncio.Transport | None", request.transport)
        if transport is not None:
            transport.abort() if answer.drop else transport.close()
        return response


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def at_most_at_once(handler: Handler, most: int, told: str) -> Handler:
    """The handler, but who comes while so many are being answered gets a 429 at once."""
    ends: list[float] = []

    def crowded(body: Any, headers: Mapping[str, str]) -> Answer:
        now = time.monotonic()
        ends[:] = [end for end in ends if end > now]
        if len(ends) >= most:
            return _refusal("429", told)
        answer = handler(body, headers)
        ends.append(now + answer.delay)
        return answer

    return crowded


def at_most_a_second(handler: Handler, rate: float, told: str) -> Handler:
    """The handler, but who comes to an empty bucket, which holds half a second's tokens, gets a 429 at once."""
    level, filled_at = rate / 2, time.monotonic()

    def limited(body: Any, headers: Mapping[str, str]) -> Answer:
        nonlocal level, filled_at
        now = time.monotonic()
        level, filled_at = min(rate / 2, level + rate * (now - filled_at)), now
        if level < 1:
            return _refusal("429", told)
        level -= 1
        return handler(body, headers)

    return limited


def with_faults(
    handler: Handler, faults: Mapping[str, float], seed: int = 0, told: Mapping[str, str] = {"429": "0.05"}
) -> Handler:
    """
    The handler, but a seeded part of the requests fails: {"429": 0.2, "cut": 0.01}; `told` are waits by status.

    Which ones is decided by the body and by how often it was seen, so a repeated run has the same faults and a
    request that is tried again gets through.
    """
    seen: Counter[bytes] = Counter()

    def faulty(body: Any, headers: Mapping[str, str]) -> Answer:
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
        seen[digest] += 1
        draw = hashlib.sha256(b"%d/%d/" % (seed, seen[digest]) + digest).digest()
        place = int.from_bytes(draw[:8]) / 2**64
        for name, share in faults.items():
            if place < share:
                return _fault(name, handler(body, headers), told.get(name, ""))
            place -= share
        return handler(body, headers)

    return faulty


def _refusal(status: str, told: str) -> Answer:
    headers = {"Retry-After": told} if told else {}
    return Answer(status=int(status), error={"message": f"injected {status}"}, headers=headers)


def _fault(name: str, answer: Answer, told: str) -> Answer:
    if name.isdigit():
        return evolve(_refusal(name, told), delay=answer.delay)
    changes: dict[str, dict[str, Any]] = {
        "cut": {"cut": True},
        "drop": {"drop": True},
        "empty": {"text": ""},
        "garbage": {"raw": "<html>bad gateway</html>"},
    }
    return evolve(answer, **changes[name])


def _parse_faults(text: str) -> dict[str, float]:
    return {name: float(share) for name, share in (part.split(":") for part in text.split(",") if part)}


def _import_handler(name: str) -> Handler:
    module, _, function = name.partition(":")
    return cast("Handler", getattr(importlib.import_module(module), function))


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--handler", default="support.model_server:fixed_answer", help="module:function")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="how long every answer takes")
    parser.add_argument("--faults", default="", help="status or cut, drop, empty, garbage: 429:0.2,500:0.05,cut:0.01")
    parser.add_argument("--told", default="429:0.05", help="the Retry-After of each status: 429:0.5,503:2")
    parser.add_argument("--at-once", type=int, default=0, help="more calls at once are refused with 429")
    parser.add_argument("--a-second", type=float, default=0, help="more calls a second are refused with 429")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    handler = _import_handler(options.handler)
    if options.delay_ms:
        prompt, delay = handler, options.delay_ms / 1000
        handler = lambda body, headers: evolve(prompt(body, headers), delay=delay)  # noqa: E731
    told = {name: wait for name, _, wait in (part.partition(":") for part in options.told.split(",") if part)}
    if options.faults:
        handler = with_faults(handler, _parse_faults(options.faults), options.seed, told)
    if options.at_once:
        handler = at_most_at_once(handler, options.at_once, told.get("429", ""))
    if options.a_second:
        handler = at_most_a_second(handler, options.a_second, told.get("429", ""))
    with ModelServer(handler, port=options.port, keep=False) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:  # who asks is told what was seen so far
            seen = {"connections": server.connections, "open": server.open_connections, "most": server.most_in_flight}
            print(json.dumps(seen), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
