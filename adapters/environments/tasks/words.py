"""The graders that compare text: exact, normalized, contains, f1."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from functools import partial

from skillopt_es.adapters.environments.tasks.verdicts import Grader, Inline, Key, Verdict, alternatives, solved
from skillopt_es.adapters.environments.text import overlap_f1

_ARTICLES = re.compile(r"\b(a|an|the)\b")
# Only before three digits: the comma of 1,5 is none of these.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# A mark inside or before a number is part of it: 1.5 is not 15, and -3 is not 3.
_IN_NUMBER = re.compile(r"(?<=\d)[.:/,-](?=\d)|(?<!\w)-(?=\d)|(?<!\w)\.(?=\d)")
_LETTERS_AND_DIGITS = frozenset(string.ascii_letters + string.digits)


def normal_form(text: str) -> str:
    """The text without case, punctuation, articles and extra spaces; just trimmed when nothing else would be left."""
    folded = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold())
    kept = {found.start() for found in _IN_NUMBER.finditer(folded)}
    marks = (each for place, each in enumerate(folded) if place in kept or not _is_punctuation(each))
    return " ".join(_ARTICLES.sub(" ", "".join(marks)).split()) or " ".join(folded.split())


def exact(key: Key) -> Grader:
    """Right when the trimmed answer is one of the expected texts, letter by letter."""
    return Inline(partial(_exact, frozenset(each.strip() for each in alternatives(key.expected))))


def normalized(key: Key) -> Grader:
    """Right when the answer is one of the expected texts but for case, punctuation, articles and spaces."""
    return Inline(partial(_normalized, frozenset(normal_form(each) for each in alternatives(key.expected))))


def contains(key: Key) -> Grader:
    """Right when one of the expected texts is in the answer as whole words, whatever its case and spacing."""
    return Inline(partial(_contains, tuple(_spaced(each) for each in alternatives(key.expected))))


def f1(key: Key) -> Grader:
    """Soft is the best token F1 over the expected texts; right when one of them is met after normalising."""
    golds = [normal_form(each) for each in alternatives(key.expected)]
    return Inline(partial(_f1, tuple((gold, Counter(gold.split())) for gold in golds)))


def has_words(text: str, words: str) -> bool:
    """Whether `words` occur in `text` without cutting an ASCII word or number (4 is not in 14)."""
    place = text.find(words)
    while place >= 0:
        before, after = text[place - 1 : place], text[place + len(words) : place + len(words) + 1]
        if not _joined(before, words[0]) and not _joined(words[-1], after):
            return True
        place = text.find(words, place + 1)
    return False


def _exact(golds: frozenset[str], answer: str) -> Verdict:
    return solved(answer.strip() in golds)


def _normalized(golds: frozenset[str], answer: str) -> Verdict:
    return solved(normal_form(answer) in golds)


def _contains(golds: tuple[str, ...], answer: str) -> Verdict:
    text = _spaced(answer)
    return solved(any(has_words(text, gold) for gold in golds))


def _f1(golds: tuple[tuple[str, Counter[str]], ...], answer: str) -> Verdict:
    normal = normal_form(answer)
    words = Counter(normal.split())
    right = any(normal == gold for gold, _ in golds)
    return Verdict(float(right), 1.0 if right else max(overlap_f1(words, bag) for _, bag in golds))


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


def _joined(left: str, right: str) -> bool:
    return left in _LETTERS_AND_DIGITS and right in _LETTERS_AND_DIGITS


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")
