"""
Taking a whole new text for a skill: what only other stages may write is put back as it was.

Protected are the blocks between markers (`regions.py`) and the frontmatter, the lines of YAML that a file may begin
with. A rewrite that drops one, alters one or makes one up is repaired, and each repair is named.
"""

from __future__ import annotations

import re
from typing import Literal

from attrs import frozen

from skillopt_es.events.values import Repair
from skillopt_es.skill.regions import (
    APPENDIX_END,
    APPENDIX_START,
    SLOW_END,
    SLOW_START,
    Span,
    protected_spans,
    without_markers,
    without_protected_blocks,
)

Part = Literal["slow_update", "appendix"]

# A file that begins with a rule (---) has no frontmatter: the first line in it must be a key.
_FRONTMATTER = re.compile(
    r"\A---[ \t]*\r?\n(?=(?:[ \t]*(?:#[^\n]*)?\r?\n)*[\w\"'-]+[ \t]*:).*?^---[ \t]*(?:\r?\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LEADING_BLANKS = re.compile(r"\A(?:[ \t]*\r?\n)+")
_PAIRS = ((SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))
_STARTS: dict[str, Part] = {SLOW_START: "slow_update", APPENDIX_START: "appendix"}
_MARKERS: dict[str, Part] = {**_STARTS, SLOW_END: "slow_update", APPENDIX_END: "appendix"}


@frozen
class Repaired:
    """A new text whose protected parts are as they were before, and what had to be done for it."""

    text: str
    repairs: tuple[Repair, ...]


def frontmatter(text: str) -> str:
    """The YAML block that a text begins with, both its lines of dashes included; empty when there is none."""
    found = _FRONTMATTER.match(text)
    return found.group() if found and not any(marker in found.group() for marker in _MARKERS) else ""


def own_words(text: str) -> str:
    """What a rewrite is free to change: the text without frontmatter and protected blocks."""
    return without_protected_blocks(text[len(frontmatter(text)) :])


def repaired(before: str, written: str) -> Repaired:
    """The written text with the protected parts of the text that it replaces."""
    head = frontmatter(before)
    kept = [piece for piece in _pieces(before[len(head) :]) if piece.part is not None]
    repairs: list[Repair] = []
    text = _LEADING_BLANKS.sub("", written)
    new_head = frontmatter(text)
    text = _with_blocks(kept, text[len(new_head) :], repairs)
    if head.rstrip() != new_head.rstrip():
        repairs.insert(0, Repair("frontmatter", "removed" if not head else "restored" if new_head else "put_back"))
    if not head:
        text = _without_frontmatter(text, repairs)
    elif not new_head:
        text = "\n" + _LEADING_BLANKS.sub("", text)
    whole = f"{head}{text}" if not head or head.endswith("\n") else f"{head}\n{text}"
    return Repaired(f"{whole.rstrip()}\n", tuple(dict.fromkeys(repairs)))


def _without_frontmatter(text: str, repairs: list[Repair]) -> str:
    """The text from its first line of words on, and no frontmatter before it, also none that a repair laid bare."""
    text = _LEADING_BLANKS.sub("", text)
    while made_up := frontmatter(text):
        text = _LEADING_BLANKS.sub("", text[len(made_up) :])
        repairs.insert(0, Repair("frontmatter", "removed"))
    return text


@frozen
class _Piece:
    """A stretch of a text: a protected block of some part, or what stands outside of all (`part` is None)."""

    text: str
    part: Part | None = None
    closed: bool = True


def _pieces(text: str) -> list[_Piece]:
    """The text cut at its protected blocks; blocks that run into each other are one."""
    pieces: list[_Piece] = []
    place = 0
    for span in _joined(protected_spans(text)):
        pieces.append(_Piece(text[place : span.start]))
        block = text[span.start : span.end]
        part = next(part for marker, part in _STARTS.items() if block.startswith(marker))
        closed = span.end < len(text) or not _is_open(text)
        pieces.append(_Piece(block if closed else block.rstrip(), part, closed))
        place = span.end
    return [*pieces, _Piece(text[place:])]


def _is_open(text: str) -> bool:
    """Whether a block of the text is never closed."""
    return any(text.rfind(start) > text.rfind(end) for start, end in _PAIRS)


def _joined(spans: tuple[Span, ...]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(span.end, joined[-1].end))
        else:
            joined.append(span)
    return joined


def _with_blocks(kept: list[_Piece], written: str, repairs: list[Repair]) -> str:
    """The written text with exactly the kept blocks, where it has them, else at its end."""
    waiting = list(kept)
    tail = waiting.pop() if waiting and not waiting[-1].closed else None
    if tail is not None and written.rstrip().endswith(tail.text):
        written = written.rstrip().removesuffix(tail.text)  # a block that is never closed can only stand last
    elif tail is not None:
        waiting.append(tail)
    parts: list[str] = [""]
    for piece in _pieces(_without_open_starts(written, repairs)):
        if piece.part is None:
            parts[-1] += piece.text
            continue
        like = [block for block in waiting if block.part == piece.part and block.closed]
        same = piece if piece in like else next(iter(like), None)
        if same is None:
            repairs.append(Repair(piece.part, "removed"))
            continue
        waiting.remove(same)
        if same.text != piece.text:
            repairs.append(Repair(piece.part, "restored"))
        parts += [same.text, ""]
    # Every second part stands outside of all blocks.
    parts[::2] = [_cleaned(part, repairs) for part in parts[::2]]
    text = "".join(parts)
    for block in waiting:
        assert block.part is not None
        repairs.append(Repair(block.part, "put_back"))
        text = _at_end(text, block.text)
    if tail is not None and tail not in waiting:
        text = _at_end(text, tail.text)
    return text


def _at_end(text: str, block: str) -> str:
    return f"{text.rstrip()}\n\n{block}\n" if text.strip() else f"{block}\n"


def _without_open_starts(text: str, repairs: list[Repair]) -> str:
    """The text without the start of a block that is never closed, which would make all that follows protected."""
    while _is_open(text):
        for start, end in _PAIRS:
            place = max(0, text.rfind(end))
            if start in text[place:]:
                text = text[:place] + without_markers(text[place:], (start,))[0]
                repairs.append(Repair(_STARTS[start], "removed"))
    return text


def _cleaned(text: str, repairs: list[Repair]) -> str:
    """The text without markers that belong to no block."""
    cleaned, found = without_markers(text)
    repairs += [Repair(_MARKERS[marker], "removed") for marker in _MARKERS if marker in found]
    return cleaned
