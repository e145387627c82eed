"""
What all wire formats share: their port, small readings of JSON that nobody has checked yet, and parts of replies.

A reply may be a stream of events: bytes in pieces of any size become events, whatever the pieces cut through.

An endpoint that asks to come later says when in headers or in the words of an error: in whole and fractional seconds,
milliseconds, HTTP dates, moments, and durations as Go writes them (`1m6.5s`).
"""

from __future__ import annotations

import base64
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import ClassVar, Literal

from attrs import evolve, frozen

from skillopt_es.adapters.models.errors import (
    ErrorBody,
    Failure,
    OddError,
    failure,
    failure_of,
    read_error,
)
from skillopt_es.adapters.models.known import KNOWN
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatReply, ChatRequest, Image, Tool


@frozen
class ServerEvent:
    """One event; `name` is empty when the server gave none."""

    name: str
    data: str

    def object(self) -> Mapping[str, object] | None:
        """The JSON object in its data, if that is what it holds."""
        try:
            parsed: object = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        return parsed if isinstance(parsed, dict) else None


class EventParser:
    """Takes bytes as they come and gives events as they are complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that this piece completes."""
        if not piece:
            return
        # A CR that ends one piece and an LF that begins the next are one line end.
        split_line_end = self._after_cr and piece.startswith(b"\n")
        self._after_cr = piece.endswith(b"\r")
        if split_line_end:
            piece = piece[1:]
        # Only CR and LF end a line here: str.splitlines would also split at characters inside JSON texts.
        lines = (self._rest + piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            event = self._line(line)
            if event is not None:
                yield event

    def close(self) -> Iterator[ServerEvent]:
        """A last event that lacks its blank line, if its data is whole JSON."""
        for line in (self._rest, b""):
            event = self._line(line)
            if event is not None and (event.object() is not None or event.data == "[DONE]"):
                yield event
        self._rest = b""

    def _line(self, raw: bytes) -> ServerEvent | None:
        if not raw:
            name, data = self._name, self._data
            self._name, self._data = "", []
            return ServerEvent(name, "\n".join(data)) if data else None
        # A byte order mark may stand before the first field.
        field, _, value = raw.decode("utf-8", "replace").lstrip("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None


def events_in(body: bytes) -> list[ServerEvent]:
    """All events of a whole stream."""
    parser = EventParser()
    return [*parser.feed(body), *parser.close()]


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a reply is a stream of events."""
    return headers.get("content-type", "").startswith("text/event-stream")


def no_odd_error(parsed: Mapping[str, object]) -> None:
    """Most providers report errors as OpenAI does, or by their status."""


Object = Mapping[str, object]
NOTHING: Object = {}
Read = Callable[[int, Mapping[str, str], Object], ChatReply | Failure]
Assemble = Callable[[Sequence[ServerEvent]], Object | None]


def read_reply(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    read: Read,
    assemble: Assemble,
    odd_error: OddError = no_odd_error,
) -> ChatReply | Failure:
    """
    The answer in a complete reply, streamed or not, by the two readings of one wire format.

    `odd_error` reads replies whose status is an error's; in any other, `read` knows where to look.
    """
    if not 200 <= status < 300:
        return refused_by_endpoint(status, headers, read_error(body, odd_error))
    request_id = request_id_in(headers)
    if is_stream(headers):
        whole = assemble(events_in(body))
        if whole is None:
            message = f"HTTP {status}, but the stream ended before its last event"
            return failure("transport", message, status=status, request_id=request_id)
        return read(status, headers, whole)
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        message = f"HTTP {status}, but the body is not JSON: {body[:200].decode(errors='replace')}"
        return failure("transport", message, status=status, request_id=request_id)
    if not isinstance(parsed, dict):
        return failure("invalid_reply", "the reply is not a JSON object", status=status, request_id=request_id)
    return read(status, headers, parsed)


def refused_by_endpoint(status: int, headers: Mapping[str, str], error: ErrorBody) -> ChatReply | Failure:
    """What an error means: a content filter has answered, anything else has not."""
    if error.codes & KNOWN.filter_codes:
        return ChatReply(text="", finish="filtered", request_id=request_id_in(headers))
    return failure_of(status, headers, error, request_id_in(headers))


_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id")


def request_id_in(headers: Mapping[str, str]) -> str:
    """What the endpoint calls this request, under whichever name it says so."""
    for name in _REQUEST_ID_HEADERS:
        found = headers.get(name)
        if found:
            return found
    return ""


def as_object(value: object) -> Object:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else NOTHING


def as_list(value: object) -> Sequence[object]:
    """The value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def as_name(value: object) -> str:
    """Text that any database takes: JSON can spell half of a surrogate pair."""
    return as_text(value).encode("utf-8", "replace").decode()


_MOST_TOKENS = 10**12  # a log holds no more than 64 bits; see `as_count`


def as_count(value: object) -> int | None:
    """A number of tokens, or None for what is none: no reply is made of a trillion of them."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def total(*counts: int | None) -> int | None:
    """The sum of what is known; None if the first is not."""
    if not counts or counts[0] is None:
        return None
    return sum(count for count in counts if count is not None)


def parsed_json(body: bytes) -> object:
    """What the bytes spell in JSON, None for what is none."""
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return parsed


# --- waits that an endpoint asks for ----------------------------------------------------------------------------------

# By the headers of an answer alone nobody waits longer.
LONGEST_SPENT = 120.0

# OpenAI and most that imitate it, Anthropic, and gateways.
_ALLOWANCES = (
    *((f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}") for what in ("requests", "tokens")),
    *(
        (f"anthropic-ratelimit-{what}-remaining", f"anthropic-ratelimit-{what}-reset")
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
# As Go writes a duration (time.Duration.String), and OpenAI's headers with it.
_GO_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# "Please try again in 6m0s", "retry after 7 seconds", "Please retry in 34.07s": who says it here often has no header.
_NUMBER = r"\d{1,6}(?:\.\d+)?"
_SAID = re.compile(
    rf"\b(?:try again|retry) (?:in|after) (?:((?:{_NUMBER}(?:ms|s|m|h))+)\b|({_NUMBER}) ?(milli)?seconds?\b)",
    re.IGNORECASE,
)
# From the first on a number is a moment in milliseconds, from the second on one in seconds; below, a duration.
_MILLISECOND_TIMES = 1e11
_SECOND_TIMES = 1e9  # the year 2001


def server_wait(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds the server asks us to stay away (`retry-after-ms`, `retry-after`), None if it does not."""
    milliseconds = _positive(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    return (_positive(text) or _until_date(text, now)) if text else None


def said_wait(message: str) -> float | None:
    """How many seconds the words of an error ask for, None if they do not."""
    found = _SAID.search(message)
    if found is None:
        return None
    duration, number, milli = found.groups()
    wait = _go_duration(duration.lower()) if duration else _positive(number)
    return wait / 1000 if wait is not None and milli else wait


def spent_wait(headers: Mapping[str, str], now: float) -> float | None:
    """How long until the endpoint's allowances are filled again, where its headers say that nothing is left of one."""
    waits = [_until(headers.get(reset, ""), now) for left, reset in _ALLOWANCES if headers.get(left) == "0"]
    return max((wait for wait in waits if wait is not None and wait <= LONGEST_SPENT), default=None)


def _until(text: str, now: float) -> float | None:
    """A duration, or the time until a moment; a large number is a moment, in seconds or milliseconds."""
    number = _positive(text)
    if number is None:
        return _go_duration(text) or _until_timestamp(text, now)
    if number < _SECOND_TIMES:
        return number
    wait = (number if number < _MILLISECOND_TIMES else number / 1000) - now
    return wait if wait > 0 else None


def _go_duration(text: str) -> float | None:
    parts = _GO_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _GO_UNITS[unit] for number, unit in parts) or None


def _until_timestamp(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        wait = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return wait if wait > 0 else None


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _until_date(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        wait = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return wait if wait > 0 else None


# --- wire formats -----------------------------------------------------------------------------------------------------

Feature = Literal["schema", "temperature", "effort"]
ALL_FEATURES: tuple[Feature, ...] = ("schema", "temperature", "effort")


@frozen(kw_only=True)
class Wire(ABC):
    """One wire format for one model, with whatever its dialect adds."""

    # What a question may show beside text: `images`, and with `image_detail` how closely to look at them.
    shows: ClassVar[frozenset[str]]
    # The words by which an endpoint's complaint about an optional field is known.
    names: ClassVar[Mapping[Feature, tuple[str, ...]]]
    # Whether it can hand on the further fields of a question, which are OpenAI's.
    passes_on: ClassVar[bool] = False
    model: str
    schemas: bool = True
    stream: bool = False

    @abstractmethod
    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question; optional fields are there only when they were given."""

    @abstractmethod
    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ChatReply | Failure:
        """The model's answer, or what went wrong instead; nothing is raised, whatever the bytes are."""


def system_text(request: ChatRequest) -> str:
    """What the system says in all of its messages."""
    return "\n\n".join(message.content for message in request.messages if message.role == "system")


def shared(request: ChatRequest, tool: Callable[[Tool], Json], choice: Callable[[str], Json]) -> dict[str, Json]:
    """The fields that all formats call alike: the temperature and the tools, where a question has them."""
    body: dict[str, Json] = {} if request.temperature is None else {"temperature": request.temperature}
    if request.tools:
        body["tools"] = [tool(each) for each in request.tools]
        if request.tool_choice:
            body["tool_choice"] = choice(request.tool_choice)
    return body


def has(request: ChatRequest, feature: Feature) -> bool:
    """Whether the question uses an optional field."""
    if feature == "schema":
        return request.schema is not None
    return request.temperature is not None if feature == "temperature" else bool(request.effort)


def without(request: ChatRequest, feature: Feature) -> ChatRequest:
    """The same question without an optional field."""
    if feature == "schema":
        return evolve(request, schema=None)
    return evolve(request, temperature=None) if feature == "temperature" else evolve(request, effort="")


def base64_of(image: Image) -> str:
    """The picture as JSON can hold it."""
    return base64.b64encode(image.data).decode("ascii")


def data_uri(image: Image) -> str:
    """The picture as an address that holds all of it."""
    return f"data:{image.media_type};base64,{base64_of(image)}"
