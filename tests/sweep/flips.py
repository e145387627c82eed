"""Damage to a byte anywhere in a run's files: it is said, or nothing is lost by it."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

from support.logs import call_slots
from sweep.commands import Done, run, start
from sweep.outcome import PAUSED, Difference, Whole, compare, gone_on

DISPOSABLE = ("logs.jsonl", "overview.json", "report.html", "best")  # made again from the log


def broken_off(whole: Whole, home: Path, draw: random.Random) -> Path:
    """A run that was killed in its middle, with what had not been moved from its write-ahead log."""
    while True:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        process = start(whole.world.words(home), home / "said.txt")
        time.sleep(draw.uniform(0.3, 0.9) * whole.seconds)
        process.stop(signal.SIGKILL)
        process.done()
        if (home / "run" / "log.db").exists() and call_slots(home / "run"):
            return home


def flip(whole: Whole, source: Path, home: Path, draw: random.Random) -> str:
    """Changes one byte of a copy of the run, or takes a file's tail or the file away; what was done."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(source, home)
    done = _damage(home / "run", draw)
    verified = run(["verify", "run", "--dir", str(home)], home / "verified.txt")
    resumed = run(whole.world.resume(home, len(call_slots(source / "run"))), home / "said.txt")
    for command in (verified, resumed):
        if "this is a bug" in command.said or "Traceback" in command.said:
            raise Difference(f"{done}: damage is called a bug: {command.said[-800:]}")
    if _is_said(verified) or _is_said(resumed):
        return done
    gone_on(whole.world, home)
    _nothing_lost(whole, source, home, done)
    return done


def _damage(folder: Path, draw: random.Random) -> str:
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (*DISPOSABLE, "lock")]
    weights = [max(path.stat().st_size, 4096) for path in files]
    [file] = draw.choices(files, weights)
    size = file.stat().st_size
    how = draw.choices(("flip", "cut", "remove"), (20, 2, 1))[0] if file.name != "log.db" else "flip"
    if how == "remove" or not size:
        file.unlink()
        return f"{file.name} removed"
    at = draw.randrange(size)
    if how == "cut":
        with file.open("r+b") as stream:
            stream.truncate(at)
        return f"{file.name} cut at {at} of {size}"
    with file.open("r+b") as stream:
        stream.seek(at)
        old = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([old ^ (1 << draw.randrange(8))]))
    return f"a bit of byte {at} of {size} in {file.name} flipped"


def _is_said(done: Done) -> bool:
    """Whether a command refused, or told of something that is missing."""
    return done.code not in (0, PAUSED) or any(word in done.said for word in ("lost", "missing", "damaged"))


def _nothing_lost(whole: Whole, source: Path, home: Path, done: str) -> None:
    """No word was said, so the run has to be the undisturbed one, with every call that had been paid."""
    before, after = Counter(call_slots(source / "run")), Counter(call_slots(home / "run"))
    if before - after:
        raise Difference(f"{done}: calls are lost without a word: {sorted(before - after)[:5]}")
    compare(whole, home)
