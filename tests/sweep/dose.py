"""Trials of a sweep, one after the other, and what they came to."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sweep.disks import built_library, fail
from sweep.flips import broken_off, flip
from sweep.kills import kill
from sweep.outcome import Difference, Whole, begun
from sweep.worlds import WORLDS, World, endpoint

KINDS = ("kill", "flip", "disk")
FLIPS_OF_A_RUN = 20  # a damaged copy is cheaper than another run that is broken off


class Sweep:
    """Its undisturbed runs, endpoint and library; open as long as the `with` block."""

    def __init__(self, home: Path, seed: int) -> None:
        self.failures: list[str] = []
        self._home, self._seed = home, seed
        self._counts: Counter[tuple[str, str]] = Counter()
        self._signals = 0
        self._wholes: dict[str, Whole] = {}
        self._broken: dict[str, tuple[Path, int]] = {}
        self._endpoint = endpoint()
        self._library = built_library(home)
        self._worlds: Mapping[str, World] = {**WORLDS, "faults": self._endpoint.world(home)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._endpoint.close()

    def trial(self, number: int, kinds: Sequence[str]) -> None:
        """One trial; a difference is noted and its folder kept."""
        draw = random.Random(f"{self._seed}/{number}")
        name, kind = draw.choice(sorted(self._worlds)), draw.choice(kinds)
        whole, home = self._whole(name), self._home / f"trial-{number}"
        self._counts[kind, name] += 1
        try:
            self._trials[kind](whole, home, draw)
        except (Difference, TimeoutError, subprocess.TimeoutExpired) as failure:
            self.failures.append(f"{kind} of {name}, trial {number}, {home}: {failure}")
            print(self.failures[-1], flush=True)
        else:
            shutil.rmtree(home, ignore_errors=True)

    def report(self) -> str:
        """What was done, and what differed."""
        rows = [f"{kind:5} {name:8} {count:5}" for (kind, name), count in sorted(self._counts.items())]
        rows.append(f"{self._counts.total()} trials, {self._signals} signals, {len(self.failures)} differences")
        return "\n".join([*rows, *self.failures])

    @property
    def _trials(self) -> Mapping[str, Callable[[Whole, Path, random.Random], None]]:
        return {"kill": self._kill, "flip": self._flip, "disk": self._disk}

    def _kill(self, whole: Whole, home: Path, draw: random.Random) -> None:
        self._signals += kill(whole, home, draw)

    def _flip(self, whole: Whole, home: Path, draw: random.Random) -> None:
        source, used = self._broken.get(whole.world.name, (None, 0))
        if source is None or used == FLIPS_OF_A_RUN:
            source, used = broken_off(whole, self._home / f"broken-{whole.world.name}", draw), 0
        self._broken[whole.world.name] = (source, used + 1)
        flip(whole, source, home, draw)

    def _disk(self, whole: Whole, home: Path, draw: random.Random) -> None:
        if self._library is not None:
            fail(whole, home, self._library, draw)

    def _whole(self, name: str) -> Whole:
        if name not in self._wholes:
            home = self._home / f"whole-{name}"
            home.mkdir()
            begin = time.monotonic()
            done = begun(self._worlds[name], home)
            assert done.code == 0, done.said
            self._wholes[name] = Whole(self._worlds[name], home, time.monotonic() - begin)
        return self._wholes[name]
