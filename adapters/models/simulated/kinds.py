"""
What simulated models know of a kind of task: how it is recognised, both ways to answer it, and the rule between them.

A rule is in force when one line of a skill has all of its keywords, whoever wrote that line and in whichever words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Literal

from attrs import frozen

from skillopt_es.adapters.models.simulated.forms import Found, written

_FORBIDS = re.compile(r"\W*(?:do not|don't|never|avoid|stop)\b", re.IGNORECASE)
_CHOICE = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)
_DECIMALS = re.compile(r"\.\d+")
_AS_WRITTEN = "{value}"
_NEVER = "(?!)"


@frozen(kw_only=True)
class Rule:
    """A line of a skill that the target obeys, known by its keywords; `wording` is how the optimizer writes it."""

    name: str
    keywords: tuple[str, ...]
    wording: str

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(keyword, re.IGNORECASE) for keyword in self.keywords)

    def said_by(self, line: str) -> bool:
        """Whether a line asks for this."""
        return not _FORBIDS.match(line) and all(pattern.search(line) for pattern in self._patterns)

    def line_in(self, text: str) -> str:
        """The first line of a text that asks for this; empty when none does."""
        return _line_in(self, text)


@lru_cache(maxsize=256)  # all items of a split are answered under one skill
def _line_in(rule: Rule, text: str) -> str:
    return next((line for line in text.splitlines() if rule.said_by(line)), "")


def rules_in(text: str, rules: Iterable[Rule]) -> list[Rule]:
    """Those of the rules that a text states."""
    return [rule for rule in rules if rule.line_in(text)]


@frozen(kw_only=True)
class Topic:
    """
    A kind of question: how it begins, what the value in its note looks like, and both ways to write that value.

    A `script` is never quoted by an evaluation, which only says that its cells are wrong.
    """

    kind: str
    asked: str = _NEVER
    value: str = _NEVER
    naive: str = _AS_WRITTEN
    house: str = _AS_WRITTEN
    script: bool = False
    rule: Rule | None = None

    def wanted_by(self, evaluation: str, found: Found) -> bool:
        """Whether an evaluation asks for the house form."""
        return self.script or written(self.house, found) in evaluation

    def is_asked_in(self, task: str) -> bool:
        """Whether a task is of this kind."""
        return re.search(rf"^\W*(?:{self.asked})\b", task, re.MULTILINE) is not None

    def found_in(self, task: str) -> Found | None:
        """The value that a task asks for, when it is of this kind."""
        return re.search(self.value, task) if self.is_asked_in(task) else None


@frozen(kw_only=True)
class Habit:
    """Something about every answer that a skill may ask for, and that costs points."""

    rule: Rule
    spoil: str = "{answer}"

    def spoiled(self, answer: str) -> str:
        """An answer as this habit makes it."""
        return self.spoil.format(
            answer=answer,
            first_word="".join(answer.split()[:1]),
            capitals=answer.upper(),
            without_decimals=_DECIMALS.sub("", answer),
        )


@frozen(kw_only=True)
class World:
    """
    What both simulated models know of one benchmark.

    `tasks` is how its tasks begin, `rest` how what its system prompt says after the skill. Where choices are
    `labelled`, the answer is a label; `said` is the reply around it. `missing` is where a missed task shows what is
    missing: in the form that its evaluation asks for, in the kind of question alone, or in the course of a game.
    """

    tasks: str
    topics: tuple[Topic, ...]
    habits: tuple[Habit, ...]
    mistake: str = "A {kind} in the wrong form"
    rest: str = ""
    labelled: bool = False
    said: str = "{answer}"
    missing: Literal["form", "asked", "game"] = "form"

    @property
    def style(self) -> tuple[Rule, ...]:
        """The rules that help."""
        return tuple(topic.rule for topic in self.topics if topic.rule)

    @property
    def harmful(self) -> tuple[Rule, ...]:
        """The rules that cost points."""
        return tuple(habit.rule for habit in self.habits)

    def topic_of(self, task: str) -> tuple[Topic, Found] | None:
        """The kind of a task and the value it asks for; None for what the simulation knows nothing about."""
        for topic in self.topics:
            found = topic.found_in(task)
            if found:
                return topic, found
        return None

    def reply(self, value: str, task: str, skill: str) -> str:
        """What is said to a task whose answer is this value: the label of its choice, spoiled by the skill's habits."""
        choices = _CHOICE.findall(task) if self.labelled else []
        answer = next((label for label, text in choices if text == value), value)
        for habit in self.habits:
            if habit.rule.line_in(skill):
                answer = habit.spoiled(answer)
        return self.said.format(answer=answer)

    def skill_in(self, system: str) -> str:
        """A system prompt from its skill on, without what the benchmark says after it."""
        before, mark, _ = system.rpartition(self.rest) if self.rest else (system, "", "")
        return before if mark else system
