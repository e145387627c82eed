"""
Makes a golden log: `python tests/support/make_golden.py 0.2.0-search search` (refuses to replace one).

A golden log is a real run, kept for ever: every later version must fold it to the same state. It has the name of its
release, and perhaps what is particular about it; `golden_runs.py` says which runs there are. `0.1.0-paired` is one of
the flaky world under `paired`, of the time before `evaluation.gate_noise`: it has no such key. `0.1.0-evaluation` and
`0.1.0-imported` are an evaluation and an import of the time before a log said which program it is of, `0.1.0-verdict`
is the first in which a verdict is one value. `0.1.0-search` and `0.1.0-skills` are of the programs of these
names; `0.1.0-few` is a search of version 4, whose first verdicts take few items.
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
from skillopt_es.sessions.session import read_state, resume, start
from support.golden_runs import RUNS, GoldenRun

GOLDEN = Path(__file__).parent.parent / "golden"


def state_digest(state: AnyState) -> str:
    """Names a state, by everything that is shown of it."""
    return digest_of(json.dumps(snapshot(state), sort_keys=True).encode())


def make(name: str, run: GoldenRun) -> None:
    """Writes `golden/<name>/run` and what it folds to."""
    folder = GOLDEN / name
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:  # beside its data, so that the log has no other folder's name
        asyncio.run(_made(run, Path(scratch), Path(scratch) / "run"))
        shutil.copytree(Path(scratch) / "run", folder / "run")
    expected = {"state": state_digest(read_state(folder / "run"))}
    for leftover in [*(folder / "run").glob("lock"), *(folder / "run").glob("log.db-*")]:
        leftover.unlink()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


async def _made(run: GoldenRun, scratch: Path, folder: Path) -> None:
    first, *others = run.sessions
    await start(run.config(scratch), folder, first())
    for each in others:
        await resume(folder, each())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes a golden log.")
    parser.add_argument("name", help="its folder: a release, and perhaps what is particular about it")
    parser.add_argument("run", choices=[*RUNS], help="the run to make")
    given = parser.parse_args()
    make(given.name, RUNS[given.run]())
