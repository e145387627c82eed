"""
Disturbs runs of every kind at random and compares them with undisturbed ones: `python -m tests.sweep --minutes 60`.

Signals at any moment, damaged bytes in any file, disks that fail or are full. It ends with exit code 1 if a run
differed or lost something without a word; the folder of each such trial is kept and named.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as tests/conftest.py does

from sweep.dose import KINDS, Sweep


def main() -> int:
    """Until the time is over."""
    options = _options()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    home = Path(tempfile.mkdtemp(prefix="sweep-"))
    print(f"seed {seed}, in {home}", flush=True)
    until = time.monotonic() + options.minutes * 60
    with Sweep(home, seed) as sweep:
        number = options.first
        while time.monotonic() < until and (options.trials is None or number < options.first + options.trials):
            sweep.trial(number, options.only or KINDS)
            number += 1
        print(sweep.report())
        return 1 if sweep.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of an earlier sweep; its trials are the same but for the clock")
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    parser.add_argument("--trials", type=int, help="at most so many")
    parser.add_argument("--only", nargs="+", choices=KINDS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
