"""Credit: which tasks came out better under an edit, which worse, by luck or for good, and of which it speaks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import comb, factorial, prod

from attrs import field, frozen

from skillopt_es.algorithms.search.chance import Chances

MOST_LUCK = 0.05
"""What an edit's credit may be worth as luck: how probable it may be that none of what it fixed stays fixed."""
_MOST_BY_CHANCE = 0.1  # the same, where all draws of the run say how probable that is
MUCH_NEARER = 0.2
"""A gain in nearness (0 to 1) that answers of the right form make, and other words do not."""
_ROUNDING = 1e-9  # below any difference of two scores, and above that of two sums in another order
_LUCK, _NO_LUCK = 1.0, 2.0  # before anything was drawn again: what turned did so by luck once in three times
_MOST = 0.95  # of tasks that came out both ways; .5 won where calls are noisy and lost as much where tasks are coins
_DRAWS_OF_A_COIN = 2  # until it falls otherwise, in the middle


@frozen(kw_only=True)
class Results:
    """
    What one task came to, draw by draw, under the current text and under another; the first draws have turned.

    One that was `solved` passed the first time under the current text.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    solved: bool = False

    @property
    def gain(self) -> float:
        """By how much the first draw of the other text is ahead."""
        return self.after[0] - self.before[0]

    @property
    def turned(self) -> bool:
        """Whether the two first draws differ."""
        return abs(self.gain) > _ROUNDING

    @property
    def varied(self) -> bool:
        """Whether a draw was nearer to what the other text had first."""
        return any(map(self._nearer, self.before)) or not all(map(self._nearer, self.after))

    @property
    def both_ways(self) -> bool:
        """Whether it came out in two ways under one of the texts."""
        return any(abs(value - draws[0]) > _ROUNDING for draws in (self.before, self.after) for value in draws)

    @property
    def evidence(self) -> float:
        """How much more its draws speak for two texts that differ than for one chance under both."""
        if not self.turned:
            return 1.0
        before, after = sum(map(self._nearer, self.before)), sum(map(self._nearer, self.after))
        return _evidence(before, len(self.before), after, len(self.after))

    def _nearer(self, value: float) -> bool:
        """Whether a result is nearer to the other text's first one."""
        return abs(value - self.after[0]) < abs(value - self.before[0])


@lru_cache(maxsize=4096)
def _evidence(before: int, of_before: int, after: int, of_after: int) -> float:
    """
    How much more the counts speak for two chances than for one: passes of each text, of so many draws.

    Under each the chances may be anything, as likely; of two the other text's is the larger one.
    """
    a, b = before + 1, of_before - before + 1
    all_but_one = a + b - 1
    two = (
        2
        * _beta(a, b)
        * sum(
            comb(all_but_one, j) * _beta(after + 1 + j, of_after - after + 1 + all_but_one - j)
            for j in range(a, all_but_one + 1)
        )
    )
    return two / _beta(before + after + 1, of_before + of_after - before - after + 1)


def _beta(a: int, b: int) -> float:
    return factorial(a - 1) * factorial(b - 1) / factorial(a + b - 1)


def share_of_luck(again: int, varied: int) -> float:
    """How many of the tasks that turn do so by luck: so many came out otherwise in so many further draws."""
    return min(_MOST, (_DRAWS_OF_A_COIN * varied + _LUCK) / (again + _LUCK + _NO_LUCK))


def luck(share: float, evidence: float) -> float:
    """How probable luck is, where that many turn by luck and the draws speak against it."""
    odds = share / (1 - share) / evidence
    return odds / (1 + odds)


@frozen(kw_only=True)
class Screened:
    """
    What tasks came to that an edit was tried on alone; `share` of those that turn are thought to do so by luck.

    Of the `fickle`, which have come out in two ways before, nearly all are. Where there are `chances`, they tell it for
    what came out better. One that `deletes` is to take out a line that may be of no use. Worked examples bring wrong
    answers `nearer` to right ones by so much; where they show all that failed they are `untested`, and have to break
    nothing.
    """

    results: Mapping[str, Results] = field(factory=dict)
    share: float = 0.0
    fickle: frozenset[str] = frozenset()
    deletes: bool = False
    nearer: float = 0.0
    untested: bool = False
    chances: Chances | None = None

    @property
    def better(self) -> tuple[str, ...]:
        """The tasks that came out better, and not by luck."""
        return tuple(item for item, each in self.results.items() if each.gain > _ROUNDING and self._stays(item))

    @property
    def fixed_once(self) -> tuple[str, ...]:
        """The tasks whose first draw came out better, whether or not by luck."""
        return tuple(item for item, each in self.results.items() if each.gain > _ROUNDING)

    @property
    def worse(self) -> tuple[str, ...]:
        """The tasks that came out worse, and not by luck."""
        return tuple(item for item, each in self.results.items() if each.gain < -_ROUNDING and self._stays(item))

    @property
    def varied(self) -> tuple[str, ...]:
        """The tasks that turned, and came out otherwise when they were drawn again."""
        return tuple(item for item, each in self.results.items() if each.turned and each.varied)

    @property
    def again(self) -> int:
        """How many further draws of tasks that turned there were, under either text."""
        return sum(len(each.before) + len(each.after) - 2 for each in self.results.values() if each.turned)

    @property
    def luck(self) -> float:
        """How probable it is that all that came out better did so by luck: a useless edit has no other way."""
        if self.chances is not None:
            return self.chances.luck(self._drawn(self._to_fix))
        share = _MOST if self.share and self.fickle.issuperset(self.better) else self.share
        return luck(share, prod(self.results[item].evidence for item in self.better))

    @property
    def ahead(self) -> bool:
        """Whether more came out better than worse."""
        return len(self.better) > len(self.worse)

    @property
    def won(self) -> bool:
        """
        Whether it is ahead, and not by luck; one that deletes, whether its task is no worse without the line.

        Examples that teach the form of answers win before any answer is right, and so do those of all that fails yet.
        """
        if self.deletes:
            return bool(self.results) and not self.worse
        shown = (self.untested or self.nearer >= MUCH_NEARER) and not self.worse
        return shown or (self.ahead and self.luck <= (MOST_LUCK if self.chances is None else _MOST_BY_CHANCE))

    @property
    def _to_fix(self) -> tuple[str, ...]:
        """The tasks that came out better, or as badly as before."""
        return tuple(
            item for item, each in self.results.items() if each.gain > _ROUNDING or not (each.turned or each.solved)
        )

    def _drawn(self, items: Iterable[str]) -> Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]:
        return {item: (self.results[item].before, self.results[item].after) for item in items}

    def _stays(self, item: str) -> bool:
        if self.chances is not None and self.results[item].gain > 0:
            return self.chances.luck(self._drawn([item])) < self.chances.doubtful
        share = _MOST if self.share and item in self.fickle else self.share
        return luck(share, self.results[item].evidence) < 0.5


_WORD = re.compile(r"\w{3,}")


def spoken_of(text: str, tasks: Mapping[str, str]) -> tuple[str, ...]:
    """The tasks of which a text has a word that fewer than half of them have; none where there are not two tasks."""
    spoken = set().union(*telling_words(text, tasks))
    return tuple(item for item in tasks if item in spoken)


def telling_words(text: str, tasks: Mapping[str, str]) -> tuple[frozenset[str], ...]:
    """For each word of a text that fewer than half of the tasks have, and one at least, the tasks that have it."""
    having: dict[str, set[str]] = {word: set() for word in _WORD.findall(text.lower())}
    for item, task in tasks.items():
        for word in set(_WORD.findall(task.lower())):
            if word in having:
                having[word].add(item)
    return tuple(frozenset(items) for items in having.values() if items and 2 * len(items) < len(tasks))
