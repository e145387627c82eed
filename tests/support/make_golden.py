"""
Makes the golden log of the current release: `python tests/support/make_golden.py` (refuses to replace one).

A golden log is a real run, kept for ever: every later version must fold it to the same state. `0.1.0-paired` is one of
the flaky world under `paired`, of the time before `evaluation.gate_noise`: it has no such key. `0.1.0-evaluation` and
`0.1.0-imported` are an evaluation and an import of the time before a log said which program it is of, `0.1.0-verdict`
is the first in which a verdict is one value.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from skillopt_es.events.values import digest_of
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.snapshot import snapshot
from skillopt_es.sessions.session import read_state, start
from support.scripted import ScriptedEnvironment, ScriptedWorld, config

GOLDEN = Path(__file__).parent.parent / "golden"
OPTIONS = ["train.num_epochs=2", "train.accumulation=2", "optimizer.slow_update_gate_with_selection=true"]


def state_digest(state: AnyState) -> str:
    """Names a state, by everything that is shown of it."""
    return digest_of(json.dumps(snapshot(state), sort_keys=True).encode())


def make(release: str) -> None:
    """Writes `golden/<release>/run` and what it folds to."""
    folder = GOLDEN / release
    folder.mkdir(parents=True)
    world = ScriptedWorld(environment=ScriptedEnvironment(train=16, val=6, test=3))
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(start(config(Path(scratch), OPTIONS), folder / "run", world.session()))
    expected = {"state": state_digest(read_state(folder / "run"))}
    for leftover in [*(folder / "run").glob("lock"), *(folder / "run").glob("log.db-*")]:
        leftover.unlink()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    make(sys.argv[1])
