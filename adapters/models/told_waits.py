"""
How long an endpoint asks us to stay away: in its headers, or in the words of its error.

Whole and fractional seconds, milliseconds, HTTP dates, moments, and durations as Go writes them (`1m6.5s`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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
_GO_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# "Please try again in 6m0s", "retry after 7 seconds", "Please retry in 34.07s": who says it here often has no header.
_NUMBER = r"\d{1,6}(?:\.\d+)?"
_SAID = re.compile(
    rf"\b(?:try again|retry) (?:in|after) (?:((?:{_NUMBER}(?:ms|s|m|h))+)\b|({_NUMBER}) ?(milli)?seconds?\b)",
    re.IGNORECASE,
)
_MILLISECOND_TIMES = 1e11
_SECOND_TIMES = 1e9
_YEAR = 365 * 24 * 3600


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


def in_words(seconds: float) -> str:
    """A time as people say it: 34 s, 15 min, 1 h 30 min, more than a year."""
    if seconds > _YEAR:
        return "more than a year"
    if seconds < 120:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return " ".join(filter(None, (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "")))


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
