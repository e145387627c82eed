"""
What many calls have in common, stored once: role, stage, model, and the request without the texts it names.

A request is nearly all digests of its messages; with a mark in the place of each, thousands of requests are one form.
"""

from __future__ import annotations

import re

from skillopt_es.events.values import digest_of

Form = tuple[str, str, str, str]
"""The role, stage, model and request form of a call."""

FORMS_QUERY = "select id, role, stage, model, request from forms order by id"

_DIGEST = re.compile(r'"([0-9a-f]{64})"')
_MARK = '"#"'
_HEX, _RAW = len(digest_of(b"")), len(digest_of(b"")) // 2


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
    first, *parts = form.split(_MARK)
    if len(texts) != _RAW * len(parts):
        raise ValueError("a request has as many texts as its form has places for them")
    digests = texts.hex()
    starts = range(0, len(digests), _HEX)
    return first + "".join(
        f'"{digests[start : start + _HEX]}"{part}' for start, part in zip(starts, parts, strict=True)
    )
