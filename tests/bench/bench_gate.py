"""
What each rule of the gate is worth: what it takes that is no better, what it sees, what that costs.

    python tests/bench/bench_gate.py [trials]

Deterministic: the same trials give the same figures. The error of a share is at most 0.5 / sqrt(trials).

*Itself*: a candidate that is the same text. *Churn*: one that turns a tenth of the results, up as often as down. +5 and
+10 points: failing items that pass in every draw from then on. The first gate meets a current skill with one draw, a
later one with all that the rule wants, in a run that has seen which items flip.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing import Pool

from attrs import evolve, frozen

from skillopt_es.events.values import Measured
from skillopt_es.gate.comparing import Known
from skillopt_es.gate.noise import Draw
from skillopt_es.gate.power import Chances, duel, improved
from skillopt_es.gate.rules import Paired, Retest, Rule, Strict
from skillopt_es.projections.intervals import wilson, wilson_by_family

SEED = 7
PAIRED = Paired(repeats=3, standard_errors=1.5)
SAFE = Retest(repeats=4)
RULES: Mapping[str, Rule] = {
    "`strict`": Strict(repeats=1),
    "`paired`, 1 error, 2 draws": Paired(repeats=2, standard_errors=1.0),
    "`paired`, 1.5 errors, 3 draws": PAIRED,
    "`retest`, 4 draws (`safe`)": SAFE,
}
SIZES = (20, 40, 100)


@frozen(kw_only=True)
class World:
    """Items by their chances; those of one family pass together. `steps`: in how many steps a score is given."""

    chances: Chances
    families: Mapping[str, str]
    steps: int = 1

    def draw(self, chances: Chances, rng: random.Random) -> Draw:
        """One evaluation of a text with these chances."""
        together = {family: rng.random() for family in sorted(set(self.families.values()))}
        return {item: self._graded(item, chance, together, rng) for item, chance in chances.items()}

    def _graded(self, item: str, chance: float, together: Mapping[str, float], rng: random.Random) -> Measured:
        if item in self.families:
            score = float(together[self.families[item]] < chance)
        else:
            score = sum(rng.random() < chance for _ in range(self.steps)) / self.steps
        return Measured(score, score)

    @property
    def flipped(self) -> frozenset[str]:
        """What a run has seen to flip after a while."""
        return frozenset(item for item, chance in self.chances.items() if 0 < chance < 1)


def flaky(items: int, low: float = 0.2, high: float = 0.8) -> World:
    """Three of ten items flip, the others pass or fail in every draw."""
    coins = round(0.3 * items)
    fixed = {f"fixed-{n}": float(n % 2) for n in range(items - coins)}
    return World(chances={**fixed, **{f"flaky-{n}": low if n % 2 else high for n in range(coins)}}, families={})


def one_coin(items: int) -> World:
    """One item passes every other time."""
    return World(chances={**{f"fixed-{n}": float(n % 2) for n in range(items - 1)}, "coin": 0.5}, families={})


def families(items: int) -> World:
    """Ten families; three of them pass together or fail together."""
    names = [f"i{n}" for n in range(items)]
    kinds = {name: f"f{n * 10 // items}" for n, name in enumerate(names)}
    flip = {"f0": 0.2, "f1": 0.8, "f2": 0.5}
    return World(chances={name: flip.get(kinds[name], float(n % 2)) for n, name in enumerate(names)}, families=kinds)


def heterogeneous(items: int) -> World:
    """Each item has a chance of its own: the quantiles of Beta(1/2, 1/2)."""
    return World(chances={f"i{n}": math.sin(math.pi * (n + 0.5) / items / 2) ** 2 for n in range(items)}, families={})


def coarse(items: int) -> World:
    """Soft scores in quarters."""
    return evolve(heterogeneous(items), steps=4)


WORLDS: Mapping[str, Callable[[int], World]] = {
    "30 % flaky": flaky,
    "one coin": one_coin,
    "10 families, 3 flip together": families,
    "Beta(.5, .5)": heterogeneous,
    "... in quarters": coarse,
}


@frozen(kw_only=True)
class Seen:
    """Of how many comparisons which share was taken, and what one cost."""

    taken: float
    spent: float


def seen(rule: Rule, world: World, gain: float, trials: int, *, later: bool = False) -> Seen:
    """A candidate that is so much better, in a first gate of a run or in a later one."""
    rng = random.Random(SEED)
    known = Known(families=world.families, flipped=world.flipped if later else frozenset())
    taken = spent = 0
    for _ in range(trials):
        better = improved(world.chances, gain, rng) if gain else world.chances
        before = tuple(world.draw(world.chances, rng) for _ in range(rule.repeats if later else 1))
        draws = (partial(world.draw, world.chances, rng), partial(world.draw, better, rng))
        found = duel(rule, before, *draws, known)
        taken += found.ruling.verdict == "accept"
        spent += found.spent
    return Seen(taken=taken / trials, spent=spent / trials)


def turned(chances: Chances, share: float, rng: random.Random, gain: float = 0.0) -> Chances:
    """Steady items after an edit: so many turn, up as often as down; of those that fail `gain` more pass."""
    found = {}
    for item, chance in chances.items():
        often = share + (2 * gain if chance == 0 else 0)
        found[item] = 1 - chance if rng.random() < often else chance
    return found


def churn(rule: Rule, items: int, share: float, trials: int, gain: float = 0.0) -> float:
    """How often a text of so much gain is taken where nothing flips but what the edit turns."""
    rng, names = random.Random(SEED), [f"i{n}" for n in range(items)]
    taken = 0
    for _ in range(trials):
        there = {item: float(rng.random() < 0.5) for item in names}
        after = turned(there, share, rng, gain)
        taken += wins(rule, there, after, rng)
    return taken / trials


def wins(rule: Rule, steady: Chances, after: Chances, rng: random.Random) -> bool:
    """Whether a text wins where nothing flips but what the edit turned."""
    none = World(chances=steady, families={})
    found = duel(rule, (none.draw(steady, rng),), partial(none.draw, steady, rng), partial(none.draw, after, rng))
    return found.ruling.verdict == "accept"


def best_of_any(items: int, share: float, gain: float, null: float) -> float:
    """
    The most that any rule on these items can take of a gain that takes so many of the nulls: Neyman and Pearson.

    Items turn down as often in both cases, so what tells is how many of the failing ones turned up.
    """
    old, new = (_binomial(items, rate) for rate in (share / 2, share / 2 + gain))
    left, power = null, 0.0
    for count in range(items, -1, -1):
        taken = min(1.0, left / old[count]) if old[count] > 0 else 1.0
        power += taken * new[count]
        left -= taken * old[count]
        if left <= 0:
            break
    return power


def _binomial(count: int, rate: float) -> list[float]:
    return [math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(count + 1)]


def climb(rule: Rule, items: int, gates: int, trials: int) -> tuple[float, float]:
    """After so many edits of no gain: told minus true score in points, and how often an interval holds the truth."""
    rng = random.Random(SEED)
    names = [f"i{n}" for n in range(items)]
    above = covered = 0.0
    for _ in range(trials):
        now: Chances = {item: float(rng.random() < 0.5) for item in names}
        for _ in range(gates):
            after = turned(now, 0.1, rng)
            now = after if wins(rule, now, after, rng) else now
        told = sum(now.values()) / items
        interval = wilson(told, items)
        assert interval is not None
        above += told - 0.5
        covered += interval.low <= 0.5 <= interval.high
    return 100 * above / trials, covered / trials


def coverage(items: int, kinds: int, trials: int) -> tuple[float, float]:
    """How often an interval by item, and one by type, holds the truth where all items of a type do the same."""
    rng = random.Random(SEED)
    alone = together = 0
    for _ in range(trials):
        passes = [float(rng.random() < 0.6) for _ in range(kinds)]
        means = {f"i{n}": passes[n % kinds] for n in range(items)}
        by_item = wilson(sum(means.values()) / items, items)
        by_type = wilson_by_family(means, {f"i{n}": f"t{n % kinds}" for n in range(items)})
        assert by_item is not None
        assert by_type is not None
        alone += by_item.low <= 0.6 <= by_item.high
        together += by_type.low <= 0.6 <= by_type.high
    return alone / trials, together / trials


def power_row(asked: tuple[str, str, int, int]) -> str:
    """One rule in one world of one size."""
    label, world, items, trials = asked
    there, rule = WORLDS[world](items), RULES[label]
    null, five, ten = (seen(rule, there, gain, trials) for gain in (0.0, 0.05, 0.1))
    later = seen(rule, there, 0.0, trials, later=True)
    return (
        f"| {world} | {items} | {label} | {null.taken:.2f} | {later.taken:.2f} | {five.taken:.2f} | {ten.taken:.2f} | "
        f"{null.spent:.0f}, {ten.spent:.0f} | {later.spent:.0f} |"
    )


def churn_row(asked: tuple[str, float, int, int]) -> str:
    """One rule on steady items that an edit turns."""
    label, share, items, trials = asked
    null, ten = (churn(RULES[label], items, share, trials, gain) for gain in (0.0, 0.1))
    bound = best_of_any(items, share, 0.1, null)
    return f"| {100 * share:.1f} % | {items} | {label} | {null:.2f} | {ten:.2f} | {bound:.2f} |"


def climb_row(asked: tuple[str, int, int]) -> str:
    """One rule over 50 edits of no effect."""
    label, items, trials = asked
    above, covered = climb(RULES[label], items, 50, max(10, trials // 10))
    return f"| {label} | {items} | {above:+.1f} | {covered:.2f} | 0.0 |"


def coverage_row(asked: tuple[int, int, int]) -> str:
    """One number of types."""
    items, kinds, trials = asked
    alone, together = coverage(items, kinds, 5 * trials)
    return f"| {items} | {kinds} | {alone:.2f} | {together:.2f} |"


def tables(trials: int) -> Sequence[tuple[str, Callable[..., str], Sequence[tuple[object, ...]]]]:
    """Each table: its head, what makes a row, and of what."""
    strict, paired, safe = "`strict`", "`paired`, 1.5 errors, 3 draws", "`retest`, 4 draws (`safe`)"
    return (
        (
            "| items flip | items | rule | itself | itself, later | +5 | +10 | costs: first, first +10 | later |",
            power_row,
            [
                *((label, "30 % flaky", 40, trials) for label in RULES),
                *((label, "30 % flaky", items, trials) for items in (20, 100) for label in (strict, paired, safe)),
                *(
                    (label, world, items, trials)
                    for world in ("one coin", "10 families, 3 flip together")
                    for items in SIZES
                    for label in (paired, safe)
                ),
                *(
                    (label, world, 40, trials)
                    for world in ("Beta(.5, .5)", "... in quarters")
                    for label in (paired, safe)
                ),
            ],
        ),
        (
            "| an edit turns | items | rule | no gain | +10 | most that any rule with so many nulls can take |",
            churn_row,
            [(label, share, items, trials) for share in (0.025, 0.1) for items in SIZES for label in (strict, safe)],
        ),
        (
            "| rule | items | points above the truth after 50 such edits | interval covers | at best |",
            climb_row,
            [(label, items, trials) for items in (40,) for label in (strict, safe)],
        ),
        (
            "| items | types | 95 % interval by item covers | by type |",
            coverage_row,
            [(40, 10, trials), (40, 4, trials), (100, 10, trials)],
        ),
    )


def main() -> None:
    """All tables."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with Pool(2) as pool:
        for head, row, asked in tables(trials):
            print(f"\n{head}\n|{' --- |' * (head.count('|') - 1)}")
            for line in pool.map(row, asked, chunksize=1):
                print(line)
    print(
        "\nA rule that knew each item's chance would take no text for a better one, and every gain, in its first draw."
    )


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"\n{time.perf_counter() - started:.1f} s")
