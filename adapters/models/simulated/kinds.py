"""
What simulated models know of a kind of task: how it is recognised, both ways to answer it, and the rule between them.

A rule is in force when one line of a skill has all of its keywords, whoever wrote that line and in whichever words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from attrs import field, frozen

from skillopt_es.adapters.models.simulated import forms

_FORBIDS = re.compile(r"\W*(?:do not|don't|never|avoid|stop)\b", re.IGNORECASE)


def _keywords(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


def _beginning(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^\W*(?:{pattern})\b", re.MULTILINE)


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@frozen(kw_only=True)
class Rule:
    """A line of a skill that the target obeys, known by its keywords; `wording` is how the optimizer writes it."""

    name: str
    wording: str
    keywords: tuple[re.Pattern[str], ...] = field(converter=_keywords)

    def said_by(self, line: str) -> bool:
        """Whether a line asks for this."""
        return not _FORBIDS.match(line) and all(keyword.search(line) for keyword in self.keywords)

    def line_in(self, text: str) -> str:
        """The first line of a text that asks for this; empty when none does."""
        return _line_in(self, text)


@lru_cache(maxsize=256)  # all items of a split are answered under one skill
def _line_in(rule: Rule, text: str) -> str:
    return next((line for line in text.splitlines() if rule.said_by(line)), "")


@frozen(kw_only=True)
class Topic:
    """A kind of question: how it begins, what the value in its note looks like, and both ways to write that value."""

    kind: str
    asked: re.Pattern[str] = field(converter=_beginning)
    value: re.Pattern[str] = field(converter=_pattern)
    naive: Callable[[forms.Found], str]
    house: Callable[[forms.Found], str] = forms.as_written
    rule: Rule | None = None
    wanted: Callable[[forms.Found], str] | None = None

    def wanted_by(self, evaluation: str, found: forms.Found) -> bool:
        """Whether an evaluation asks for the house form; `wanted` is what it then says, the house form by default."""
        return (self.wanted or self.house)(found) in evaluation

    def found_in(self, task: str) -> forms.Found | None:
        """The value that a task asks for, when it is of this kind."""
        return self.value.search(task) if self.asked.search(task) else None


@frozen(kw_only=True)
class Habit:
    """Something about every answer that a skill may ask for, and that costs points."""

    rule: Rule
    spoil: Callable[[str], str]
