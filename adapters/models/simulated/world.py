"""A simulated world: the kinds of questions of one benchmark, how its tasks look, and how an answer is worded in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import field, frozen

from skillopt_es.adapters.models.simulated.forms import Found
from skillopt_es.adapters.models.simulated.kinds import Habit, Rule, Topic


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _as_it_is(answer: str, task: str) -> str:
    return answer


def _bare(answer: str) -> str:
    return answer


@frozen(kw_only=True)
class World:
    """
    What both simulated models know of one benchmark.

    `tasks` is how its tasks begin, `rest` how what its system prompt says after the skill. `named` turns a value into
    what is answered, before habits spoil it; `said` is the reply around it. `lacks` tells what a missed task shows to
    be missing, from the task and all of the trajectory, where these do not hold the value that was asked for.
    """

    tasks: re.Pattern[str] = field(converter=_pattern)
    topics: tuple[Topic, ...]
    habits: tuple[Habit, ...]
    mistake: str = "A {kind} in the wrong form"
    rest: str = ""
    named: Callable[[str, str], str] = _as_it_is
    said: Callable[[str], str] = _bare
    lacks: Callable[[str, str], Topic | None] | None = None

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

    def skill_in(self, system: str) -> str:
        """A system prompt from its skill on, without what the benchmark says after it."""
        before, mark, _ = system.rpartition(self.rest) if self.rest else (system, "", "")
        return before if mark else system


def asked_in(topics: Sequence[Topic]) -> Callable[[str, str], Topic | None]:
    """For `lacks`: the kind of question alone says what is missing."""
    return lambda task, _trajectory: next((topic for topic in topics if topic.asked.search(task)), None)
