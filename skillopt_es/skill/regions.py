"""
Protected regions of a skill file: blocks between markers that only their own stage may write.

The slow-update block holds epoch-level guidance. A marker is recognised anywhere in a text, so text from a model is
cleaned of markers before it goes into a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from attrs import frozen

SLOW_START = "<!-- SLOW_UPDATE_START -->"
SLOW_END = "<!-- SLOW_UPDATE_END -->"
APPENDIX_START = "<!-- APPENDIX_START -->"
APPENDIX_END = "<!-- APPENDIX_END -->"
_PAIRS = ((SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))
MARKERS = tuple(marker for pair in _PAIRS for marker in pair)
_LONGEST = max(map(len, MARKERS))


@frozen
class Span:
    """A half-open range of characters."""

    start: int
    end: int

    def meets(self, start: int, end: int) -> bool:
        """Whether the range shares a character with this one, or lies inside it."""
        return start < self.end and end > self.start


def clean_of_markers(text: str) -> str:
    """The text without surrounding white space and without any marker, also none that removal would form."""
    return without_markers(text)[0].strip()


def without_markers(text: str, markers: Sequence[str] = MARKERS) -> tuple[str, frozenset[str]]:
    """The text without these markers, also none that removal would form; and which of them were removed."""
    if not any(marker in text for marker in markers):
        return text, frozenset()
    kept: list[str] = []
    found = set()
    *parts, rest = text.split(">")
    # Every marker ends with this sign, so none can be complete before it.
    for part in parts:
        kept += [*part, ">"]
        tail = "".join(kept[-_LONGEST:])
        ending = next((marker for marker in markers if tail.endswith(marker)), "")
        if ending:
            found.add(ending)
            del kept[-len(ending) :]
    return "".join(kept) + rest, frozenset(found)


def protected_spans(text: str) -> tuple[Span, ...]:
    """Every protected block, markers included; a block that is never closed reaches to the end of the text."""
    spans = []
    for start_marker, end_marker in _PAIRS:
        position = text.find(start_marker)
        while position >= 0:
            end = text.find(end_marker, position)
            end = len(text) if end < 0 else end + len(end_marker)
            spans.append(Span(position, end))
            position = text.find(start_marker, end)
    return tuple(sorted(spans, key=lambda span: span.start))


def without_protected_blocks(text: str) -> str:
    """The text that edits may change: every protected block is left out."""
    for span in reversed(protected_spans(text)):
        text = text[: span.start] + text[span.end :]
    return text


def has_slow_block(text: str) -> bool:
    """Whether the text has a place for slow-update guidance."""
    return SLOW_START in text and SLOW_END in text


def slow_guidance(text: str) -> str:
    """The guidance in force, or an empty text."""
    start = text.find(SLOW_START)
    end = text.find(SLOW_END, start)
    if start < 0 or end < 0:
        return ""
    return text[start + len(SLOW_START) : end].strip()


def with_slow_placeholder(text: str) -> str:
    """The text with an empty slow-update block at its end; unchanged if it has one."""
    if has_slow_block(text):
        return text
    return f"{text.rstrip()}\n\n{SLOW_START}\n{SLOW_END}\n"


_EMPTY_BLOCK = re.compile(rf"\s*{re.escape(SLOW_START)}\s*{re.escape(SLOW_END)}[^\S\n]*")


@lru_cache(maxsize=256)
def without_empty_block(text: str) -> str:
    """The text as an agent is to read it: a place for guidance that has none yet says nothing to it."""
    # Remembered, because one skill is read in each of an evaluation's attempts.
    return _EMPTY_BLOCK.sub("", text)


_SLOW_BLOCK = re.compile(re.escape(SLOW_START) + r".*?" + re.escape(SLOW_END), re.DOTALL)


def with_slow_guidance(text: str, guidance: str) -> str:
    """
    The text with this guidance in its slow-update block, and not a byte changed outside of it.

    A text without a block gets one at its end; so does one whose markers are in disorder, once they are removed.
    """
    block = f"{SLOW_START}\n{clean_of_markers(guidance)}\n{SLOW_END}"
    found = _SLOW_BLOCK.search(text)
    if found is not None and text.count(SLOW_START) == text.count(SLOW_END) == 1:
        return text[: found.start()] + block + text[found.end() :]
    body = _SLOW_BLOCK.sub("", text).replace(SLOW_START, "").replace(SLOW_END, "")
    return f"{body.rstrip()}\n\n{block}\n"
