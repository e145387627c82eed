"""The json grader: the answer is JSON whose fields must equal the expected ones."""

from __future__ import annotations

import json
import re
from functools import partial

from skillopt_es.adapters.environments.tasks.verdicts import Grader, Inline, Key, Verdict, solved
from skillopt_es.events.values import Json

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_MAX_STARTS = 200  # looking from 200 places through a megabyte takes .3 s; from each bracket it takes minutes
_DECODER = json.JSONDecoder()


def json_fields(key: Key) -> Grader:
    """Soft is the share of expected fields that the answer's object has right; an expected list must be equal."""
    expected = key.expected
    if isinstance(expected, str):
        expected = _parsed(expected)
    if not isinstance(expected, dict | list) or not expected:
        raise ValueError("must be an object with fields, or a list")
    return Inline(partial(_json_fields, expected))


def _json_fields(expected: dict[str, Json] | list[Json], answer: str) -> Verdict:
    got = found_json(answer, "{" if isinstance(expected, dict) else "[")
    if got is None:
        kind = "object" if isinstance(expected, dict) else "list"
        return Verdict(0.0, 0.0, f"there is no JSON {kind} in the answer", "format")
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return solved(same(got, expected))
    wrong = [name for name, value in expected.items() if name not in got or not same(got[name], value)]
    note = f"wrong or missing: {', '.join(wrong)}" if wrong else ""
    return Verdict(float(not wrong), 1 - len(wrong) / len(expected), note)


def found_json(answer: str, opening: str) -> Json:
    """The object or list in an answer: all of it, else the last in a code fence, else the last in the text; or None."""
    candidates = [answer, *reversed(_FENCE.findall(answer)[-3:])]
    for text in candidates:
        value = _parsed(text)
        if value is not None and isinstance(value, dict if opening == "{" else list):
            return value
    return _last_json(answer, opening)


def same(left: Json, right: Json) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _last_json(text: str, opening: str) -> Json:
    found: Json = None
    place = text.find(opening)
    # Text full of brackets that never close would be read again from each of them.
    for _ in range(_MAX_STARTS):
        if place < 0:
            break
        try:
            found, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        place = text.find(opening, end)
    return found


def _parsed(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
