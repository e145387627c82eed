"""
Bets that one text is better than another, on items that neither was made for: what they come to, and what that proves.

Every difference d between two results lies between -1 and 1. Who bets a fraction f on it has 1 + f*d times as much
afterwards. If the one text is not better, the mean of d over fresh items is at most 0, so no bet gains on average; and
who began with a stake of 1 ever comes to 20 in at most one case of 20 (Ville), however often one looks and whenever one
stops. Part of a stake is kept as cash, so that an unlucky challenger does not ruin those after it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from attrs import frozen

from skillopt_es.events.catalog import CertificateWagered
from skillopt_es.events.values import Bets

ERROR = 0.05
"""The chance of a false certificate in a whole run, at most."""

ENOUGH = 1 / ERROR
"""The wealth that proves it."""

FRACTIONS: Mapping[float, float] = {0.0: 0.4, 0.15: 0.15, 0.3: 0.15, 0.5: 0.15, 0.9: 0.15}
"""The share of a stake that is bet with each fraction: which one is best is not known beforehand."""

_FINENESS = 200  # a bound is told in parts of this many


def wealth(stake: float, gains: Iterable[float], least: float = 0.0) -> float:
    """What a stake has come to by bets that the mean of all gains like these is above `least`."""
    return _told(stake, _purses(gains, least))


def bet_on(stake: float, before: Iterable[float], gains: Iterable[float], least: float = 0.0) -> float:
    """What a stake has come to after these as well, one by one; who has enough goes no further."""
    purses = _purses(before, least)
    for gain in gains:
        if _told(stake, purses) >= ENOUGH:
            break
        purses = {fraction: held * _factor(fraction, gain, least) for fraction, held in purses.items()}
    return _told(stake, purses)


def least_gain(stake: float, before: Collection[float], gains: Collection[float]) -> float | None:
    """The least by which a text is better, of all that the bets prove; None where they prove nothing."""
    found = None
    for part in range(_FINENESS):
        if bet_on(stake, before, gains, part / _FINENESS) < ENOUGH:
            break
        found = part / _FINENESS
    return found


def most_wealth(stake: float, gains: Iterable[float], more: int) -> float:
    """What the bets could come to, if so many further items all were won."""
    return wealth(stake, (*gains, *[1.0] * more))


def _factor(fraction: float, gain: float, least: float) -> float:
    return 1 + min(fraction, 1 / (1 + least)) * (gain - least)


def _purses(gains: Iterable[float], least: float) -> dict[float, float]:
    """What each fraction has made of 1."""
    ordered = sorted(gains)  # a product of floats depends on the order, which a log does not keep
    return {fraction: math.prod(_factor(fraction, gain, least) for gain in ordered) for fraction in FRACTIONS}


def _told(stake: float, purses: Mapping[float, float]) -> float:
    return stake * math.fsum(FRACTIONS[fraction] * held for fraction, held in purses.items())


def next_stake(last: Bets | None) -> float:
    """
    What bets on another challenger begin with: what the last ones have lost is gone, what they won is not passed on.

    Winnings of a text that is better prove nothing about the next one; losses have to be borne, or many challengers
    would each have a chance of 1 in 20. So all certificates of a run share one error.
    """
    return 1.0 if last is None else min(last.stake, last.wealth)


def least_wealth(wager: CertificateWagered) -> float:
    """What the bets on a challenger have come to, by item or by type, whichever is less: both have to be enough."""
    return min(bets.wealth for bets in (wager.by_item, wager.by_type) if bets is not None)


@frozen(kw_only=True)
class Purse:
    """What is bet on one challenger, so far: the stake, and all that it has won or lost."""

    stake: float
    gains: tuple[float, ...] = ()

    def and_then(self, gains: Mapping[str, float]) -> Bets:
        """The bets on these as well, in this order."""
        return Bets(stake=self.stake, gains=gains, wealth=bet_on(self.stake, self.gains, gains.values()))

    def least(self, bets: Bets) -> float | None:
        """The least gain that these bets prove, with all before them."""
        return least_gain(self.stake, self.gains, tuple(bets.gains.values()))


def type_gains(gains: Mapping[str, float], families: Mapping[str, str]) -> dict[str, float]:
    """The mean gain of each family of items, which may turn together; an item of none stands for itself."""
    members: dict[str, list[float]] = {}
    for item, gain in gains.items():
        members.setdefault(families.get(item, item), []).append(gain)
    return {family: math.fsum(each) / len(each) for family, each in members.items()}
