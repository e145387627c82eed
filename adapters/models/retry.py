"""When to ask again: backoff with seeded jitter, and what the server itself asked for."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from attrs import frozen

from skillopt_es.adapters.models.errors import Failure

LONGEST_SERVER_WAIT = 120.0
MOST_EMPTY_RETRIES = 2

_ALLOWANCES = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
)
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_GO_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

Draw = Callable[[str], float]


def seeded_draw(key: str) -> float:
    """A number in [0, 1) that is the same for the same key in every process."""
    return random.Random(key).random()  # noqa: S311 - jitter, not a secret


@frozen(kw_only=True)
class PastTries:
    """What came of the tries before this one: all, those after which the server said when, those without an answer."""

    tries: int = 0
    guided: int = 0
    empty: int = 0

    def and_then(self, failed: Failure) -> PastTries:
        """The same with one more."""
        return PastTries(
            tries=self.tries + 1,
            guided=self.guided + (failed.server_wait is not None),
            empty=self.empty + (failed.kind == "empty"),
        )


@frozen(kw_only=True)
class RetryPolicy:
    """How often and after which waits one call is tried again; the same (seed, slot, attempt) always waits the same."""

    attempts: int
    base: float
    cap: float
    seed: int
    draw: Draw = seeded_draw

    def backoff(self, slot: str, attempt: int) -> float:
        """The wait after blind try `attempt` (from 0): between half and all of base * 2^attempt, at most the cap."""
        longest = min(self.cap, self.base * 2.0 ** min(attempt, 64))
        return longest / 2 * (1 + self.draw(f"{self.seed}/{slot}/{attempt}"))

    def wait_after(self, failed: Failure, slot: str, past: PastTries) -> float | None:
        """Seconds to wait before the next try, or None when this failure is the last word."""
        if not failed.retry or past.tries + 1 >= self.attempts:
            return None
        if failed.kind == "empty" and past.empty >= MOST_EMPTY_RETRIES:
            return None
        backoff = self.backoff(
            slot, past.tries - past.guided
        )  # grows with what nobody explained, not while one is told
        if failed.server_wait is None:
            return backoff
        return None if failed.server_wait > LONGEST_SERVER_WAIT else max(failed.server_wait, backoff)


def server_wait(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds the server asks us to stay away (`retry-after-ms`, `retry-after`), None if it does not."""
    milliseconds = _positive(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    return (_positive(text) or _until_date(text, now)) if text else None


def spent_wait(headers: Mapping[str, str], now: float) -> float | None:
    """How long until the endpoint's allowance is filled again, when its headers say that nothing is left of it."""
    for remaining, reset in _ALLOWANCES:
        if headers.get(remaining) == "0":
            text = headers.get(reset, "")
            wait = _go_duration(text) or _positive(text) or _until_timestamp(text, now)
            if wait is not None and wait <= LONGEST_SERVER_WAIT:
                return wait
    return None


def _go_duration(text: str) -> float | None:
    parts = _GO_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _GO_UNITS[unit] for number, unit in parts) or None


def _until_timestamp(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    wait = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
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
    except ValueError:
        return None
    wait = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    return wait if wait > 0 else None
