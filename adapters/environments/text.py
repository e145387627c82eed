"""Measures and cuts of text that several environments use."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_FIRST = 5  # a note is one line or two, and ids may be 32 characters long
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """The text as question-answering scorers compare it: lower case, no ASCII punctuation, no articles, one space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def overlap_f1(prediction: Counter[str], gold: Counter[str]) -> float:
    """The F1 of two bags of words, 0 when they share none."""
    shared = (prediction & gold).total()
    if not shared:
        return 0.0
    precision, recall = shared / prediction.total(), shared / gold.total()
    return 2 * precision * recall / (precision + recall)


def last_tagged(text: str, tag: str) -> str | None:
    """What the last `<tag>…</tag>` holds, stripped, in any letter case; None when there is none."""
    opening, closing = _tags(tag)
    # Two searches that only move forward: one pattern with `.*?` takes quadratic time on text full of opening tags.
    found: str | None = None
    start = opening.search(text)
    while start:
        end = closing.search(text, start.end())
        if end is None:
            break
        found = text[start.end() : end.start()]
        start = opening.search(text, end.end())
    return None if found is None else found.strip()


def answer_in(reply: str) -> str:
    """The prediction in a reply: the last answer tag, else the last line that is not blank."""
    tagged = last_tagged(reply, "answer")
    if tagged is not None:
        return tagged
    return next((line.strip() for line in reversed(reply.split("\n")) if line.strip()), "")


def named(ids: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    listed = [*ids]
    more = f" and {len(listed) - _FIRST} more" if len(listed) > _FIRST else ""
    return f"{', '.join(listed[:_FIRST])}{more}"


def shorten(text: str, limit: int) -> str:
    """The text, cut to `limit` characters with an ellipsis as the last one."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


@lru_cache(maxsize=32)
def _tags(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    name = re.escape(tag)
    return re.compile(f"<{name}>", re.IGNORECASE), re.compile(f"</{name}>", re.IGNORECASE)
