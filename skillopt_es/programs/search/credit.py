"""Credit: which tasks came out better under an edit, which worse, and of which it speaks. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from attrs import frozen

from skillopt_es.events.values import Measured
from skillopt_es.gate.noise import Worth

_ROUNDING = 1e-9


@frozen(kw_only=True)
class Screened:
    """The tasks that came out better under another text than under the current skill, and those that came out worse."""

    better: frozenset[str]
    worse: frozenset[str]

    @property
    def won(self) -> bool:
        """Whether more came out better than worse."""
        return len(self.better) > len(self.worse)


def screened(before: Mapping[str, Measured], after: Mapping[str, Measured], worth: Worth) -> Screened:
    """What turned among the tasks that were measured under both."""
    gains = {
        item: worth(found.hard, found.soft) - worth(before[item].hard, before[item].soft)
        for item, found in after.items()
        if item in before
    }
    return Screened(
        better=frozenset(item for item, gain in gains.items() if gain > _ROUNDING),
        worse=frozenset(item for item, gain in gains.items() if gain < -_ROUNDING),
    )


_WORD = re.compile(r"\w{3,}")


def spoken_of(text: str, tasks: Mapping[str, str]) -> tuple[str, ...]:
    """The tasks of which a text has a word that fewer than half of them have; none where there are not two tasks."""
    words = {item: set(_WORD.findall(task.lower())) for item, task in tasks.items()}
    counts = Counter(word for each in words.values() for word in each)
    said = {word for word in _WORD.findall(text.lower()) if 2 * counts[word] < len(tasks)}
    return tuple(item for item, each in words.items() if each & said)
