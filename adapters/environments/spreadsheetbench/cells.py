"""The value of a cell, and when two values count as the same."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from typing import Literal

from attrs import frozen

Scoring = Literal["skillopt", "extended"]

# Excel takes 1900 for a leap year: with this day as 0, all days from March 1900 on agree.
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 -- cells know no time zones
# What rounding to two decimals, as the original does, can move; the rest is a float's own error.
_HALF_CENT = 0.005 + 1e-9
# A serial number counts days.
_SECOND = 1 / 86_400
_WORDS = {"true": 1.0, "false": 0.0}  # how Excel counts them


@frozen
class Oddity:
    """A value of a kind that workbooks rarely hold; `text` is all that is known of it."""

    kind: str
    text: str


CellValue = None | bool | int | float | str | datetime | date | time | timedelta | Oddity


def same_value(gold: CellValue, found: CellValue, scoring: Scoring) -> bool:
    """
    Whether a cell holds what it should.

    `skillopt` compares as SpreadsheetBench and SkillOpt do: numbers after rounding to two decimals, moments after
    rounding to days, times without seconds, text that reads as a number as that number. `extended` keeps what that
    finds equal in numbers and text, allows half a cent instead of cutting between 1.00 and 1.01, and takes a date for
    that day's midnight and moments to the second.
    """
    if is_blank(gold) or is_blank(found):
        return is_blank(gold) and is_blank(found)
    if scoring == "extended":
        return _same_extended(gold, found)
    left, right = _upstream_form(gold), _upstream_form(found)
    return type(left) is type(right) and left == right


def is_blank(value: CellValue) -> bool:
    """Whether a cell holds nothing that counts."""
    return value is None or value == ""


def shown(value: CellValue) -> str:
    """A value as a report shows it."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Oddity):
        return f"{value.kind} {value.text}"
    return "nothing" if value is None else str(value)


def _upstream_form(value: CellValue) -> CellValue:
    if isinstance(value, bool | int | float):
        return _rounded(value)
    if isinstance(value, time):
        return str(value)[:-3]
    if isinstance(value, datetime):
        return round(_serial(value), 0)
    if isinstance(value, str):
        number = _number_in(value)
        return value if number is None else _rounded(number)
    return value


def _rounded(value: float) -> CellValue:
    try:
        return round(float(value), 2)
    except OverflowError:  # a whole number beyond any float
        return value


def _number_in(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _serial(moment: datetime) -> float:
    """The moment as Excel counts it: days since its epoch."""
    return (moment.replace(tzinfo=None) - _EPOCH) / timedelta(days=1)


def _same_extended(gold: CellValue, found: CellValue) -> bool:
    left, right = _extended_form(gold), _extended_form(found)
    if isinstance(left, _Moment) or isinstance(right, _Moment):
        return _same_moment(left, right)
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=1e-13, abs_tol=_HALF_CENT)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return type(left) is type(right) and left == right


@frozen
class _Moment:
    serial: float


_Form = float | str | _Moment | timedelta | Oddity | None


def _extended_form(value: CellValue) -> _Form:
    if isinstance(value, bool | int | float):
        return _as_float(value)
    if isinstance(value, time):
        return f"{value:%H:%M}" if not value.second else f"{value:%H:%M:%S}"
    if isinstance(value, datetime):
        return _Moment(_serial(value))
    if isinstance(value, date):
        return _Moment(_serial(datetime(value.year, value.month, value.day)))  # noqa: DTZ001
    if isinstance(value, str):
        return _text_form(value)
    return value


def _as_float(value: float) -> float | str:
    try:
        return float(value)
    except OverflowError:
        return str(value)


def _text_form(text: str) -> float | str:
    if text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    number = _number_in(text)
    return text if number is None or math.isnan(number) else number


def _same_moment(left: _Form, right: _Form) -> bool:
    """A moment equals the same moment to the second, or the number by which Excel stores it."""
    serials = [form.serial if isinstance(form, _Moment) else form for form in (left, right)]
    first, second = serials
    return isinstance(first, float) and isinstance(second, float) and abs(first - second) < _SECOND
