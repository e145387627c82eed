"""
What an agent did, read at the edge: plain steps, OpenAI's messages or items, or OpenTelemetry's spans of GenAI.

All of it is pure, and comes to the steps that coding agents report, too: analysts see every tool that was called, with
what it was given and what came back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast, get_args

from attrs import evolve

from skillopt_es.adapters.agent_output import inside, objects_in, short, shown, text_in
from skillopt_es.events.values import Json
from skillopt_es.ports import AgentStep, StepKind

_KINDS = tuple(kind for kind in get_args(StepKind) if kind != "score")
_STEP_KEYS = ("kind", "text", "output", "exit_code", "ok", "tool", "input")


class UnreadableError(Exception):
    """What an agent returned is not what the contract says; the message goes on after its name."""


# --- plain steps -----------------------------------------------------------------------------------------------------


def read_steps(value: object) -> list[AgentStep]:
    """Steps as they are, or in short: a text is a message, and `{tool, input, output}` a call of a tool."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise UnreadableError("its `steps` are not a list")
    return [_step(number, each) for number, each in enumerate(value, start=1)]


def _step(number: int, value: object) -> AgentStep:
    if isinstance(value, str):
        return AgentStep(kind="message", text=short(value))
    if not isinstance(value, Mapping):
        raise UnreadableError(f"its step {number} is neither a text nor an object")
    unknown = [key for key in value if key not in _STEP_KEYS]
    if unknown:
        raise UnreadableError(f"its step {number} has {unknown[0]!r}; it may have {', '.join(_STEP_KEYS)}")
    kind = value.get("kind", "tool" if "tool" in value else "message")
    if kind not in _KINDS:
        raise UnreadableError(f"its step {number} is of kind {kind!r}, not one of {', '.join(_KINDS)}")
    ok, code = value.get("ok"), value.get("exit_code")
    if not (ok is None or isinstance(ok, bool)) or not (code is None or type(code) is int):
        raise UnreadableError(f"its step {number} has an `ok` that is no bool, or an `exit_code` that is no number")
    said = f"{value['tool']} {shown(cast(Json, value.get('input')))}".rstrip() if "tool" in value else ""
    text = short(str(value.get("text", ""))) or said
    return AgentStep(kind=kind, text=text, output=shown(cast(Json, value.get("output"))), exit_code=code, ok=ok)


# --- OpenAI's messages, and the items of its Responses API -----------------------------------------------------------


def read_messages(value: object) -> list[AgentStep]:
    """A conversation in OpenAI's format; what opens it is the task, and no step."""
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise UnreadableError("its `messages` are not a list of objects")
    steps: list[AgentStep] = []
    waiting: dict[str, int] = {}
    begun = False
    for each in value:
        begun = begun or _is_own(each)
        for call, step in _said(each) if begun else ():
            if step is not None:
                waiting[call] = len(steps)
                steps.append(step)
        answered = text_in(each, "tool_call_id") or text_in(each, "call_id")
        if _is_result(each) and answered:
            _answer(steps, waiting, answered, _content(each.get("content", each.get("output"))))
    return steps


def _is_own(message: Mapping[str, object]) -> bool:
    """Whether it is the agent's own, and not the task: from the first of these on all is its doing."""
    return message.get("role") == "assistant" or message.get("type") in ("function_call", "reasoning")


def _is_result(message: Mapping[str, object]) -> bool:
    return message.get("role") == "tool" or message.get("type") == "function_call_output"


def _said(message: Mapping[str, object]) -> Iterator[tuple[str, AgentStep | None]]:
    """The steps of one message, each with the id under which its result will come."""
    if _is_result(message):
        return
    if message.get("type") == "function_call":
        yield text_in(message, "call_id"), _call(text_in(message, "name"), message.get("arguments"))
        return
    if message.get("type") == "reasoning":
        thought = _content(message.get("summary")) or _content(message.get("content"))
        yield "", _spoken("reasoning", thought)
        return
    thought = text_in(message, "reasoning_content") or text_in(message, "reasoning")
    yield "", _spoken("reasoning", thought)
    text = _content(message.get("content"))
    who = message.get("role")
    yield "", _spoken("message", text if who == "assistant" or not text else f"({who}) {text}")
    for call in objects_in(message, "tool_calls"):
        yield text_in(call, "id"), _call(text_in(call, "function", "name"), inside(call, "function", "arguments"))


def _spoken(kind: StepKind, text: str) -> AgentStep | None:
    return AgentStep(kind=kind, text=short(text)) if text.strip() else None


def _call(name: str, arguments: object) -> AgentStep:
    return AgentStep(kind="tool", text=f"{name} {shown(cast(Json, arguments))}".rstrip())


def _answer(steps: list[AgentStep], waiting: Mapping[str, int], call: str, output: str) -> None:
    """Puts a tool's result beside its call; one that nobody asked for is a step of its own."""
    at = waiting.get(call)
    if at is None:
        steps.append(AgentStep(kind="tool", text="(result)", output=short(output)))
    else:
        steps[at] = evolve(steps[at], output=short(output))


def _content(value: object) -> str:
    """A content's text: a text, or a list of parts; what is no text (a picture) is named."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_part, value)))
    return json.dumps(value, ensure_ascii=False)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    text = text_in(part, "text") or text_in(part, "content") or text_in(part, "refusal")
    return text or f"[{text_in(part, 'type') or 'part'}]"


# --- OpenTelemetry ---------------------------------------------------------------------------------------------------


def read_spans(value: object) -> list[AgentStep]:
    """
    The spans of one trace, as OTLP's JSON or as a plain list; those that are no GenAI ones say nothing.

    Tools are spans `execute_tool`; what models said is in the output messages of their spans.
    """
    spans = list(_spans_in(value))
    if not spans:
        raise UnreadableError("its `spans` hold no span")
    spans.sort(key=_begun)  # a trace is exported as its spans end
    tools = [span for span in spans if _operation(span) == "execute_tool"]
    return [step for span in spans for step in _of_span(span, calls=not tools)]


def _spans_in(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, Mapping):
        resources = objects_in(value, "resourceSpans")
        scopes = [scope for each in resources for scope in objects_in(each, "scopeSpans")]
        yield from (span for scope in scopes for span in objects_in(scope, "spans"))
        yield from objects_in(value, "spans")
    elif isinstance(value, list):
        yield from (each for each in value if isinstance(each, Mapping))


def _begun(span: Mapping[str, object]) -> int:
    for name in ("startTimeUnixNano", "start_time_unix_nano", "start_time"):
        value = span.get(name)
        if isinstance(value, int | str) and str(value).isdecimal():
            return int(value)
    return 0


def _attributes(span: Mapping[str, object]) -> dict[str, object]:
    """A span's attributes as names and plain values, in whichever of the two forms they are."""
    given = span.get("attributes")
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    return {text_in(each, "key"): _plain(inside(each, "value")) for each in objects_in(span, "attributes")}


def _plain(value: Json) -> Json:
    """A value as OTLP wraps it."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue":
        return [_plain(each) for each in cast(list[Json], inside(inner, "values") or [])]
    if kind == "kvlistValue":
        return {text_in(each, "key"): _plain(inside(each, "value")) for each in objects_in(inner, "values")}
    return inner


def _operation(span: Mapping[str, object]) -> str:
    return str(_attributes(span).get("gen_ai.operation.name", ""))


def _of_span(span: Mapping[str, object], *, calls: bool) -> Iterator[AgentStep]:
    attributes = _attributes(span)
    failed = inside(span, "status", "code") in (2, "STATUS_CODE_ERROR", "ERROR")
    if _operation(span) == "execute_tool":
        arguments = attributes.get("gen_ai.tool.call.arguments", attributes.get("gen_ai.tool.arguments"))
        result = attributes.get("gen_ai.tool.call.result", attributes.get("gen_ai.tool.result"))
        step = _call(str(attributes.get("gen_ai.tool.name", "")), arguments)
        yield evolve(step, output=shown(cast(Json, result)), ok=False if failed else None)
        return
    said = attributes.get("gen_ai.output.messages", attributes.get("gen_ai.completion"))
    for message in _parsed(said):
        for part in objects_in(message, "parts") or [message]:
            yield from _of_part(part, calls=calls)
    if failed:
        yield AgentStep(kind="error", text=short(text_in(span, "status", "message") or text_in(span, "name")))


def _of_part(part: Mapping[str, object], *, calls: bool) -> Iterator[AgentStep]:
    """A part of what a model said; a tool that has a span of its own is not told twice."""
    kind = text_in(part, "type")
    if kind == "tool_call":
        if calls:
            yield _call(text_in(part, "name"), part.get("arguments"))
    elif kind in ("reasoning", "thinking"):
        yield from filter(None, [_spoken("reasoning", _content(part.get("content")))])
    else:
        yield from filter(None, [_spoken("message", _content(part.get("content", part.get("text"))))])


def _parsed(value: object) -> Sequence[Mapping[str, Json]]:
    """The messages of an attribute, which is JSON text or the messages themselves."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [{"content": cast(Json, value)}]
    found = value if isinstance(value, list) else [value]
    return [cast("Mapping[str, Json]", each) for each in found if isinstance(each, Mapping)]
