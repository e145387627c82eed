"""Signals at random moments, several to a run: it ends as if there had been none."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path

from sweep.commands import start
from sweep.outcome import Difference, Whole, compare, gone_on, is_complete, next_words

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
STOPPED = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 0, 3, 130, 143}


def kill(whole: Whole, home: Path, draw: random.Random) -> int:
    """Starts a run, ends it up to four times, goes on to its end and compares; how many signals it got."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    sent = 0
    for _ in range(draw.randint(1, 4)):
        if is_complete(home):
            break
        words = next_words(whole.world, home)
        process = start(words, home / "said.txt")
        time.sleep(draw.uniform(0, whole.seconds))
        number = draw.choice(SIGNALS)
        process.stop(number)
        sent += 1
        done = process.done()
        if done.code not in STOPPED:
            raise Difference(f"{' '.join(words)} ended with {done.code} after {number.name}: {done.said[-500:]}")
    last = gone_on(whole.world, home)
    if last.code != 0:
        raise Difference(f"going on ended with {last.code}: {last.said[-500:]}")
    compare(whole, home)
    return sent
