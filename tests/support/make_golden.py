"""
Makes a golden log: `python tests/support/make_golden.py 0.2.0-search search` (refuses to replace one).

A golden log is a real run, kept for ever: every later version must fold it to the same state. It has the name of its
release, and perhaps what is particular about it: `0.1.0` is one of the algorithm `classic`, the others say which
they are of. `golden_runs.py` says what the runs are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from skillopt_es.events.values import digest_of
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.snapshot import snapshot
from skillopt_es.sessions.session import read_state
from support.golden_runs import RUNS, Maker

GOLDEN = Path(__file__).parent.parent / "golden"


def state_digest(state: AnyState) -> str:
    """Names a state, by everything that is shown of it."""
    return digest_of(json.dumps(snapshot(state), sort_keys=True).encode())


def make(name: str, run: Maker) -> None:
    """Writes `golden/<name>/run` and what it folds to."""
    folder = GOLDEN / name
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:  # beside its data, so that the log has no other folder's name
        asyncio.run(run(Path(scratch), Path(scratch) / "run"))
        shutil.copytree(Path(scratch) / "run", folder / "run")
    expected = {"state": state_digest(read_state(folder / "run"))}
    for leftover in [*(folder / "run").glob("lock"), *(folder / "run").glob("log.db-*")]:
        leftover.unlink()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes a golden log.")
    parser.add_argument("name", help="its folder: a release, and perhaps what is particular about it")
    parser.add_argument("run", choices=[*RUNS], help="the run to make")
    given = parser.parse_args()
    make(given.name, RUNS[given.run])
