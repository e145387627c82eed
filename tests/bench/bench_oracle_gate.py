"""
The most that better evidence at the gate could add to `search`: its verdicts against those of one that knows the truth.

    python tests/bench/bench_oracle_gate.py [--worlds rules,larger] [--seeds 6]

The same runs as in bench_learning.py, with the same calls; only the verdict over a candidate is another one: by the
true score of both texts, which the bench computes from the rules of the world. No evidence can tell more than that.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from attrs import evolve
from bench_learning import ours
from worlds.made import WORLDS, World

from skillopt_es.algorithms.search import algorithm
from skillopt_es.algorithms.search.state import SearchState
from skillopt_es.config import RunConfig
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import CandidateGated, Event

ALGORITHM = "search:evaluation.early_stop=off"  # a candidate that the true gate takes must have been measured whole


def area(world: World, seed: int, *, knows: bool) -> float:
    """The area under one run's curve, as a share of the ceiling."""
    decided = algorithm.DECISIONS["gate_candidate"]

    def by_truth(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> Event:
        found = decided(state, config, evidence)
        assert isinstance(found, CandidateGated)
        assert state.built is not None
        assert state.current is not None
        taken = world.score(state.built.candidate.text) > world.score(state.current.skill.text) - 1e-9
        action = "accept_new_best" if taken else "reject"
        return evolve(found, verdict=evolve(found.verdict, action=action, new_best=taken))

    decisions = dict(algorithm.DECISIONS)
    if knows:
        algorithm.DECISIONS["gate_candidate"] = by_truth  # type: ignore[index]
    try:
        return ours(ALGORITHM, world, seed).area(world.budgets[-1]) / world.ceiling
    finally:
        algorithm.DECISIONS.update(decisions)  # type: ignore[attr-defined]


def main() -> None:
    """Prints a row for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default=",".join(name for name in WORLDS if name != "null"))
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    print("| world | area | with a gate that knows | difference |\n| --- | ---: | ---: | ---: |")
    for name in options.worlds.split(","):
        rows = [
            [area(WORLDS[name](seed), seed, knows=knows) for knows in (False, True)]
            for seed in range(1, options.seeds + 1)
        ]
        own, known = (statistics.mean(row[at] for row in rows) for at in (0, 1))
        print(f"| `{name}` | {own:.3f} | {known:.3f} | {known - own:+.4f} |", flush=True)


if __name__ == "__main__":
    main()
