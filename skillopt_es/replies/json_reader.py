"""
A tolerant reader for the JSON object in a model's reply.

Reads fenced or bare objects among prose, and fixes what models commonly get wrong (trailing commas, raw line breaks in
strings). It never guesses where an object that was cut off would have ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast

from attrs import frozen

from skillopt_es.events.values import Json

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)```", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@frozen
class Unusable:
    """Why a reply could not be read, in words that can go back to the model."""

    why: str


def read_object(text: str) -> dict[str, Json] | Unusable:
    """The first JSON object in a reply, fenced ones first; or why there is none."""
    # A fence says what is meant; in the words around it there may be braces, too.
    sources = [match.group(1) for match in _FENCE.finditer(text)] + [text]
    unclosed = False
    for source in sources:
        for candidate, closed in _objects(source):
            if not closed:
                unclosed = True
                continue
            parsed = _parse(candidate)
            if parsed is not None:
                return parsed
    if unclosed:
        return Unusable("the JSON object in the reply is not closed: the reply was cut off")
    if "{" in text:
        return Unusable("the reply contains no valid JSON object")
    return Unusable("the reply contains no JSON object at all")


def _parse(text: str) -> dict[str, Json] | None:
    # As it was written first: the repair takes longer, and is for what would be lost otherwise.
    value = _loaded(text)
    return _loaded(_without_trailing_commas(text)) if value is None else value


def _loaded(text: str) -> dict[str, Json] | None:
    try:
        # `strict=False` takes raw line breaks in strings; NaN and Infinity, which are not JSON, become null.
        value = json.loads(text, strict=False, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Json], value) if isinstance(value, dict) else None


def _without_trailing_commas(text: str) -> str:
    """The text with commas before a closing bracket removed, outside strings only."""
    parts: list[str] = []
    position = 0
    for match in _STRING.finditer(text):
        parts += [_TRAILING_COMMA.sub(r"\1", text[position : match.start()]), match.group()]
        position = match.end()
    parts.append(_TRAILING_COMMA.sub(r"\1", text[position:]))
    return "".join(parts)


# Possessive (`*+`): an unclosed string is not tried again from each of its characters.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}]', re.DOTALL)


def _objects(text: str) -> Iterator[tuple[str, bool]]:
    """Each balanced top-level object, and whether it is closed; braces inside strings do not count. Linear time."""
    depth = 0
    start = 0
    position = text.find("{")
    while position >= 0:
        match = _TOKEN.search(text, position)
        if match is None:
            break
        position = match.end()
        if match.group() == "{":
            start = match.start() if depth == 0 else start
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if depth == 0:
                yield text[start:position], True
                position = text.find("{", position)
    if depth:
        yield text[start:], False
