"""The number grader: 1,000.5, $12, 50% and 3 kg are numbers; the last one in the answer counts."""

from __future__ import annotations

import math
import re
from collections import deque
from functools import partial

from attrs import frozen

from skillopt_es.adapters.environments.tasks.verdicts import Grader, Inline, Key, Tolerance, Verdict, solved
from skillopt_es.events.values import Json

_NUMBER = re.compile(
    r"""(?<![\w.,])                                  # not inside a word or another number
        (?P<sign>[-+−]\s?)? [$€£¥]?
        (?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)? | \d+(?:\.\d+)? | \.\d+)
        (?P<exponent>[eE][-+]?\d{1,4})?
        \s*(?P<percent>\\?%|percent\b)?""",
    re.VERBOSE,
)
# Far above any rounding of binary fractions, far below any difference that was meant.
_ROUNDING = 1e-9


@frozen
class Number:
    """A number as it was written."""

    value: float
    percent: bool = False

    @property
    def readings(self) -> tuple[float, ...]:
        """What it may mean: 50% is 50 and 0.5."""
        return (self.value, self.value / 100) if self.percent else (self.value,)


def number(key: Key) -> Grader:
    """Right when the last number of the answer is within tolerance of an expected one."""
    values = key.expected if isinstance(key.expected, list) else [key.expected]
    if not values:
        raise ValueError("must hold at least one number")
    return Inline(partial(_number, tuple(_expected(value) for value in values), key.tolerance))


def last_number(text: str) -> Number | None:
    """The last number in a text; None when there is none."""
    last = next(iter(deque(_NUMBER.finditer(text), maxlen=1)), None)
    if last is None:
        return None
    sign = -1 if (last["sign"] or "").strip() in ("-", "−") else 1
    value = sign * float(last["digits"].replace(",", "") + (last["exponent"] or ""))
    return Number(value, bool(last["percent"])) if math.isfinite(value) else None


def read_tolerance(value: Json) -> Tolerance:
    """The tolerance in 0.01 (absolute) or "1%" (of the expected value); raises ValueError."""
    relative = isinstance(value, str) and value.strip().endswith("%")
    try:
        amount = math.nan if isinstance(value, bool | list | dict | None) else float(str(value).strip().rstrip("%"))
    except ValueError:
        amount = math.nan
    if not (math.isfinite(amount) and amount >= 0):
        raise ValueError('must be a number of at least 0, or a share such as "1%"')
    return Tolerance(relative=amount / 100) if relative else Tolerance(absolute=amount)


def _expected(value: Json) -> Number:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(float(value))
    found = last_number(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be a number or a list of numbers")
    return found


def _number(golds: tuple[Number, ...], tolerance: Tolerance, answer: str) -> Verdict:
    got = last_number(answer)
    if got is None:
        return Verdict(0.0, 0.0, "there is no number in the answer", "format")
    return solved(any(_close(got, gold, tolerance) for gold in golds), f"read as {got.value:g}{'%' * got.percent}")


def _close(got: Number, gold: Number, tolerance: Tolerance) -> bool:
    if got.percent == gold.percent:
        return _within(got.value, gold.value, tolerance)
    return any(_within(left, right, tolerance) for left in got.readings for right in gold.readings)


def _within(got: float, gold: float, tolerance: Tolerance) -> bool:
    # The relative part covers rounding also where the tolerance itself is 0.
    slack = max(tolerance.absolute, tolerance.relative * abs(gold)) * (1 + _ROUNDING)
    return abs(got - gold) <= max(slack, _ROUNDING * abs(gold))
