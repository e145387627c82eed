"""
Changes the pure core in small ways and says which changes no test notices: `python -m tests.mutate [MODULE ...]`.

Each mutant runs in a process of its own, in which a function has the changed code, or the module is compiled from the
changed tree; only tests that reach the changed statement are run, and no file is written.
Mutants that live must be explained in `explained.toml`, by their key, or killed by a new test. It is a command, not a
part of CI.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))  # as tests/conftest.py does

from mutate.choosing import findings  # noqa: E402
from mutate.mutants import Mutant, mutants_of  # noqa: E402
from mutate.running import Running, start, test_whole  # noqa: E402
from mutate.targets import TARGETS  # noqa: E402


@frozen
class Job:
    """A mutant of a module, and whether somebody has explained why it may live."""

    module: str
    mutant: Mutant
    explained: bool


def main() -> int:
    """Exit code 0 if every mutant that lived is explained and at least 90 % of all were killed."""
    options = _options()
    explained = tomllib.loads((HERE / "explained.toml").read_text(encoding="utf-8"))
    jobs = [
        Job(module, mutant, mutant.key in explained.get(module, {}))
        for module in options.modules or sorted(TARGETS)
        for mutant in mutants_of((ROOT / module).read_text(encoding="utf-8"))
    ]
    if options.sample and options.sample < len(jobs):
        jobs = random.Random(options.seed).sample(jobs, options.sample)
    begun, lived = time.monotonic(), []
    for module in sorted({job.module for job in jobs}):
        those = _lived(module, [job for job in jobs if job.module == module], options.jobs)
        if those is None:
            print(f"the tests of {module} fail without any change: {', '.join(TARGETS[module])}", file=sys.stderr)
            return 2
        lived += those
    print(f"{len(jobs)} mutants in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return _report(jobs, lived)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.strip().partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"paths, such as {min(TARGETS)}; default: all")
    parser.add_argument("--sample", type=int, default=0, help="try only so many, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of that draw")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once")
    options = parser.parse_args()
    if unknown := [module for module in options.modules if module not in TARGETS]:
        parser.error(f"no tests are known for {', '.join(unknown)}; targets.py lists the modules")
    return options


def _lived(module: str, jobs: Sequence[Job], at_once: int) -> Sequence[Job] | None:
    """Those of a module that lived, each told as soon as that is known; None if the tests fail without any change."""
    file, tests = ROOT / module, [ROOT / test for test in TARGETS[module]]
    called = {number: job.mutant for number, job in enumerate(jobs) if job.mutant.called}
    found = findings(file, called, tests, at_once)
    if not found.passed:
        return None
    lived = [jobs[number] for number in found.lived + found.unreached]
    for job in lived:
        print(_line(job), flush=True)
    whole = [jobs[number] for number in {*range(len(jobs))} - {*called} | {*found.whole}]
    running: list[tuple[Job, Running]] = []
    while whole or running:
        while whole and len(running) < at_once:
            job = whole.pop()
            do = partial(test_whole, file, job.mutant.tree(), tests, found.took)
            running.append((job, start(do)))
        for pair in [pair for pair in running if pair[1].ended()]:
            running.remove(pair)
            if not pair[1].failed:
                lived.append(pair[0])
                print(_line(pair[0]), flush=True)
        time.sleep(0.01)
    return lived


def _line(job: Job) -> str:
    mutant = job.mutant
    return f"{'explained' if job.explained else 'LIVES    '} {job.module}:{mutant.line} {mutant.key}"


def _report(jobs: Sequence[Job], lived: Sequence[Job]) -> int:
    all_of, left = Counter(job.module for job in jobs), Counter(job.module for job in lived)
    for module, count in sorted(all_of.items()):
        print(f"{module:45} {count:4} mutants, {(count - left[module]) / count:6.1%} killed, {left[module]} live")
    share = (len(jobs) - len(lived)) / len(jobs)
    open_ = [job for job in lived if not job.explained]
    print(
        f"{'all':45} {len(jobs):4} mutants, {share:6.1%} killed, {len(lived)} live, {len(open_)} of them not explained"
    )
    return 0 if share >= 0.9 and not open_ else 1


if __name__ == "__main__":
    sys.exit(main())
