"""When to ask again: as the endpoint says (`reading.py`), else with growing waits and seeded jitter. All is pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from attrs import frozen

from skillopt_es.adapters.models.errors import Failure
from skillopt_es.ports import FailureKind

# Each takes as long as an answer and is paid for, and what fails three times so does so for a reason.
MOST_RETRIES: Mapping[FailureKind, int] = {"empty": 2, "timeout": 2, "crash": 2}
GROWTH = 3.0  # eight tries from 30 ms on bridge 16 to 33 s; with 2 it would be 2 to 4
# What is added to a wait that the server names, so that those who were refused together do not all come back together.
_JITTER = 0.05
_MOST_JITTER = 1.0  # seconds: 5 % of a wait of an hour would be three minutes for nothing
# So many waits are taken at the server's word; one that says "in a moment" for ever is asked less and less often.
_TRUSTED = 10

Draw = Callable[[str], float]


def seeded_draw(key: str) -> float:
    """A number in [0, 1) that is the same for the same key in every process."""
    return random.Random(key).random()  # noqa: S311 - jitter, not a secret


def puts_off(failed: Failure) -> bool:
    """Whether the endpoint only asks to come later: a matter of patience, not of a number of tries."""
    return failed.retry and (failed.kind == "rate_limit" or failed.server_wait is not None)


@frozen(kw_only=True)
class PastTries:
    """
    What came of the tries before this one.

    `blind` are those that failed without a word on when to come back; of those that were put off, `told` by the server
    until when and `untold`, and for how many seconds in all; `kinds` are those of which there are fewer tries.
    """

    blind: int = 0
    told: int = 0
    untold: int = 0
    put_off_seconds: float = 0.0
    kinds: tuple[FailureKind, ...] = ()

    def and_then(self, failed: Failure, wait: float) -> PastTries:
        """The same with one more, after which so long was waited."""
        put_off, told = puts_off(failed), failed.server_wait is not None
        return PastTries(
            blind=self.blind + (not put_off),
            told=self.told + (put_off and told),
            untold=self.untold + (put_off and not told),
            put_off_seconds=self.put_off_seconds + (wait if put_off else 0.0),
            kinds=(*self.kinds, failed.kind) if failed.kind in MOST_RETRIES else self.kinds,
        )


@frozen(kw_only=True)
class RetryPolicy:
    """
    How often and after which waits one call is tried again; the same (seed, slot, try) always waits the same.

    Failures that nobody explains have a number of tries (`attempts`) and growing waits. Being put off has a `patience`
    in seconds instead, and waits that are exactly the server's.
    """

    attempts: int
    base: float
    cap: float
    patience: float
    seed: int
    draw: Draw = seeded_draw

    def backoff(self, slot: str, attempt: int) -> float:
        """The wait after blind try `attempt` (from 0): between half and all of base * 3^attempt, at most the cap."""
        # Bounded, because a float overflows at some power.
        longest = min(self.cap, self.base * GROWTH ** min(attempt, 64))
        return longest / 2 * (1 + self.draw(f"{self.seed}/{slot}/{attempt}"))

    def wait_after(self, failed: Failure, slot: str, past: PastTries, *, uncounted: int = 0) -> float | None:
        """
        Seconds to wait before the next try, or None when this failure is the last word.

        So many of the blind tries, this one included, are `uncounted`: they were made in an outage.
        """
        if not failed.retry:
            return None
        if puts_off(failed):
            wait = self._put_off(failed.server_wait, slot, past)
            return wait if past.put_off_seconds + wait <= self.patience else None
        most = MOST_RETRIES.get(failed.kind)
        if past.blind + 1 - uncounted >= self.attempts or (most is not None and past.kinds.count(failed.kind) >= most):
            return None
        return self.backoff(slot, past.blind)

    def _put_off(self, told: float | None, slot: str, past: PastTries) -> float:
        if told is None:
            return self.backoff(slot, past.untold)
        jitter = min(told * _JITTER, _MOST_JITTER) * self.draw(f"{self.seed}/{slot}/told/{past.told}")
        # The jitter never makes a wait too long that is not so without it.
        wait = told + min(jitter, max(0.0, self.patience - past.put_off_seconds - told))
        return wait if past.told < _TRUSTED else max(wait, self.backoff(slot, past.told - _TRUSTED))


ONCE = RetryPolicy(attempts=1, base=0.0, cap=0.0, patience=0.0, seed=0)
"""No call is tried again."""

_YEAR = 365 * 24 * 3600  # seconds; a server that names a date far away has a wrong clock


def in_words(seconds: float) -> str:
    """A time as people say it: 34 s, 15 min, 1 h 30 min, more than a year."""
    if seconds > _YEAR:
        return "more than a year"
    if seconds < 120:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return " ".join(filter(None, (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "")))
