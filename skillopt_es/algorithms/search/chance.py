"""
Chance: how probable it is that an edit does nothing, where the target may toss coins or slip. Pure.

A target is one of sixteen kinds: it tosses coins for a share of its tasks whatever the skill says, and slips in a
share of its other draws. All repeated draws of the run tell which kind it is likely to be. Under each kind a task's
draws without and with an edit are more or less probable, if the edit changes the task and if it does not. Luck is
Bayes' rule over these kinds (a finite mixture whose parts are fixed), for an edit that is useful as likely as not.

Tried and dropped (docs/dev/decisions/0042-luck-by-all-draws.md has the figures of all):

- Counting alone: a task that came out in two ways was a coin from then on. Where each call may go wrong, right edits
  were dropped: in `noisy` a search learned .45 of .68 in 300 calls, and .57 without any further draws. By this model
  area and end rose from .57 and .76 to .71 and .90; in `flaky`, where tasks are coins, they fell from .77 to .75 and
  stayed at .92.
- No further draws at all: learns most, and took eleven useless edits in three runs in which each is one too many.
- Another share for tasks that came out in two ways, more draws for them, a second try: each won where calls are noisy
  and lost as much where tasks are coins.
- The share of tasks that a useful edit fixes, learned from the run: it came out low, and the bound too strict
  (.42 instead of .53).
- The same model for what came out worse: edits that harm got through (a candidate at .44 after .59), so blame goes by
  counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import exp, inf, log, prod

from attrs import evolve as replace
from attrs import frozen

Draws = tuple[float, ...]
"""What a task came to under one text, draw by draw."""

_COINS = {0.0: 0.25, 0.1: 0.3, 0.3: 0.3, 0.5: 0.15}  # the share of tasks, and how probable it is
_SLIPS = {0.0: 0.6, 0.05: 0.2, 0.15: 0.15, 0.25: 0.05}  # the share of draws, and how probable it is
_STEADY = 0.3  # how probable it is, before any draw, that a target never varies
_KINDS = tuple(product(_COINS, _SLIPS))
_USEFUL = 0.5  # how probable it is, before any try, that an edit fixes what it is for
_FIXES = 0.7  # of the tasks that it is for, where it does
_FIXED, _BROKEN = 0.1, 0.03  # how often a task is fixed, or broken, from one text of the run to the next
_SURELY = 0.98  # no task surely fails or passes: of a chance of 0 or 1 no draw could say otherwise
# From this share on a draw is given up at .6 in place of .4: with .4 everywhere a run learns .69 of `noisy` and .76 of
# `flaky`, with .6 .72 and .75 (24 seeds).
_MANY_SLIPS = 0.05


@frozen
class History:
    """
    The draws of a task under the texts that were current, one after the other, and under others.

    Under the first of them the share of `failing` tasks failed.
    """

    own: tuple[Draws, ...] = ()
    others: tuple[Draws, ...] = ()
    failing: float = 0.5


@frozen(kw_only=True)
class Chances:
    """How probable each kind of target is, and the draws of each task under other texts than an edit's."""

    kinds: tuple[float, ...]
    histories: Mapping[str, History]

    @property
    def doubtful(self) -> float:
        """How probable luck may be of one task before its draws are given up; where calls slip, right edits do, too."""
        slips = sum(probable * slips for probable, (_, slips) in zip(self.kinds, _KINDS, strict=True))
        return 0.6 if slips >= _MANY_SLIPS else 0.4

    def luck(self, results: Mapping[str, tuple[Draws, Draws]]) -> float:
        """How probable it is that an edit does nothing for tasks with these draws without it and with it."""
        tasks = [
            _scaled(_likelihoods(self._known(item, without), without[0], new))
            for item, (without, new) in results.items()
        ]
        useful = nothing = 0.0
        for kind, probable in enumerate(self.kinds):
            nothing += probable * prod(same for _, same in (task[kind] for task in tasks))
            useful += probable * prod(
                _FIXES * new + (1 - _FIXES) * same for new, same in (task[kind] for task in tasks)
            )
        nothing, useful = (1 - _USEFUL) * nothing, _USEFUL * useful
        return nothing / (nothing + useful) if nothing + useful else 1.0

    def _known(self, item: str, without: Draws) -> History:
        """A task's history; one without any draw under a current text has at least those that it was shown with."""
        history = self.histories.get(item, History())
        return history if history.own else replace(history, own=(without,))


def _scaled(task: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    """The same likelihoods of the kinds beside each other; many small ones make no number that is too small."""
    most = max(max(pair) for pair in task) or 1.0
    return tuple((new / most, same / most) for new, same in task)


def kinds_of_target(drawn: Iterable[Draws]) -> tuple[float, ...]:
    """How probable each kind of target is, given what tasks came to that were drawn more than once under one text."""
    repeated = Counter((len(draws), _odd(draws)) for draws in drawn if len(draws) > 1)
    return _kinds(tuple(sorted(repeated.items())))


@lru_cache(maxsize=256)
def _kinds(repeated: Sequence[tuple[tuple[int, int], int]]) -> tuple[float, ...]:
    # by logarithms: the product of a thousand chances is too small for a number
    logs = [
        log(_before_any_draw(*kind)) + sum(times * _log(_repeats(*kind, *draws)) for draws, times in repeated)
        for kind in _KINDS
    ]
    most = max(logs)
    found = [exp(each - most) for each in logs]
    return tuple(probable / sum(found) for probable in found)


def _log(chance: float) -> float:
    return log(chance) if chance else -inf


def _before_any_draw(coins: float, slips: float) -> float:
    if not (coins or slips):
        return _STEADY
    return (1 - _STEADY) * _COINS[coins] * _SLIPS[slips] / (1 - _COINS[0.0] * _SLIPS[0.0])


def _repeats(coins: float, slips: float, draws: int, odd: int) -> float:
    """How probable it is that of so many draws under one text so many differ from the first."""
    return coins * 0.5 ** (draws - 1) + (1 - coins) * _either(slips, draws - odd, odd)


def _either(slips: float, these: int, those: int) -> float:
    """How probable these draws and those are where nobody knows which of them slipped."""
    return _held(slips, these, those) + _held(slips, those, these)


def _held(slips: float, right: int, wrong: int) -> float:
    return float((1 - slips) ** right * slips**wrong)


def _odd(draws: Draws) -> int:
    return sum(value != draws[0] for value in draws)


@lru_cache(maxsize=8192)
def _likelihoods(history: History, before: float, after: Draws) -> tuple[tuple[float, float], ...]:
    """
    For each kind of target, how probable a task's draws are where the edit changes it, and where it does not.

    A draw is as the first one was `before`, or as the first one `after`, whatever is nearer.
    """

    def turned(draws: Draws) -> int:
        return sum(abs(value - after[0]) < abs(value - before) for value in draws)

    own = tuple((len(draws), turned(draws)) for draws in history.own)
    yes, all_draws = turned(after), len(after)
    no, found = all_draws - yes, []
    for coins, slips in _KINDS:
        fails, passes, coin = _states(own, history, coins, slips)
        tossed = coin * 0.5**all_draws
        new = (fails + passes) * _held(slips, yes, no) + tossed
        same = fails * _held(slips, no, yes) + passes * _held(slips, yes, no) + tossed
        found.append((new, same))
    return tuple(found)


def _states(own: Sequence[tuple[int, int]], history: History, coins: float, slips: float) -> tuple[float, float, float]:
    """How probable a task's history is, and that it fails now, passes without the edit as well, or is a coin."""
    fails = min(_SURELY, max(1 - _SURELY, (history.failing - coins / 2) / (1 - coins)))
    passes, tossed = 1 - fails, 1.0
    for at, (draws, turned) in enumerate(own):
        if at:
            fails, passes = fails * (1 - _FIXED) + passes * _BROKEN, fails * _FIXED + passes * (1 - _BROKEN)
        fails *= _held(slips, draws - turned, turned)
        passes *= _held(slips, turned, draws - turned)
        tossed *= 0.5**draws
    for values in history.others:
        steady = _either(slips, len(values) - _odd(values), _odd(values))
        fails, passes, tossed = fails * steady, passes * steady, tossed * 0.5 ** (len(values) - 1)
    return (1 - coins) * fails, (1 - coins) * passes, coins * tossed
