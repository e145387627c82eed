"""
What certificates are worth: how often a false one is given, and how much of what was truly gained is certified.

    python tests/bench/bench_certificate.py [--trials 2000] [--runs 100] [--power 1000] [--jobs 2]

First simulated, with the product's own bets: 20 steps; each has one edit, which turns a tenth of all tasks, and a gate
on 40 validation items; a batch of fresh items meets the current text and the certified one. Then whole runs of the real
engine in such a world. The target always does the same. Last, the power: one text that is better by so many points,
and how often so many fresh items certify it, also where the target varies. No network; the same seeds give the same
figures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import Pool
from pathlib import Path

from attrs import define, field, frozen

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import skillopt_es as so
from skillopt_es.events.catalog import CertificateWagered, RunCompleted, skills_in
from skillopt_es.events.values import Bets
from skillopt_es.gate.bets import ENOUGH, FRACTIONS, Purse, next_stake
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


# --- power ---------------------------------------------------------------------------------------------------------

FRESH = (40, 100, 200, 400)
TARGETS = {"steady": (0.0, 0.0), "coins for 30 % of the tasks": (0.3, 0.0), "slips in 15 % of the calls": (0.0, 0.15)}


def certified_after(effect: float, target: tuple[float, float], rng: random.Random) -> int | None:
    """After how many fresh items one text is certified that turns a tenth of the tasks, or as many as it gains."""
    coins, slips = target
    churn = max(CHURN, effect)
    held = dict.fromkeys(FRACTIONS, 1.0)
    for number in range(1, FRESH[-1] + 1):
        before = rng.random() < START
        after = rng.random() >= (churn - effect) / 2 / START if before else rng.random() < (churn + effect) / 2 / 0.6
        if rng.random() < coins:
            before, after = rng.random() < 0.5, rng.random() < 0.5
        gain = float((after ^ (rng.random() < slips)) - (before ^ (rng.random() < slips)))
        held = {fraction: value * (1 + fraction * gain) for fraction, value in held.items()}
        if sum(FRACTIONS[fraction] * value for fraction, value in held.items()) >= ENOUGH:
            return number
    return None


def power(trials: int) -> Iterator[str]:
    """A row for each effect and target: how often it is certified with so many fresh items."""
    for name, target in TARGETS.items():
        for points in (2, 6, 10, 20):
            rng = random.Random(f"{name} {points}")
            ends = [certified_after(points / 100, target, rng) for _ in range(trials)]
            shares = (sum(end is not None and end <= most for end in ends) / trials for most in FRESH)
            yield f"| {name} | +{points} | {' | '.join(f'{share:.2f}' for share in shares)} |"


# --- whole runs ------------------------------------------------------------------------------------------------------

LINE = re.compile(r"^Habit \w+ \(([-+.\d]+)\)\.$", re.MULTILINE)


def chance(*parts: str) -> float:
    """A number from 0 to 1 that only depends on these texts."""
    return int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:6], "big") / 2**48


def solves(skill: str, task: str) -> bool:
    """Whether a text solves a task: each of its lines turns a tenth of all tasks, always the same ones."""
    passes, mean = chance(task) < START, START
    for line in LINE.finditer(skill):
        edit, mean = turn(mean, float(line[1]))
        drawn = chance(task, line[0])
        passes = drawn >= edit.down if passes else drawn < edit.up
    return passes


def worth(skill: str) -> float:
    """The share of all tasks that a text solves."""
    mean = START
    for line in LINE.finditer(skill):
        _, mean = turn(mean, float(line[1]))
    return mean


@frozen
class Came:
    """What a whole run came to: true gains of its last text and of the certified one, and whether one was false."""

    true: float
    certified: float
    false: bool
    extra: float


def whole_run(job: tuple[str, str, Effects, int]) -> Came:
    """One run of the real engine: a line more a step, from an optimizer that cannot tell good from bad."""
    algorithm, rule, effects, seed = job
    sent = {"target": 0, "certified": 0}

    def follow(request: so.ChatRequest) -> str:
        sent["certified" if "/certified/" in request.slot else "target"] += 1
        task = request.messages[-1].content
        return "right" if solves(request.messages[0].content, re.findall(r"Task \w+", task)[0]) else "wrong"

    def teach(request: so.ChatRequest) -> str:
        name = hashlib.sha256(f"{seed} {request.slot}".encode()).hexdigest()[:8]
        effect = random.Random(name).choice(effects)
        edit = {"op": "append", "target": "", "content": f"Habit {name} ({effect:+}).", "from": [], "items": []}
        return json.dumps({"reasoning": "", "edits": [edit], "patch": {"edits": [edit]}})

    with tempfile.TemporaryDirectory() as folder:
        run = so.train(
            _config(algorithm, rule, seed, Path(folder)),
            name="run",
            runs=folder,
            target=so.ChatFunction(follow),
            optimizer=teach,
            grader=lambda said, item: said == item["expected"],
        )
        return _came(run, sent)


def _config(algorithm: str, rule: str, seed: int, folder: Path) -> dict[str, object]:
    sizes = {"train": STEPS * 20, "val": VALIDATION}
    rows = [
        {"id": f"{split}{number}", "input": f"Task {seed}x{split}{number}", "expected": "right", "split": split}
        for split, size in sizes.items()
        for number in range(size)
    ]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "SKILL.md").write_text("# Skill\n", encoding="utf-8")
    env = {"name": "tasks", "data_path": str(folder / "tasks.jsonl"), "split_mode": "field"}
    return {
        "env": {**env, "skill_init": str(folder / "SKILL.md")},
        "train": {"seed": seed, "num_epochs": 1, "batch_size": 20, "algorithm": algorithm},
        "gradient": {"minibatch_size": 20, "failure_only": True},
        "evaluation": {"eval_test": False, "certificate": True, "gate_rule": rule},
    }


def _came(run: so.Run, sent: Mapping[str, int]) -> Came:
    texts: dict[str, str] = {}
    certified, false, last = START, False, START
    for recorded in run.events():
        texts.update((skill.hash, skill.text) for skill in skills_in(recorded.event))
        match recorded.event:
            case CertificateWagered(moved=True) as won:
                certified = worth(texts[won.challenger])
                false = false or certified <= worth(texts[won.certified]) + 1e-12
            case RunCompleted() as done:
                last = worth(texts[done.best])
    return Came(last - START, certified - START, false, sent["certified"] / sum(sent.values()))


KINDS = (("classic", "strict"), ("search", "not_worse"))


def whole_runs(runs: int, jobs: int) -> Iterator[str]:
    """A row for each algorithm and kind of edits."""
    with Pool(jobs) as pool:
        for algorithm, rule in KINDS:
            for name, effects in EDITS:
                came = pool.map(
                    whole_run, [(algorithm, rule, effects, seed) for seed in range(1, runs + 1)], chunksize=1
                )
                true, certified = (sum(getattr(each, what) for each in came) / runs for what in ("true", "certified"))
                false = sum(each.false for each in came)
                bound = wilson(false / runs, runs)
                share = f"{certified / true:.2f}" if true > 0.01 else "-"
                extra = sum(each.extra for each in came) / runs
                yield (
                    f"| {algorithm}, {rule} | {name} | {100 * true:.1f} | {100 * certified:.1f} | {share} "
                    f"| {false} of {runs} ({bound.low:.3f} to {bound.high:.3f}) | {extra:.0%} |"
                )


EDITS = (("no effect", NULL), ("0, 0, +6, -6", MIXED))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000, help="simulated runs a row; 0 for none")
    parser.add_argument("--runs", type=int, default=100, help="whole runs a row; 0 for none")
    parser.add_argument("--power", type=int, default=1000, help="simulated challengers a row; 0 for none")
    parser.add_argument("--jobs", type=int, default=1, help="whole runs at once")
    options = parser.parse_args()
    if options.trials:
        print("| edits | gate takes | batch | true points | certified | share | first, step | false certificates |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
        for name, effects in EDITS:
            for ties in (False, True):
                for batch in (20, 40):
                    print(simulated(name, effects, batch, ties, options.trials, 1), flush=True)
    if options.runs:
        print("\n| algorithm | edits | true points | certified | share | false certificates | calls for it |")
        print("| --- | --- | ---: | ---: | ---: | --- | ---: |")
        for row in whole_runs(options.runs, options.jobs):
            print(row, flush=True)
    if options.power:
        print(f"\n| target | true gain, points | {' | '.join(f'{most} fresh' for most in FRESH)} |")
        print(f"| --- | ---: |{' ---: |' * len(FRESH)}")
        for row in power(options.power):
            print(row, flush=True)


if __name__ == "__main__":
    main()
