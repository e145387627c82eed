"""Grading a DocVQA answer: average normalised Levenshtein similarity (ANLS) with its threshold of one half."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal

Scoring = Literal["skillopt", "extended"]

# As ANLS is defined: what is less alike counts as not alike at all.
THRESHOLD = 0.5
WHOLE = 0.999  # the original's bound for a hard 1: a mean of rounded numbers may stay below 1
_OPENING, _CLOSING = "<answer>", "</answer>"
_QUOTES = "\"'`“”„‘’«»"


def extract(reply: str) -> str:
    """What stands between the last opening and the last closing answer tag; else the last line that is not blank."""
    tagged = tagged_answer(reply)
    if tagged is not None:
        return tagged
    return next((line.strip() for line in reversed(reply.splitlines()) if line.strip()), "")


def tagged_answer(reply: str) -> str | None:
    """The answer inside of tags; None when the last two tags are not a pair."""
    folded = reply.lower()
    if len(folded) != len(reply):  # a letter whose small form is longer: places would not agree
        folded = "".join(letter.lower() if letter.isascii() else letter for letter in reply)
    start, end = folded.rfind(_OPENING), folded.rfind(_CLOSING)
    return reply[start + len(_OPENING) : end].strip() if 0 <= start < end else None


def anls(prediction: str, answers: Sequence[str], scoring: Scoring) -> float:
    """The similarity of a prediction with the closest accepted answer, 0 to 1; without any, an empty one is right."""
    said = _normal(prediction, scoring)
    return max(_similarity(said, _normal(answer, scoring)) for answer in answers or ("",))


def _normal(text: str, scoring: Scoring) -> str:
    """Lower case and single spaces; `extended` also unifies letter forms and drops outer quotes and a full stop."""
    if scoring == "extended":
        text = unicodedata.normalize("NFKC", text).strip()
        text = text.strip(_QUOTES).removesuffix(".").strip(_QUOTES)
    return " ".join(text.lower().split())


def _similarity(one: str, other: str) -> float:
    longest = max(len(one), len(other))
    if not longest:
        return 1.0
    # The distance is at least the difference of the lengths, so that a long reply costs nothing to refuse.
    if abs(len(one) - len(other)) / longest >= THRESHOLD:
        return 0.0
    share = _distance(one, other) / longest
    return 1.0 - share if share < THRESHOLD else 0.0


def _distance(one: str, other: str) -> int:
    """How many letters have to be put in, taken out or replaced to make one text of the other (Levenshtein)."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, opposite in enumerate(other, 1):
            replaced = above[column - 1] + (letter != opposite)
            line.append(min(above[column] + 1, line[column - 1] + 1, replaced))
        above = line
    return above[-1]
