"""A disk that fails or is full, by a library loaded before the command: it says so, and the run goes on later."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from support.command import environment
from support.ready import PATIENCE
from sweep.outcome import PAUSED, Difference, Whole, compare, gone_on

from skillopt_es.events.verify import verify

HERE = Path(__file__).parent
KINDS = (("write", errno.ENOSPC), ("write", errno.EIO), ("sync", errno.EIO), ("read", errno.EIO))
MOST_CALLS = {"write": 400, "sync": 200, "read": 60}  # about as many as a small run makes


def built_library(folder: Path) -> Path | None:
    """The library, compiled; None where there is no compiler or no way to load one first."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        return None
    library = folder / "failing_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "failing_disk.c", "-ldl"], check=True)
    return library


def fail(whole: Whole, home: Path, library: Path, draw: random.Random) -> str:
    """Starts a run on a disk that fails at some moment, and goes on with it on a good one; what failed."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    kind, number = draw.choice(KINDS)
    at, times = draw.randrange(MOST_CALLS[kind]), draw.choice((1, 3, 10**9))
    what = f"{errno.errorcode[number]} at {kind} {at}, {'for good' if times > 3 else f'{times} times'}"
    settings = {
        "LD_PRELOAD": str(library), "FAIL_UNDER": str(home / "run"), "FAIL_CALL": kind, "FAIL_AT": str(at),
        "FAIL_TIMES": str(times), "FAIL_ERRNO": str(number),
    }  # fmt: skip
    words = [sys.executable, "-m", "skillopt_es", *whole.world.words(home)]
    done = subprocess.run(
        words, cwd=home, env=environment(**settings), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if "this is a bug" in done.stderr or "Traceback" in done.stderr or done.returncode < 0:
        raise Difference(f"{what}: ended with {done.returncode}: {done.stderr[-800:]}")
    if (
        done.returncode not in (0, PAUSED)
        and os.strerror(number).lower() not in done.stderr.lower()
        and "disk" not in done.stderr
    ):
        raise Difference(f"{what}: the cause is not said: {done.stderr[-800:]}")
    if (home / "run" / "log.db").exists() and not (report := verify(home / "run")).ok:
        raise Difference(f"{what}: verify: {report.problems}")
    last = gone_on(whole.world, home)
    if last.code != 0:
        raise Difference(f"{what}: going on ended with {last.code}: {last.said[-800:]}")
    compare(whole, home)
    return what
