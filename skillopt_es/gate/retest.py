"""
Wins and losses that last: what turned is drawn again under both texts, and counts while every draw of it says the same.

In a first draw items turn by luck as well as for good. An item that turned for good turns in every further draw; a fair
coin does so in one of four, for each text has to fall as it did. So after three more draws of what still stands, one of
64 coins is left, for the price of a few items. Both texts are drawn anew and all draws of both count: an item that only
flips leaves the comparison on whichever side it stood. That only items that turned tell two texts apart is McNemar's
idea (1947); drawing until they agree makes it a sequential test. It is not biased: under two equal texts a win and a
loss survive a round with the same chance.

Of 40 items with 12 flaky ones it takes an unchanged text in 0 to 2 % of cases and sees +5 points in 78 %, for 44 to 72
attempts. Tried and dropped (docs/dev/decisions/0032-what-turned-is-drawn-again.md, 0044-names-of-the-gates-rules.md):

- All items drawn three times (`paired`): 6 to 7 % and 54 %, for 95 to 194 attempts. It stays as a rule of its own: a
  gain that is spread thin over all items looks like coins here, and is missed (.06 against .71).
- The win has to happen again in one more evaluation (`confirm`): 15 to 18 % and 61 %.
- The mean over fresh draws of what turned: as seldom wrong, but coins add noise to what is real, and are paid for.
- A ratio of likelihoods for each item, multiplied: six coins that fell one way pass for proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from skillopt_es.gate.comparing import ROUNDING, Comparison, Known, MoreDraws, Reason, Ruling, Side, Verdict, compare
from skillopt_es.gate.noise import Draw, Worth, mean_of

_CLEAR_WIN = 3.0  # standard deviations: one win in 700 is luck
_CLEAR_LOSS = 2.0  # one in 40: what is refused has cost nobody anything


def standing(current: tuple[Draw, ...], candidate: tuple[Draw, ...], worth: Worth) -> Mapping[str, float]:
    """The items whose every draw is above, or below, every draw of the other text, with the distance of the means."""
    found = {}
    for item in dict.fromkeys(item for draw in candidate for item in draw):
        theirs, ours = _values(current, item, worth), _values(candidate, item, worth)
        if theirs and (min(ours) > max(theirs) + ROUNDING or max(ours) < min(theirs) - ROUNDING):
            found[item] = mean_of(ours) - mean_of(theirs)
    return found


def _values(draws: tuple[Draw, ...], item: str, worth: Worth) -> list[float]:
    return [worth(draw[item].hard, draw[item].soft) for draw in draws if item in draw]


@frozen(kw_only=True)
class _Look:
    """Both texts after so many further draws: the comparison, what stands, and by how much the candidate leads."""

    seen: Comparison
    left: Mapping[str, float]
    lead: float

    @staticmethod
    def after(rounds: int, current: Side, candidate: Side, worth: Worth) -> _Look:
        """All draws that were known when the comparison began, or the first ones, and those of so many rounds."""
        theirs, ours = (side.draws[: max(side.known, 1) + rounds] for side in (current, candidate))
        seen, left = compare(theirs, ours, current.bonus, candidate.bonus, worth), standing(theirs, ours, worth)
        return _Look(
            seen=evolve(seen, error=None),  # what stands has no scatter
            left=left,
            lead=math.fsum(left.values()) / max(1, len(seen.items)) + candidate.bonus - current.bonus,
        )


def retested(
    draws: int, current: Side, candidate: Side, worth: Worth, known: Known, *, ties: bool
) -> Ruling | MoreDraws:
    """
    What stands after a first draw and after each further one of what still stands, at most so many draws in all.

    Without `ties` a candidate has to be ahead after each of them. With them it has to be behind after each to be
    refused. Where nothing ever varied, luck is ruled out, or nobody can pay for more, what there is decides.
    """
    rounds = min(len(candidate.fresh), len(current.fresh))
    looks = [_Look.after(number, current, candidate, worth) for number in range(rounds + 1)]
    again = tuple(looks[0].left) if rounds else ()
    for number, look in enumerate(looks):
        if (look.lead >= -ROUNDING) if ties else (look.lead <= ROUNDING):
            verdict, reason = _AT_ONCE[ties, number > 0]
            return Ruling(verdict=verdict, reason=reason, comparison=look.seen, again=again)
    last = looks[-1]
    begun = len(candidate.fresh) != len(current.fresh)
    clear = _CLEAR_LOSS if ties else _CLEAR_WIN
    enough = known.steady or rounds + 1 >= draws or _beyond_luck(last.left, known.families, clear)
    affordable = known.spare is None or 2 * len(last.left) <= known.spare
    if begun or (affordable and not enough):
        return MoreDraws(
            candidate=len(candidate.draws) + 1 if len(candidate.fresh) == rounds else 0,
            current=len(current.draws) + 1 if len(current.fresh) == rounds else 0,
            items=tuple(last.left),
        )
    if ties:
        return Ruling(verdict="reject", reason="worse", comparison=last.seen, again=again)
    if not enough:
        return Ruling(verdict="indecisive", reason="gain_not_held", comparison=last.seen, again=again)
    return Ruling(verdict="accept", reason="gain_held" if rounds else "better", comparison=last.seen, again=again)


# What ends a comparison after the first draw, or after a further one: a lead that is gone; with ties, a loss that is.
_AT_ONCE: Mapping[tuple[bool, bool], tuple[Verdict, Reason]] = {
    (False, False): ("reject", "not_better"),
    (False, True): ("indecisive", "gain_not_held"),
    (True, False): ("accept", "not_worse"),
    (True, True): ("accept", "loss_not_held"),
}


def _beyond_luck(left: Mapping[str, float], families: Mapping[str, str], deviations: float) -> bool:
    """Whether what stands is more than coins can make that fall either way, each family of items as one."""
    moved: dict[str, list[float]] = {}
    for item, by in left.items():
        moved.setdefault(families.get(item, item), []).append(by)
    means = [mean_of(each) for each in moved.values()]
    return abs(math.fsum(means)) >= deviations * math.sqrt(math.fsum(mean * mean for mean in means))
