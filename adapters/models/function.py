"""A Python function as a model: what it returns is the answer."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.adapters.background import finished, in_background
from skillopt_es.adapters.models.crashes import despite_crashes
from skillopt_es.adapters.models.retry import ONCE, RetryPolicy
from skillopt_es.adapters.raised import raised_words
from skillopt_es.ports import ALONE, AnswerFunction, CallFailed, ChatReply, ChatRequest, Course, Try


@frozen(kw_only=True)
class FunctionModel:
    """
    Calls `function` once for each request, many at a time: a plain one on threads, an async one on a loop they share.

    What it raises is this attempt's crash, unless it raises CallFailed itself, which may stop the run.
    """

    function: AnswerFunction
    name: str
    timeout_seconds: float
    retry: RetryPolicy = ONCE
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    provides = frozenset({"text", "messages", "tools"})  # it sees the whole request, and may return any reply

    @property
    def identity(self) -> str:
        """Says that the answers come from a function, and which."""
        return f"python {self.name}"

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """What the function returns for a request; raises CallFailed."""
        return await despite_crashes(request, course, self._once, self.retry)

    async def _once(self, request: ChatRequest) -> ChatReply:
        began = self.clock()
        try:
            answer = await self._answer(request)
        except CallFailed:
            raise
        except TimeoutError:
            message = f"{self.name} took longer than {self.timeout_seconds:g} seconds"
            raise CallFailed("timeout", message, latency_ms=self._since(began)) from None
        except Exception as error:
            message = f"{self.name} raised {raised_words(error, Path.cwd())}"
            crash = Try(kind="crash", status=None, message=message, waited_ms=0)
            raise CallFailed("crash", message, latency_ms=self._since(began), tries=(crash,)) from error
        if isinstance(answer, ChatReply):
            return evolve(answer, latency_ms=answer.latency_ms or self._since(began))
        if not isinstance(answer, str):
            message = f"{self.name} returned {type(answer).__name__}, not text or a ChatReply"
            raise CallFailed("config", message, hint="return the answer as a str")
        return ChatReply(text=answer, finish="stop", model=self.name, latency_ms=self._since(began))

    async def _answer(self, request: ChatRequest) -> object:
        return await in_background(lambda _: self._called(request), seconds=self.timeout_seconds)

    def _called(self, request: ChatRequest) -> object:
        answer = self.function(request)
        # A second longer than its caller waits, who says what is to be said.
        return finished(answer, seconds=self.timeout_seconds + 1) if inspect.isawaitable(answer) else answer

    def _since(self, began: float) -> int:
        return round(1000 * (self.clock() - began))

    async def aclose(self) -> None:
        """Nothing to give back."""
