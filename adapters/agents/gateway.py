"""
An endpoint on loopback for agents that ask a model themselves: their calls are the run's.

Each attempt has a key of its own, which ties its calls to it and is worth nothing after it; the provider's stays here.
A call that cannot be made, because the budget is used up or the model is gone for good, ends the attempt at once: it is
no result of the agent's, and the run pauses.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from aiohttp import web
from attrs import define, evolve, field

from skillopt_es.adapters.agent_output import bounded
from skillopt_es.adapters.agents.agent import OwnAgent
from skillopt_es.adapters.agents.gateway_wire import (
    RefusedError,
    error_json,
    failed_json,
    message_json,
    read_wanted,
    reply_events,
    reply_json,
)
from skillopt_es.adapters.agents.trajectories import read_messages
from skillopt_es.adapters.models.crashes import despite_crashes, policy_of
from skillopt_es.adapters.models.endpoint import refused
from skillopt_es.events.values import Json
from skillopt_es.ports import (
    ALONE,
    AgentStep,
    AttemptLost,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    Course,
    Elsewhere,
    Gateway,
    Message,
    ModelSettings,
    OpenModel,
    OwnCalls,
    Usage,
)

# By aiohttp's own bound, 1 MiB, a conversation with a few pictures is refused; without any, one fills the memory.
_LARGEST_BODY = 64 * 2**20
_NOTHING_SPENT = Usage(input=0, output=0, cached=0, reasoning=0)
_AT_ONCE = {"x-should-retry": "false"}  # whoever asks again does so here, and no library on top of that


@define(eq=False)
class _Attempt:
    """One attempt at the gateway: its calls so far, which of them failed last, and why it cannot go on."""

    slot: str
    most_tokens: int
    stopped: asyncio.Future[BaseException]
    asks: bool = False
    failed: str = ""
    asked: list[tuple[ChatRequest, ChatReply]] = field(factory=list)
    calls: set[asyncio.Future[ChatReply]] = field(factory=set)

    async def ask(self, request: ChatRequest, calls: OwnCalls) -> ChatReply:
        """The answer; it is journaled also when the agent has gone away meanwhile."""
        self.asks = True
        call = asyncio.ensure_future(calls.ask(request))
        self.calls.add(call)
        call.add_done_callback(self._ended)
        reply = await asyncio.shield(call)
        self.asked.append((request, reply))
        return reply

    def _ended(self, call: asyncio.Future[ChatReply]) -> None:
        self.calls.discard(call)
        error = None if call.cancelled() else call.exception()
        if isinstance(error, CallFailed):
            self.failed = error.message
        if error is not None and not isinstance(error, CallFailed) and not self.stopped.done():
            self.stopped.set_result(error)

    def steps(self, answer: str) -> tuple[AgentStep, ...]:
        """What the agent did, as the longest of its conversations tells it, whichever of its calls ended first."""
        if not self.asked:
            return ()
        request, reply = max(self.asked, key=lambda each: (len(each[0].messages), str(each)))
        said = [_as_json(message) for message in request.messages]
        steps = read_messages([*said, message_json(reply)])
        if steps and steps[-1].kind == "message" and steps[-1].text == answer:
            steps.pop()
        return tuple(steps)


def _as_json(message: Message) -> dict[str, Json]:
    reply = ChatReply(text=message.content, finish="stop", tool_calls=message.tool_calls)
    return {**message_json(reply), "role": message.role, "tool_call_id": message.tool_call_id}


@define(eq=False)
class GatewayAgent:
    """An agent of the user's own, with a gateway to the model that it asks."""

    agent: OwnAgent
    upstream: ChatModel
    model: str
    _calls: OwnCalls | None = None
    _attempts: dict[str, _Attempt] = field(factory=dict)
    _runner: web.AppRunner | None = None
    _address: str = ""
    _loop: asyncio.AbstractEventLoop | None = None
    _opening: asyncio.Lock | None = None

    @property
    def identity(self) -> str:
        """Names the agent and the model that it asks."""
        return f"{self.agent.identity} via {self.upstream.identity}"

    def route(self, calls: OwnCalls) -> None:
        """From now on its calls go there."""
        self._calls = calls

    async def within_reach(self) -> str:
        """What of the user's keys its program can reach, and why."""
        return await self.agent.within_reach()

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The agent's answer; raises CallFailed, and whatever kept one of its calls from being made."""
        return await despite_crashes(
            request, course, lambda attempt: self._once(attempt, course), policy_of(self.agent.settings)
        )

    async def _once(self, request: ChatRequest, course: Course) -> ChatReply:
        if request.elsewhere is not None:  # the endpoint is on the worker, and its calls come back here
            return await self._elsewhere(request, request.elsewhere)
        async with self._attempt(request) as (attempt, gateway):
            try:
                reply = await self._unless_stopped(attempt, request, course, gateway)
            except CallFailed as failed:
                if attempt.asks:
                    _say_that_it_asked(failed)
                raise
        # What it reports of tokens is what its calls have cost already.
        reply = evolve(reply, usage=_NOTHING_SPENT, own_calls=attempt.asks)
        if any(step.kind != "score" for step in reply.steps):
            return reply
        return evolve(reply, steps=bounded((*attempt.steps(reply.text), *reply.steps)))

    async def _elsewhere(self, request: ChatRequest, worker: Elsewhere) -> ChatReply:
        calls, asks, lost = self._calls, False, False
        assert calls is not None

        async def ask(own: ChatRequest) -> ChatReply:
            nonlocal asks
            asks = True
            return await calls.ask(own)

        try:
            reply = await self.agent.elsewhere(request, worker, ask)
            return evolve(reply, own_calls=asks)
        except CallFailed as failed:
            lost = isinstance(failed, AttemptLost)
            if asks:
                _say_that_it_asked(failed)
            raise
        finally:
            calls.over(request.slot, lost=lost)

    async def aclose(self) -> None:
        """Ends the endpoint, and gives the model's connections back."""
        runner, self._runner = self._runner, None
        if runner is not None and self._loop is asyncio.get_running_loop():
            await runner.cleanup()
        await self.upstream.aclose()

    @asynccontextmanager
    async def _attempt(self, request: ChatRequest) -> AsyncIterator[tuple[_Attempt, Gateway]]:
        address = await self._open()
        key = f"sk-attempt-{secrets.token_urlsafe(24)}"
        attempt = _Attempt(request.slot, request.max_tokens, asyncio.get_running_loop().create_future())
        self._attempts[key] = attempt
        try:
            yield attempt, Gateway(base_url=f"{address}/v1", api_key=key, model=self.model)
        finally:
            del self._attempts[key]
            # What was begun is paid for: it is journaled before anything is made of the attempt.
            await asyncio.gather(*attempt.calls, return_exceptions=True)
            assert self._calls is not None
            self._calls.over(attempt.slot)
        if attempt.stopped.done():
            raise attempt.stopped.result()

    async def _unless_stopped(
        self, attempt: _Attempt, request: ChatRequest, course: Course, gateway: Gateway
    ) -> ChatReply:
        """The agent's answer; an agent is ended whose call cannot be made."""
        answer = asyncio.ensure_future(self.agent.attempted(request, course, gateway))
        try:
            await asyncio.wait((answer, attempt.stopped), return_when=asyncio.FIRST_COMPLETED)
            if attempt.stopped.done():
                raise attempt.stopped.result()
            return await self._told(answer, attempt)
        finally:
            answer.cancel()
            with suppress(asyncio.CancelledError, CallFailed):
                await answer

    async def _told(self, answer: Awaitable[ChatReply], attempt: _Attempt) -> ChatReply:
        """The answer; an agent that crashes over a call of its own seldom says what was wrong with that."""
        try:
            return await answer
        except CallFailed as failure:
            if attempt.failed:
                failure.message += f"; a call of {self.model} had failed: {attempt.failed}"
            raise

    # --- the endpoint ------------------------------------------------------------------------------------------------

    async def _open(self) -> str:
        """The endpoint's address; it is opened with the first attempt, in whichever loop that is."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._runner, self._opening = loop, None, asyncio.Lock()
        assert self._opening is not None
        async with self._opening:
            if self._runner is None:
                app = web.Application(client_max_size=_LARGEST_BODY)
                app.router.add_route("*", "/{path:.*}", self._answer)
                self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
                await self._runner.setup()
                site = web.TCPSite(self._runner, "127.0.0.1", 0)
                await site.start()
                self._address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self._address

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        """Whatever is asked, with an answer or a sentence that says why there is none."""
        try:
            return await self._routed(http)
        except RefusedError as refused:
            return _refusal(refused.status, refused.message)
        except CallFailed as failure:
            status, body = failed_json(failure)
            return web.json_response(body, status=status, headers=_AT_ONCE)

    async def _routed(self, http: web.Request) -> web.StreamResponse:
        attempt = self._attempts.get(http.headers.get("Authorization", "").removeprefix("Bearer ").strip())
        if attempt is None:
            raise RefusedError(401, "this key is of no attempt that is under way: use OPENAI_API_KEY as it is set")
        if http.method == "GET" and http.path in ("/v1/models", f"/v1/models/{self.model}"):
            model: Json = {"id": self.model, "object": "model", "created": 0, "owned_by": "skillopt-es"}
            return web.json_response({"object": "list", "data": [model]} if http.path == "/v1/models" else model)
        if http.method != "POST" or http.path != "/v1/chat/completions":
            raise RefusedError(404, "the gateway has POST /v1/chat/completions and GET /v1/models, and nothing else")
        return await self._completed(http, attempt)

    async def _completed(self, http: web.Request, attempt: _Attempt) -> web.StreamResponse:
        wanted = read_wanted(await http.read(), slot=attempt.slot, model=self.model, most_tokens=attempt.most_tokens)
        assert self._calls is not None
        number = f"{len(attempt.asked)}"
        try:
            reply = await attempt.ask(wanted.request, self._calls)
        except CallFailed:
            raise
        except BaseException as error:  # its attempt says it; the agent is told before it is ended
            if isinstance(error, asyncio.CancelledError):
                raise
            why = str(error) or "its budget is used up, or it was asked to stop"
            raise RefusedError(402, f"the run pauses: {why}") from error
        if not wanted.stream:
            return web.json_response(reply_json(reply, model=self.model, number=number))
        events = reply_events(reply, model=self.model, number=number, usage=wanted.usage_in_stream)
        return await _streamed(http, list(events))


def _say_that_it_asked(failed: CallFailed) -> None:
    """The last try of an attempt made calls of its own; those before it never reached the agent."""
    failed.tries = (*failed.tries[:-1], *(evolve(each, own_calls=True) for each in failed.tries[-1:]))


async def _streamed(http: web.Request, events: Sequence[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(http)
    for event in events:
        await response.write(event)
    await response.write_eof()
    return response


def _refusal(status: int, message: str) -> web.Response:
    kind = {401: "invalid_api_key", 402: "insufficient_quota", 404: "not_found"}.get(status, "invalid_request_error")
    body = json.dumps(error_json(message, kind))
    return web.Response(status=status, text=body, content_type="application/json", headers=_AT_ONCE)


def with_gateway(
    agent: OpenModel, model: OpenModel, backend: str, settings: ModelSettings, environ: Mapping[str, str]
) -> ChatModel:
    """An agent and the model that it asks, opened; limits, address and key are the model's, and the agent has none."""
    opened = agent(evolve(settings, requests_per_minute=0, api_key_env=""), environ)
    if not isinstance(opened, OwnAgent):
        raise refused(settings, "gateway", f" is for agents of the user's own, and {settings.backend} is none")
    upstream = model(evolve(settings, backend=backend, agent=None), environ)
    return GatewayAgent(evolve(opened, spent=_NOTHING_SPENT), upstream, settings.model)


def on_worker(agent: ChatModel, model: str) -> GatewayAgent:
    """An agent on a worker, with an endpoint beside it whose calls the writer makes: `route` says how it is asked."""
    assert isinstance(agent, OwnAgent)
    return GatewayAgent(evolve(agent, spent=_NOTHING_SPENT), _WritersModel(), model)


class _WritersModel:
    """The model of an agent on a worker, which the writer alone has."""

    @property
    def identity(self) -> str:
        """Nobody asks: a worker records nothing."""
        return "the writer's model"

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """Never: an agent's calls go where they were routed."""
        raise AssertionError("a worker has no model")

    async def aclose(self) -> None:
        """Nothing to give back."""
