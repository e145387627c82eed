"""
What each rule of the gate is worth on flaky items: null accepts, power, what it costs, and drift.

    python tests/bench/bench_gate.py [trials]

40 validation items, 12 of them flaky (30 %), 14 that always pass and 14 that never do. Two models of the flaky ones:
each passes every other time (p = 0.5), or half of them pass in one attempt of five and half in four of five
(p = 0.2 / 0.8). A gain of 5 (10) points is 2 (4) of the failing items that pass from then on. Drift is the recorded
score of the skill that stands after 20 steps whose candidates changed nothing, less its true score: as the verdict's
draws had it, and as one more draw has it that decided nothing (`evaluation.fresh_score`). The error of a share is at
most 0.5 / sqrt(trials).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from multiprocessing import Pool

from skillopt_es.training.gate_power import Chances, always, drift, power
from skillopt_es.training.gate_rules import Rule

SEED = 7
RULES: Mapping[str, Rule] = {
    "strict": Rule(name="strict", draws=1),
    "confirm, 2 draws": Rule(name="confirm", draws=2),
    "confirm, 3 draws": Rule(name="confirm", draws=3),
    "paired 1.0, 2 draws": Rule(name="paired", draws=2, standard_errors=1.0),
    "paired 1.5, 3 draws": Rule(name="paired", draws=3, standard_errors=1.5),
}
MODELS: Mapping[str, tuple[float, float]] = {"p = 0.5": (0.5, 0.5), "p = 0.2 / 0.8": (0.2, 0.8)}


def items(low: float, high: float) -> Chances:
    """The forty items."""
    fixed = {f"fixed-{number}": float(number % 2) for number in range(28)}
    return {**fixed, **{f"flaky-{number}": low if number % 2 else high for number in range(12)}}


def row(asked: tuple[str, str, int]) -> str:
    """One rule under one model of flaky items."""
    model, label, trials = asked
    known, rule = always(items(*MODELS[model])), RULES[label]
    null, five, ten = (power(rule, known, gain=gain, trials=trials, seed=SEED) for gain in (0, 0.05, 0.1))
    runs = max(40, trials // 4)
    pooled, fresh = (drift(rule, known, trials=runs, seed=SEED, fresh=fresh) for fresh in (False, True))
    return (
        f"| {label} | {null.accepted:.3f} | {five.accepted:.3f} | {ten.accepted:.3f} | {pooled.spent:.0f} | "
        f"{pooled.points:+.1f} | {fresh.points:+.1f} |"
    )


def main() -> None:
    """Both tables."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    asked = [(model, label, trials) for model in MODELS for label in RULES]
    with Pool(2) as pool:
        rows = dict(zip(asked, pool.map(row, asked, chunksize=1), strict=True))
    for model in MODELS:
        print(f"\n12 of 40 items flaky, {model}; {trials} trials\n")
        print("| rule | null accepts | power +5 | power +10 | items a null step | drift | drift, fresh score |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for label in RULES:
            print(rows[model, label, trials])


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"\n{time.perf_counter() - started:.1f} s")
