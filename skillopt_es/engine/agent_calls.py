"""The calls that an agent makes itself: each has a slot below its attempt's, by what it asks and how often it did."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from attrs import define, evolve, field

from skillopt_es.engine.call_records import recorded_request
from skillopt_es.engine.calls import Calls
from skillopt_es.events.places import Place
from skillopt_es.ports import ChatReply, ChatRequest


@define
class AgentCalls:
    """
    Calls of the target's model, made for its agent.

    An agent that was killed midway and begins again asks the same things. By what it asks, it finds the answers that it
    has had, in whatever order it asks. The second of two equal questions is another draw, and has a slot of its own.
    `asks` gets each attempt that asks something.
    """

    calls: Calls
    asks: Callable[[str], None] = lambda attempt: None
    _taken: dict[str, dict[str, set[int]]] = field(factory=dict)
    _had: dict[str, dict[str, ChatReply]] = field(factory=dict)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The answer, from the journal if it is there."""
        digest = hashlib.sha256(recorded_request(request).text.encode()).hexdigest()[:16]
        taken = self._taken.setdefault(request.slot, {}).setdefault(digest, set())
        number = next(each for each in range(1, len(taken) + 2) if each not in taken)
        taken.add(number)
        slot, had = Place(request.slot).own_call(digest, number), self._had.setdefault(request.slot, {})
        self.asks(slot.attempt or request.slot)
        if slot in had:
            return had[slot]
        try:
            answer = await self.calls.ask("target", evolve(request, slot=slot))
        except BaseException:
            taken.discard(number)  # after a failure the same is asked again
            raise
        had[slot] = ChatReply(text=answer.text, finish=answer.finish, tool_calls=answer.tool_calls, usage=answer.usage)
        return had[slot]

    def over(self, slot: str, *, lost: bool = False) -> None:
        """The attempt at this slot asks no more; one that was lost is made again, and finds the answers it has had."""
        self._taken.pop(slot, None)
        if not lost:
            self._had.pop(slot, None)
