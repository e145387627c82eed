"""What the journal's records of calls are made of, and how they are read back: question, answer, steps, tries."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal

from attrs import asdict, evolve, frozen

from skillopt_es.events.codec import canonical_json
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.journal import CallRow, FinishedCall
from skillopt_es.events.places import Place
from skillopt_es.events.requests import OWN_CALLS, TOLD_COST, RecordedRequest
from skillopt_es.events.values import CallRef, Role, text_digest
from skillopt_es.ports import AgentStep, CallFailed, ChatReply, ChatRequest, ToolCall, Try

compact_json: Callable[[object], str] = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""A value as one JSON text with sorted keys; `json.dumps` would make a new encoder for each of thousands of calls."""


@frozen
class Exchange:
    """One call: the texts that were sent, in order, the answer, and what an agent did before it."""

    sent: tuple[str, ...]
    answer: str
    steps: tuple[AgentStep, ...] = ()


_KEPT = 128  # calls: a step asks for those of its batch at once
_MOST_CHARS = 65_536  # of a call's question: many of that size would hold the memory of a whole run


class LastCalls:
    """The last calls of a log, at hand: a step asks for those that it has just made."""

    def __init__(self) -> None:
        self._calls: dict[CallRef, Exchange] = {}

    def get(self, ref: CallRef) -> Exchange | None:
        """The call, if it is among them."""
        return self._calls.get(ref)

    def keep(self, ref: CallRef, exchange: Exchange) -> None:
        """Have a call at hand that the log holds too; very long ones are read again when they are wanted."""
        if sum(map(len, exchange.sent)) > _MOST_CHARS:
            return
        if len(self._calls) >= _KEPT:
            # A dict keeps its order: this is the oldest.
            self._calls.pop(next(iter(self._calls)))
        self._calls[ref] = exchange


@frozen
class Asked:
    """What a finished call's record says of the question."""

    role: Role
    request: ChatRequest
    model: str
    recorded: RecordedRequest

    @property
    def digest(self) -> str:
        """Names the question, whoever asks it where."""
        return self.recorded.digest(self.model)


def recorded_request(request: ChatRequest) -> RecordedRequest:
    """What is recorded of a request: the digests of its messages and images, and its parameters."""
    params: dict[str, object] = {"max_tokens": request.max_tokens}
    # What is not used is left out, here and below: most requests use little of it.
    if request.temperature is not None:
        params["temperature"] = request.temperature
    if request.effort:
        params["effort"] = request.effort
    if request.schema is not None:
        params["schema"] = request.schema
    if request.tools:
        params["tools"] = [asdict(tool) for tool in request.tools]
        params["tool_choice"] = request.tool_choice
    if request.extra:
        params["extra"] = dict(request.extra)
    used = [
        [number, message.tool_call_id, [asdict(call) for call in message.tool_calls]]
        for number, message in enumerate(request.messages)
        if message.tool_calls or message.tool_call_id
    ]
    if used:  # what a message says of tools beside its text, with its place
        params["tool_use"] = used
    messages = [[message.role, text_digest(message.content)] for message in request.messages]
    recorded: dict[str, object] = {"messages": messages, "params": params}
    images = [
        [number, image.media_type, image.detail, image.digest]
        for number, message in enumerate(request.messages)
        for image in message.images
    ]
    if images:
        recorded["images"] = images
    if request.fields:
        recorded["fields"] = text_digest(canonical_json(dict(request.fields)))
    return RecordedRequest(compact_json(recorded))


def recorded_answer(reply: ChatReply) -> str:
    """What the journal keeps of an answer: its text, and beside it the tools that it asks for."""
    if reply.finish != "tools":
        return reply.text
    calls = [asdict(call) for call in reply.tool_calls]
    return json.dumps({"text": reply.text, "tool_calls": calls}, ensure_ascii=False, sort_keys=True)


def read_answer(recorded: str, finish: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Text and tool calls of a recorded answer; of one that was erased, what is shown in its place."""
    if finish != "tools" or isinstance(recorded, ErasedText):
        return recorded, ()
    parsed = json.loads(recorded)
    return parsed["text"], tuple(ToolCall(**call) for call in parsed["tool_calls"])


def steps_text(steps: Sequence[AgentStep]) -> str:
    """The steps as one text; what says nothing is left out."""
    rows = [{key: value for key, value in asdict(step).items() if value not in (None, "")} for step in steps]
    return compact_json(rows)


def steps_of(text: str) -> tuple[AgentStep, ...]:
    """The steps, read back; where they were erased, one that says so."""
    if isinstance(text, ErasedText):
        return (AgentStep(kind="message", text=text),)
    return tuple(AgentStep(**row) for row in json.loads(text))


def shown_step(step: AgentStep) -> str:
    """One step for a reader: what was done, what came of it, and whether it failed."""
    did = f"$ {step.text}" if step.kind == "command" else step.text
    if step.kind not in ("command", "tool", "message"):
        did = f"({step.kind}) {did}"
    failed = f"(exit code {step.exit_code})" if step.exit_code else "(failed)" if step.ok is False else ""
    return "\n".join(part for part in (did, step.output.rstrip(), failed) if part)


def unanswered_call(asked: Asked) -> FinishedCall:
    """The call as it will be recorded once somebody has answered it, but for the answer."""
    return FinishedCall(
        slot=asked.request.slot,
        role=asked.role,
        stage=asked.request.stage,
        model=asked.model,
        request=asked.recorded,
        outcome="answered",
    )


def answered_call(asked: Asked, reply: ChatReply, *, ahead: bool) -> FinishedCall:
    """A call that was made and answered; `ahead` says that nobody wanted the answer yet."""
    return FinishedCall(  # in one go: nearly every call of a run comes through here
        slot=asked.request.slot,
        role=asked.role,
        stage=asked.request.stage,
        model=asked.model,
        request=asked.recorded,
        outcome="answered",
        response=text_digest(recorded_answer(reply)),
        trace=text_digest(steps_text(reply.steps)) if reply.steps else None,
        finish=reply.finish,
        reply_model=reply.model,
        request_id=reply.request_id,
        input_tokens=reply.usage.input,
        output_tokens=reply.usage.output,
        cached_tokens=reply.usage.cached,
        reasoning_tokens=reply.usage.reasoning,
        latency_ms=reply.latency_ms,
        tries=_tries(reply.tries, reply.cost, own_calls=reply.own_calls),
        ahead=ahead,
    )


def repeating_call(asked: Asked, earlier: CallRow) -> FinishedCall:
    """A call that was not made: it has the answer of an earlier one, and cost nothing."""
    return evolve(
        unanswered_call(asked),
        response=earlier.call.response,
        trace=earlier.call.trace,
        finish=earlier.call.finish,
        reply_model=earlier.call.reply_model,
        input_tokens=0,
        output_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        repeats=earlier.call.slot,
    )


def failed_call(asked: Asked, failure: CallFailed, *, ahead: bool) -> FinishedCall:
    """A call that was made in vain."""
    return evolve(
        unanswered_call(asked),
        outcome="failed",
        error_kind=failure.kind,
        error_message=failure.message,
        request_id=failure.request_id,
        latency_ms=failure.latency_ms,
        tries=_tries(failure.tries),
        ahead=ahead,
    )


def _tries(tries: Sequence[Try], cost: Decimal | None = None, *, own_calls: bool = False) -> str:
    """The failed tries as they are recorded, then what an agent spent in the last one, and that it made calls there."""
    rows = [_try(one) for one in tries]
    if cost is not None:
        rows.append({"kind": TOLD_COST, "status": None, "message": str(cost), "waited_ms": 0})
    if own_calls:
        rows.append({"kind": OWN_CALLS, "status": None, "message": "", "waited_ms": 0})
    return compact_json(rows) if rows else "[]"


def _try(one: Try) -> dict[str, object]:
    """A try as it is recorded; without a word about tokens when none were reported."""
    row: dict[str, object] = {
        "kind": one.kind,
        "status": one.status,
        "message": one.message,
        "waited_ms": one.waited_ms,
    }
    used = {name: count for name, count in asdict(one.usage).items() if count is not None}
    row |= {"usage": used} if used else {}
    return row | {OWN_CALLS: True} if one.own_calls else row


class Repeats:
    """
    The answered calls of a run by what they asked: at temperature 0 an answer serves again, where the config says so.

    Only answers from other parts of the run count, so that it does not matter which of two calls ended first. Those
    that were made ahead of a verdict count once somebody has asked for them: a run without them has no others.
    """

    def __init__(self, rows: Iterable[CallRow], used: Collection[CallRef] = ()) -> None:
        self._rows: dict[str, dict[str, CallRow]] = {}
        self._ahead: dict[tuple[str, str], CallRow] = {}
        for row in rows:
            self.add(row)
            if row.call.ahead and row.ref in used:
                self.asked_for(row.call.slot, row.call.request_digest)

    def add(self, row: CallRow) -> None:
        """One more call; one that failed, was cut, or repeats another is no use."""
        call = row.call
        if call.outcome != "answered" or call.finish == "length" or call.repeats:
            return
        if call.ahead:
            self._ahead[call.slot, call.request_digest] = row
        else:
            self._rows.setdefault(call.request_digest, {})[call.slot] = row

    def asked_for(self, slot: str, digest: str) -> None:
        """A request was put; if its answer was there ahead of time, it is one like all others now."""
        row = self._ahead.pop((slot, digest), None)
        if row is not None:
            self._rows.setdefault(digest, {})[slot] = row

    def find(self, request: ChatRequest, digest: str) -> CallRow | None:
        """The call of another step or evaluation that asked the very same; only where an answer is no draw."""
        if request.temperature != 0 or Place(request.slot).drawn_anew:  # a gate that draws again wants a new answer
            return None
        here = _part(request.slot)
        slots = [slot for slot in self._rows.get(digest, ()) if _part(slot) != here]
        # The same one, whichever of them was recorded first.
        return self._rows[digest][min(slots)] if slots else None


def _part(slot: str) -> str:
    """What belongs together: calls that may be in flight at the same time."""
    return Place(slot).starts(2)
