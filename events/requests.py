"""
What a call asked and what its tries may have cost, and how the log keeps that.

A request is nearly all digests of its messages: it is kept as a form, which thousands of calls share, with a mark in
the place of each, and the digests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from attrs import frozen

from skillopt_es.events.values import Json, digest_of


@frozen
class RecordedRequest:
    """
    A request as it is recorded, by its canonical JSON: its texts are named by digest.

    The text is what was hashed, so it is kept as it is; it is read only where somebody asks what it says.
    """

    text: str

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """Who said each message, and the digest of its text."""
        return tuple((role, digest) for role, digest in self.said.get("messages", ()))

    @property
    def images(self) -> tuple[tuple[int, str, str, str], ...]:
        """The number of the message that shows each image, the image's type and detail, and its digest."""
        return tuple((number, kind, detail, digest) for number, kind, detail, digest in self.said.get("images", ()))

    @property
    def params(self) -> Mapping[str, Json]:
        """All that was asked beside the messages: limits, tools, a schema."""
        params: Mapping[str, Json] = self.said.get("params", {})
        return params

    @property
    def max_tokens(self) -> int:
        """The limit of the answer."""
        most: int = self.said["params"]["max_tokens"]
        return most

    @property
    def digests(self) -> Iterator[str]:
        """The texts and the images that it names."""
        yield from (digest for _, digest in self.messages)
        yield from (digest for *_, digest in self.images)

    @cached_property
    def said(self) -> dict[str, Any]:
        """The whole of it as plain JSON."""
        said: dict[str, Any] = json.loads(self.text)
        return said

    def digest(self, model: str) -> str:
        """Names everything that reaches the wire, but keys and headers, when this model is asked."""
        return request_digest(model, self.text)


@lru_cache(maxsize=1024)
def request_digest(model: str, request: str) -> str:
    """The digest of a request by its text; asked for twice or thrice a call."""
    return digest_of(f"{model}\n{request}".encode())


Form = tuple[str, str, str, str]
"""The role, stage, model and request form of a call."""

FORMS_QUERY = "select id, role, stage, model, request from forms order by id"

_DIGEST = re.compile(r'"([0-9a-f]{64})"')
_MARK = '"#"'
_HEX, _RAW = len(digest_of(b"")), len(digest_of(b"")) // 2  # two hexadecimal digits are a byte


def split_request(request: str) -> tuple[str, bytes]:
    """The request with marks in place of its digests, and the digests; both together give it back."""
    parts = _DIGEST.split(request)
    form, texts = _MARK.join(parts[::2]), bytes.fromhex("".join(parts[1::2]))
    if form.count(_MARK) == len(parts) // 2 and join_request(form, texts) == request:
        return form, texts
    return request, b""  # it has a mark of its own, which is rare enough to store it as it is


def join_request(form: str, texts: bytes) -> str:
    """The request that was split; raises ValueError for what no request was split into."""
    if not texts:
        return form
    template, places = _template(form)
    if len(texts) != _RAW * places:
        raise ValueError("a request has as many texts as its form has places for them")
    digests = texts.hex()
    return template % tuple([digests[start : start + _HEX] for start in range(0, len(digests), _HEX)])


@lru_cache(maxsize=256)
def _template(form: str) -> tuple[str, int]:
    """The form as a template that takes its texts, and how many; a log has few forms and many calls."""
    return form.replace("%", "%%").replace(_MARK, '"%s"'), form.count(_MARK)


# --- tries -----------------------------------------------------------------------------------------------------------

KINDS = ("input", "output", "cached", "reasoning")
TOLD_COST = "told_cost"
"""The kind of the row among a call's tries that is none: what an agent says that it spent."""

OWN_CALLS = "own_calls"
"""
That an agent made calls of its own, which are counted: a key of a failed try, and the kind of the row that is no try
but says it of the attempt that was answered.
"""

# An attempt that was refused before any work was done is not charged. A gateway's 500, 502 or 504 may follow work.
_UNCHARGED = frozenset({*range(400, 500), 503, 529} - {408})
_UNCHARGED_KINDS = frozenset({"config", "auth", "quota"})
TryTokens = tuple[int | None, ...]
UNTOLD: TryTokens = (None,) * len(KINDS)


def charged(failed: Iterable[TryTokens | None], answer: TryTokens | None, error_kind: str) -> list[TryTokens]:
    """The attempts of a call that may have been charged, of the failed ones (None: was not) and the answer, if any."""
    tried = list(failed)
    attempts = [attempt for attempt in tried if attempt is not None]
    if answer is not None:
        attempts.append(answer)
    elif not tried and error_kind not in _UNCHARGED_KINDS:
        attempts.append(UNTOLD)
    return attempts


def attempt_in(row: Mapping[str, Any]) -> TryTokens | None:
    """The tokens of a failed try as it is recorded; None for one that was refused before any work was done."""
    reported = row.get("usage")
    if reported is not None:
        return tuple(reported.get(kind) for kind in KINDS)
    return None if row.get("status") in _UNCHARGED else UNTOLD


def requests_sent(attempts: int, error_kind: str) -> int:
    """How many requests a call sent; a failed one without a word about its attempts sent one, unless it could not."""
    return attempts or int(error_kind not in _UNCHARGED_KINDS)
