"""The regex grader, which no pattern can make hang."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.environments.tasks.processes import run_command
from skillopt_es.adapters.environments.tasks.verdicts import (
    Attempt,
    Grader,
    GraderError,
    Key,
    Verdict,
    alternatives,
    solved,
)

_ESCAPES_AND_SETS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)[*+{]")
# The `?` of a group such as `(?:` is none.
_REPEAT = re.compile(r"(?<!\()[*+?{]")
_INLINE_STEPS = 10_000_000  # some 20 ms: longer would hold up the event loop, and starting a process costs as much
_CHILD = "import json, re, sys; job = json.load(sys.stdin); print(int(any(re.search(p, job[1]) for p in job[0])))"


@frozen
class Patterns:
    """Searches here when that must be quick, else in a child process with a time limit."""

    patterns: tuple[re.Pattern[str], ...]
    timeout: float

    async def __call__(self, attempt: Attempt) -> Verdict:
        """Right when a pattern is found anywhere in the answer."""
        return solved(await self.found(attempt.answer))

    async def found(self, answer: str) -> bool:
        """Whether a pattern is found anywhere in the answer; raises GraderError where that takes too long."""
        if all(quick(pattern.pattern, len(answer)) for pattern in self.patterns):
            return any(pattern.search(answer) for pattern in self.patterns)
        job = json.dumps([[pattern.pattern for pattern in self.patterns], answer]).encode()
        # Isolated and without site: no module that lies around can take the place of `re`.
        argv = (sys.executable, "-I", "-S", "-c", _CHILD)
        try:
            output = await run_command(argv, folder=Path("/"), stdin=job, seconds=self.timeout)
        except GraderError as error:
            raise GraderError(f"the search for the pattern failed: {error}") from error
        return output == "1"


def regex(key: Key) -> Grader:
    """Right when one of the expected patterns is found in the answer (`re.search`; anchor it for a full match)."""
    return Patterns(tuple(compiled(each) for each in alternatives(key.expected)), key.timeout)


def quick(pattern: str, length: int) -> bool:
    """Whether searching `length` characters takes few steps however badly they match."""
    plain = _ESCAPES_AND_SETS.sub("x", pattern)
    if _REPEATED_GROUP.search(plain):
        return False  # repeats within repeats can take exponential time
    # Each repeat, and the place where the search starts, may try every length; `*?` counts twice, which is safe.
    tries = max(length, 2) ** (len(_REPEAT.findall(plain)) + 1) * 2 ** plain.count("|")
    return bool(tries <= _INLINE_STEPS)


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, ready to be searched for; raises ValueError for what is none."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"must be a regular expression ({error})") from error
