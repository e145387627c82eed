"""
Leaks: does a text for the skill copy an item, or tell its answer? Pure; words are compared, not their case or signs.

Three things are a leak (docs/dev/decisions/0008): a long run of an item's words, an answer half as long, and an answer
of any length in one line with a piece of its own question. What stands in the skill already is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from attrs import frozen

_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W぀-ヿ㐀-鿿]+")  # scripts without spaces: each sign is a word
_PIECE = 4  # words in a row of a question that tell which question it is
_FEW = 3  # with fewer items, what they have in common may be chance
_QUOTED = 12  # words: enough to find the place in both texts
_MANY = 64  # each run is sought in every item's text; from so many on it pays to hash all items once


@frozen(kw_only=True)
class Shown:
    """One tried item as analysts see it: its question, its accepted answers, and all other text of it."""

    item: str
    question: str
    answers: tuple[str, ...]
    text: str


@frozen
class _Item:
    """A shown item as it is compared; its words are read only when a text has enough of its own to copy them."""

    shown: Shown
    answers: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its id."""
        return self.shown.item

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Pieces of its question."""
        return tuple(_runs(_words(self.shown.question), _PIECE))

    @cached_property
    def words(self) -> str:
        """All of it."""
        return _joined(_words("\n".join((self.shown.question, *self.shown.answers, self.shown.text))))


class LeakGuard:
    """
    Says of any text whether it copies one of the shown items; a span of 0 lets everything pass.

    Where items may be `quoted`, an answer may stand in a rule, but not beside its own question.
    """

    def __init__(self, shown: Iterable[Shown], *, known: str, span: int, quoted: bool = False) -> None:
        self._span, self._quoted = span, quoted
        self._known = _joined(_words(known))
        self._items = [_item(each) for each in shown] if span else []

    @cached_property
    def _hashes(self) -> frozenset[int]:
        """A number for each run of words of all items."""
        return frozenset(code for item in self._items for code in _hashes(item.words.split(), self._span))

    def leak(self, text: str) -> str:
        """What a text copies and of which item; empty when it copies nothing."""
        if not self._items:
            return ""
        return self._span_in(text) or next(filter(None, map(self._answer_in, text.split("\n"))), "")

    def _span_in(self, text: str) -> str:
        words = _words(text)
        runs = _runs(words, self._span)
        if len(runs) > _MANY:  # most are in no item, and looking each up in long items would take seconds
            numbered = zip(_hashes(words, self._span), runs, strict=True)
            runs = [run for code, run in numbered if code in self._hashes]
        for run in runs:
            holders = [] if run in self._known else [item for item in self._items if run in item.words]
            # What most items have in common is how they are put, not what one of them says.
            if holders and not (len(self._items) >= _FEW and 2 * len(holders) > len(self._items)):
                return f"item {holders[0].name}: {self._span} of its words in a row: {_quoted(run)}"
        return ""

    def _answer_in(self, line: str) -> str:
        words = _joined(_words(line))
        for item in self._items if words not in self._known else ():
            for answer in item.answers:
                if answer in words:
                    found = self._told(item, answer, words)
                    if found:
                        return found
        return ""

    def _told(self, item: _Item, answer: str, line: str) -> str:
        """How a line tells an answer of an item; empty when it does not, or when others have that answer, too."""
        others = [other for other in self._items if other.name != item.name]
        if any(answer in other.answers for other in others):
            return ""
        elsewhere = answer in self._known or any(answer in other.words for other in others)
        if 2 * len(answer.split()) >= self._span and not elsewhere and not self._quoted:
            return f"item {item.name}: its answer: {_quoted(answer)}"
        for piece in item.pieces:
            if piece in line and piece not in self._known and not any(piece in other.words for other in others):
                return f"item {item.name}: its answer ({_quoted(answer)}) with its question: {_quoted(piece)}"
        return ""


def _item(shown: Shown) -> _Item:
    return _Item(shown, tuple(_joined(_words(answer)) for answer in shown.answers))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _joined(words: Sequence[str]) -> str:
    """Words between single spaces, also at both ends, so that a run is found as whole words."""
    return f" {' '.join(words)} "


def _runs(words: Sequence[str], length: int) -> list[str]:
    """All runs of so many words, as they are looked for."""
    return [_joined(words[start : start + length]) for start in range(len(words) - length + 1)]


def _hashes(words: Sequence[str], length: int) -> list[int]:
    """A number for each of these runs; equal runs have equal ones, within one process."""
    return [hash(run) for run in zip(*(words[start:] for start in range(length)), strict=False)]


def _quoted(words: str) -> str:
    return "“" + " ".join(words.split()[:_QUOTED]) + "”"
