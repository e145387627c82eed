"""JSON as its standard has it: Python's own reader also takes NaN, Infinity and numbers that no machine holds."""

from __future__ import annotations

import math
from json import JSONDecoder
from typing import NoReturn


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


STRICT = JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
"""Raises ValueError for what is not JSON."""
