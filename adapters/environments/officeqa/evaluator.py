"""Grading an OfficeQA answer: as the original does, or with numbers compared as numbers."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from attrs import frozen

from skillopt_es.adapters.environments.text import overlap_f1

Scoring = Literal["skillopt", "extended"]

_DROPPED = str.maketrans("", "", "".join(set(string.punctuation) - set(".-%")))
_UNITS = re.compile(r"\b(millions?|billions?|dollars?|nominal)\b")

# Powers of ten, as the bulletins' tables say in which unit they are.
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_FILLERS = frozenset({"dollar", "dollars", "usd", "nominal"})
_MINUS = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "’": "'"})
# A minus is a sign only where nothing ends before it: 3-5 has no negative 5.
_TOKEN = re.compile(
    r"""(?P<sign>(?<![\w.,)\]%-])-\s?)? [$€£¥]?
        (?<![\w.]) (?P<digits>\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)? | \d+(?:\.\d+)? | \.\d+)
        (?:\s*(?P<percent>%|percent\b|per\s+cent\b)|\s*(?P<scale>thousand|million|billion|trillion)s?\b)?
      | (?P<word>\w+(?:[.']\w+)*)""",
    re.VERBOSE,
)


@frozen
class Grade:
    """How a prediction compares with the expected answer."""

    right: bool
    f1: float


@frozen
class Quantity:
    """A number as it was written; `scale` is the power of ten that a word gives it, None when no word does."""

    value: Decimal
    scale: int | None
    percent: bool

    def equals(self, other: Quantity) -> bool:
        """Whether both may mean the same: what only one of them says (a scale, per cent) is no difference."""
        if (self.percent and other.scale is not None) or (other.percent and self.scale is not None):
            return False
        if self._whole == other._whole:
            return True
        return (self.scale is None or other.scale is None) and self.value == other.value

    @property
    def _whole(self) -> Decimal:
        return self.value.scaleb(self.scale or 0)


def grade(prediction: str, gold: str, scoring: Scoring) -> Grade:
    """Whether the prediction is right, and the token F1 of the two."""
    if scoring == "extended":
        return _extended(_tokens(prediction), _tokens(gold))
    got, expected = normalise_upstream(prediction), normalise_upstream(gold)
    if not got or not expected:
        return Grade(got == expected, float(got == expected))
    return Grade(got == expected, overlap_f1(Counter(got.split()), Counter(expected.split())))


def normalise_upstream(text: str) -> str:
    """The text as the original compares it: lower case, hardly any punctuation, no words for millions or dollars."""
    return " ".join(_UNITS.sub(" ", text.lower().translate(_DROPPED)).split())


def _extended(got: Sequence[Quantity | str], expected: Sequence[Quantity | str]) -> Grade:
    if not got or not expected:
        return Grade(got == expected, float(got == expected))
    right = len(got) == len(expected) and all(map(_same, got, expected))
    left = list(got)
    for token in expected:
        place = next((place for place, other in enumerate(left) if _same(other, token)), None)
        if place is not None:
            del left[place]
    shared = len(got) - len(left)
    return Grade(right, 2 * shared / (len(got) + len(expected)))


def _same(got: Quantity | str, expected: Quantity | str) -> bool:
    if isinstance(got, Quantity) and isinstance(expected, Quantity):
        return got.equals(expected)
    return got == expected


def _tokens(text: str) -> list[Quantity | str]:
    """The numbers and the words of a text, without what says only that it is about money."""
    tokens: list[Quantity | str] = []
    for found in _TOKEN.finditer(text.lower().translate(_MINUS)):
        if found["word"] is not None:
            tokens += [] if found["word"] in _FILLERS else [found["word"]]
            continue
        digits = Decimal(found["digits"].replace(",", ""))
        scale = _SCALES[found["scale"]] if found["scale"] else None
        tokens.append(Quantity(-digits if found["sign"] else digits, scale, bool(found["percent"])))
    return tokens
