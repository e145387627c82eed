"""Proposals, fates and results in a few words, for the commands that audit a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillopt_es.cli.terminal import print_error

if TYPE_CHECKING:
    from skillopt_es.runs.reading import Reading


def as_found(reading: Reading, *, shown: bool = True) -> int:
    """
    Says what is wrong with the log, if something is, after what could be read was shown; the exit code.

    `shown` is whether what was shown ends where the log stops being whole.
    """
    if reading.problem is None:
        return 0
    ends = f"; what is shown ends before event {reading.until + 1}" if shown and reading.until < reading.end else ""
    print_error(f"{reading.problem}{ends}", reading.problem.hint)
    return 1


def two_words(words: Sequence[str]) -> list[str]:
    """Arguments as words: who quotes a moment (`"step 12"`) means the two words."""
    return [part for word in words for part in (word.split() if _is_moment(word) else [word])]


def _is_moment(word: str) -> bool:
    parts = word.split()
    return len(parts) == 2 and parts[0] in ("step", "epoch", "seq", "event", "candidate")
