"""How one call goes: its question as it is sent, its failed tries, and what it has to remember between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import define, field, frozen

from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.reading import Feature
from skillopt_es.adapters.models.retry import PastTries
from skillopt_es.ports import ChatRequest, Try, Wait, rest


@frozen
class Question:
    """A request, ready for the wire; `features` are its optional fields that may be left out."""

    request: ChatRequest
    body: bytes = field(repr=False)
    request_id: str
    tokens: int
    features: tuple[Feature, ...]


@define
class Failed:
    """A failed try that reached the wire (or found the circuit open, then `on_wire` is false)."""

    failure: Failure
    latency_ms: int = 0
    on_wire: bool = True
    began: float = 0.0
    level: int = 0
    token: str = field(default="", repr=False)


@define
class Course:
    """How one call went so far."""

    question: Question
    tries: list[Try] = field(factory=list)
    past: PastTries = field(factory=PastTries)
    deadline: float | None = None
    put_off_at: float | None = None
    renewed: bool = False

    async def rest(self, why: str, seconds: float, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Waits to be let through."""
        return await rest(self.question.request, Wait(kind=why, seconds=seconds, holds=True), sleep)

    def note(self, failed: Failure, kind: str, wait: float = 0.0) -> None:
        """One more try that gave no answer."""
        self.tries.append(
            Try(
                kind=kind,
                status=failed.status,
                message=failed.told,
                waited_ms=round(1000 * wait),
                usage=failed.usage,
            )
        )
