"""
What certificates are worth: how often a false one is given, and how much of what was truly gained is certified.

    python tests/bench/bench_certificate.py [--trials 2000]

Simulated, with the product's own bets: 20 steps; each has one edit, which turns a tenth of all tasks, and a gate on 40
validation items; a batch of fresh items meets the current text and the certified one. Nothing is drawn but items: the
target always does the same. The same seeds give the same figures.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import define, field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from skillopt_es.events.values import Bets
from skillopt_es.gate.bets import ENOUGH, Purse, next_stake
from skillopt_es.projections.intervals import wilson

CHURN = 0.10
START = 0.4  # the share of all tasks that the first text solves
STEPS = 20
VALIDATION = 40

Effects = Sequence[float]
MIXED: Effects = (0.0, 0.0, 0.06, -0.06)
NULL: Effects = (0.0,)


@frozen
class Turn:
    """An edit as it turns tasks: the chance for one that fails to pass, and for one that passes to fail."""

    up: float
    down: float


def turn(mean: float, effect: float) -> tuple[Turn, float]:
    """An edit with this effect on texts that solve such a share of all tasks, and the share after it."""
    won = min((CHURN + effect) / 2, 1 - mean)
    lost = min((CHURN - effect) / 2, mean)
    return Turn(won / (1 - mean) if mean < 1 else 0.0, lost / mean if mean else 0.0), mean + won - lost


def turned(passes: bool, edits: Sequence[Turn], rng: random.Random) -> bool:
    """How a task comes out after these edits."""
    for each in edits:
        passes = rng.random() >= each.down if passes else rng.random() < each.up
    return passes


@define
class Trial:
    """One simulated run; `later` are the edits between the certified text and the current one."""

    rng: random.Random
    effects: Effects
    batch: int
    ties: bool
    last: Bets | None = None
    purse: Purse = field(factory=lambda: Purse(stake=1.0))
    mean: float = START
    certified: float = START
    later: list[Turn] = field(factory=list)
    first: int = 0
    false: bool = False

    def run(self) -> Trial:
        """All its steps, and the batch after the last one."""
        validation = [self.rng.random() < START for _ in range(VALIDATION)]
        for step in range(1, STEPS + 1):
            self._bet(step)
            edit, mean = turn(self.mean, self.rng.choice(self.effects))
            after = [turned(each, [edit], self.rng) for each in validation]
            if sum(after) > sum(validation) or (self.ties and sum(after) == sum(validation)):
                validation, self.mean = after, mean
                self.later.append(edit)
                self.purse = Purse(stake=next_stake(self.last))
        self._bet(STEPS + 1)
        return self

    def _bet(self, step: int) -> None:
        if not self.later:
            return
        gains = {}
        for number in range(self.batch):
            before = self.rng.random() < self.certified
            gains[str(number)] = float(turned(before, self.later, self.rng) - before)
        self.last = self.purse.and_then(gains)
        self.purse = Purse(stake=self.purse.stake, gains=(*self.purse.gains, *gains.values()))
        if self.last.wealth >= ENOUGH:
            self.false = self.false or self.mean <= self.certified + 1e-12
            self.first = self.first or step
            self.certified, self.later = self.mean, []
            self.purse = Purse(stake=next_stake(self.last))


def simulated(name: str, effects: Effects, batch: int, ties: bool, trials: int, seed: int) -> str:
    """A row of the table."""
    runs = [Trial(random.Random(f"{seed} {number}"), effects, batch, ties).run() for number in range(trials)]
    true = sum(each.mean - START for each in runs) / trials
    certified = sum(each.certified - START for each in runs) / trials
    false = sum(each.false for each in runs) / trials
    bound = wilson(false, trials)
    firsts = sorted(each.first for each in runs if each.first)
    first = str(firsts[len(firsts) // 2]) if firsts else "-"
    share = f"{certified / true:.2f}" if true > 0.01 else "-"
    return (
        f"| {name} | {'not worse' if ties else 'better'} | {batch} "
        f"| {100 * true:.1f} | {100 * certified:.1f} | {share} "
        f"| {first} | {false:.4f} ({bound.low:.4f} to {bound.high:.4f}) |"
    )


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    options = parser.parse_args()
    print("| edits | gate takes | batch | true points | certified | share | first, step | false certificates |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name, effects in (("no effect", NULL), ("0, 0, +6, -6", MIXED)):
        for ties in (False, True):
            for batch in (20, 40):
                print(simulated(name, effects, batch, ties, options.trials, 1), flush=True)


if __name__ == "__main__":
    main()
