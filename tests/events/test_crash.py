"""Killed processes and full disks: what was acknowledged is there, and the log goes on."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import log_child
from support.event_runs import create, reopen, unit

from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify


def killed(folder: Path, lines_first: int, seconds: float) -> list[list[str]]:
    """What a writing process acknowledged before it was killed: so many lines, and some time into what follows them."""
    child = subprocess.Popen(
        [sys.executable, log_child.__file__, "append", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child:
        lines = [child.stdout.readline() for _ in range(lines_first)]
        time.sleep(seconds)  # where it is hit then is chance; how much it wrote is not
        child.kill()
        lines += child.stdout.readlines()
    return [line.split() for line in lines if line.endswith("\n")]


def survive(folder: Path, seed: int, rounds: int) -> int:
    """Kills a run's writer again and again, and checks it each time."""
    dice = random.Random(seed)
    create(folder).close()
    acknowledged: dict[int, str] = {}
    for _ in range(rounds):
        for word, seq, *hash_ in killed(folder, dice.randint(4, 12), dice.uniform(0, 0.02)):
            if word == "event":
                acknowledged[int(seq)] = hash_[0]
            else:
                assert int(seq) >= max(acknowledged, default=0)
        report = verify(folder)
        assert report.ok, (seed, report.problems)
        with EventLog.open(folder) as log:
            hashes = {recorded.seq: recorded.hash for recorded in log.read()}
        for seq, hash_ in acknowledged.items():
            assert hashes[int(seq)] == hash_, seed
        with reopen(folder) as writer:
            head = writer.log.head().seq
            assert asyncio.run(unit(writer, head, expected=head)) == head + 1
    return len(acknowledged)


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_to_a_kill(tmp_path: Path, kills: int) -> None:
    """Kills at random moments: every event and call that was told is there, whole, and appending works."""
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(survive, tmp_path / f"run-{n}", seed + n, kills // 2) for n in range(2)]
        assert sum(run.result() for run in runs) > kills


def test_a_full_disk_is_a_clean_error_and_passes(tmp_path: Path) -> None:
    """Appends fail with one sentence and a hint, nothing of them is kept, and they work again when there is room."""
    folder = tmp_path / "run"
    create(folder).close()
    run = subprocess.run(
        [sys.executable, log_child.__file__, "fill_disk", str(folder)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["head"] > 5
    assert told["after"] == told["head"] + 1
    assert len(told["refused"]) >= 3
    for sentence in told["refused"]:
        assert "log.db" in sentence or "head.json" in sentence
        assert "everything committed before is safe" in sentence
    report = verify(folder)
    assert report.ok, report.problems
    assert report.events == told["after"]
