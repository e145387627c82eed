"""
What many calls have in common, stored once: role, stage, model, and the request without the texts it names.

A request is nearly all digests of its messages; with a mark in the place of each, thousands of requests are one form.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
    template, places = _template(form)
    if len(texts) != _RAW * places:
        raise ValueError("a request has as many texts as its form has places for them")
    digests = texts.hex()
    return template % tuple([digests[start : start + _HEX] for start in range(0, len(digests), _HEX)])


@lru_cache(maxsize=256)
def _template(form: str) -> tuple[str, int]:
    """The form as a template that takes its texts, and how many; a log has few forms and many calls."""
    return form.replace("%", "%%").replace(_MARK, '"%s"'), form.count(_MARK)
