"""
Exact early rejection in the offline demo: which share of the gate's rollouts it saves, by rule and size of the waves.

    python tests/bench/bench_early_stop.py [SEEDS]

The verdicts are those of whole evaluations, so what one log names as not run is what it saved. Rollouts of the baseline
and of scores that are only told are not the gate's, and are not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from attrs import frozen

from skillopt_es.events.catalog import RolloutCompleted, SkillScored
from skillopt_es.events.log import EventLog

RULES = {
    "strict": (),
    "paired, 3 draws": (
        "evaluation.gate_rule=paired",
        "evaluation.gate_repeats=3",
        "evaluation.gate_standard_errors=1.5",
    ),
}
WAVES = (4, 8, 16, 40)


@frozen
class Gates:
    """What the gates of a run ran, and what they left out."""

    run: int
    left_out: int

    def __add__(self, other: Gates) -> Gates:
        return Gates(self.run + other.run, self.left_out + other.left_out)


def gates_of(folder: Path) -> Gates:
    """The gates' rollouts of a finished run."""
    run = left_out = 0
    with EventLog.open(folder) as log:
        for recorded in log.read():
            match recorded.event:
                case RolloutCompleted(purpose="selection", place=place):
                    run += not place.startswith("baseline") and not place.endswith("/reported")
                case SkillScored(purpose="selection") as scored:
                    left_out += len(scored.not_run)
    return Gates(run, left_out)


def trained(folder: Path, rule: tuple[str, ...], wave: int, seed: int) -> Gates:
    """The gates of one run of the demo."""
    settings = (
        *rule,
        "evaluation.early_stop=exact",
        f"evaluation.early_stop_wave={wave}",
        f"train.seed={seed}",
        "optimizer.slow_update_gate_with_selection=true",
        "evaluation.eval_test=false",
    )
    options = [part for setting in settings for part in ("--set", setting)]
    program = Path(sys.executable).with_name("skillopt-es")
    command = [str(program), "run", "--run", "demo", "--dir", str(folder), "--quiet", *options]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return gates_of(folder / "demo")


def main(seeds: int) -> None:
    """Prints the table."""
    print(f"share of the gate's rollouts that were not run, offline demo, 40 validation items, {seeds} seeds")
    print("| rule | " + " | ".join(f"waves of {wave}" for wave in WAVES) + " |")
    print("| --- |" + " --- |" * len(WAVES))
    for name, rule in RULES.items():
        cells = []
        for wave in WAVES:
            total = Gates(0, 0)
            for seed in range(1, seeds + 1):
                with tempfile.TemporaryDirectory() as folder:
                    total += trained(Path(folder), rule, wave, seed)
            cells.append(f"{total.left_out / (total.run + total.left_out):.0%}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
