"""
A wire format: pure functions between a question, the JSON that asks it, and the bytes that come back.

Everything else about a call (address, key, limits, retries, connections) is the same for all of them: `http_model.py`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal, Protocol

from attrs import evolve

from skillopt_es.adapters.models.errors import Failure
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatReply, ChatRequest, Image

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
