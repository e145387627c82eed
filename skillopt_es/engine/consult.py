"""Asking the optimizer: one question, one parsed answer; a useless one may be asked for once more, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from attrs import evolve, frozen

from skillopt_es.engine.calls import Answer, Calls
from skillopt_es.events.catalog import Event
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef
from skillopt_es.ports import CallFailed, ChatRequest, Message
from skillopt_es.replies.json_reader import Unusable

V = TypeVar("V")
_ITS_OWN_FAULT = frozenset({"context_length", "empty", "invalid_reply", "bad_request"})  # asking later would not help
_SILENT = frozenset({"empty", "invalid_reply"})
_CUT = Unusable("the reply was cut off at the length limit; make it much shorter")
_REPEATED = 300  # characters of a reply that was cut off: all of it would take room, and be taken up again


@frozen(kw_only=True)
class Consulted(Generic[V]):
    """The result of asking the optimizer: a value, or why there is none (`failed`: an outage), and the calls made."""

    value: V | None
    failed: bool = False
    why: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class Asking(Generic[V]):
    """
    A question to the optimizer: what is sent, how a reply is read, and the event that states the result.

    With `silence_fails` a reply without a word is as good as none: where nobody says anything, nobody is there.
    """

    request: ChatRequest
    read: Callable[[str], V | Unusable]
    event: Callable[[Consulted[V]], Event]
    silence_fails: bool = False


async def consult(calls: Calls, asking: Asking[V], *, again: bool) -> Consulted[V]:
    """The optimizer's answer, read; with `again`, a useless one is asked for a second time."""
    made: tuple[CallRef, ...] = ()
    asked = asking.request
    why = ""
    for last_chance in (False, True) if again else (True,):
        try:
            answer = await calls.ask("optimizer", asked)
        except CallFailed as failure:
            outage = failure.kind not in _ITS_OWN_FAULT or (asking.silence_fails and failure.kind in _SILENT)
            return Consulted(value=None, failed=outage, why=f"{failure.kind}: {failure.message}", calls=made)
        made = (*made, answer.ref)
        found = _CUT if answer.finish == "length" else asking.read(answer.text)
        if not isinstance(found, Unusable):
            return Consulted(value=found, calls=made)
        why = found.why
        if not last_chance:
            asked = asked_again(asking.request, answer, why)
    return Consulted(value=None, why=why, calls=made)


def asked_again(request: ChatRequest, answer: Answer, why: str) -> ChatRequest:
    """The same question with the useless reply and what was wrong with it."""
    reason = Message("user", f"This reply cannot be used: {why}. Answer the same question again.")
    return evolve(
        request,
        slot=Place(request.slot).again,
        messages=(*request.messages, Message("assistant", _repeated(answer)), reason),
    )


def _repeated(answer: Answer) -> str:
    if answer.finish == "length" and len(answer.text) > _REPEATED:
        return f"{answer.text[:_REPEATED]} …"
    return answer.text or "(nothing)"
