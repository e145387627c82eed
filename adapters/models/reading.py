"""What all wire formats share: their port, small readings of JSON that nobody has checked yet, and parts of replies."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from attrs import evolve

from skillopt_es.adapters.models.errors import (
    FILTER_CODES,
    ErrorBody,
    Failure,
    OddError,
    failure,
    failure_of,
    no_odd_error,
    read_error,
    request_id_in,
)
from skillopt_es.adapters.models.sse import ServerEvent, events_in, is_stream
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatReply, ChatRequest, Image

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
    if error.codes & FILTER_CODES:
        return ChatReply(text="", finish="filtered", request_id=request_id_in(headers))
    return failure_of(status, headers, error)


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


_MOST_TOKENS = 10**12


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


Feature = Literal["schema", "temperature", "effort"]
ALL_FEATURES: tuple[Feature, ...] = ("schema", "temperature", "effort")


class Wire(Protocol):
    """One wire format, with whatever its dialect adds."""

    @property
    def shows(self) -> frozenset[str]:
        """What a question may show beside text: `images`, and with `image_detail` how closely to look at them."""
        ...

    @property
    def names(self) -> Mapping[Feature, tuple[str, ...]]:
        """The words by which an endpoint's complaint about an optional field is known."""
        ...

    @property
    def passes_on(self) -> bool:
        """Whether it can hand on the further fields of a question, which are OpenAI's."""
        ...

    def body(self, request: ChatRequest) -> dict[str, Json]:
        """The JSON object that asks this question; optional fields are there only when they were given."""
        ...

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> ChatReply | Failure:
        """The model's answer, or what went wrong instead; nothing is raised, whatever the bytes are."""
        ...


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
