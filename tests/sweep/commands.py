"""The command in a process of its own that starts at once, so that a trial is quick."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen
from support import ready
from support.command import environment


@frozen
class Done:
    """How a command ended (negative: by this signal) and what it said."""

    code: int
    said: str


@frozen
class Started:
    """A command that runs."""

    process: ready.Ready
    output: Path

    def stop(self, number: int) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def done(self) -> Done:
        """Waits for its end."""
        try:
            code = self.process.wait()
        except (TimeoutError, subprocess.TimeoutExpired) as slow:
            self.process.kill()
            raise TimeoutError(f"{slow}: {self.output.read_text(errors='replace')[-2000:]}") from slow
        return Done(code, self.output.read_text(encoding="utf-8", errors="replace"))


def start(words: Sequence[str], output: Path) -> Started:
    """Starts `skillopt-es` with these words; what it says goes to this file."""
    with output.open("wb") as file, Path(os.devnull).open("rb") as nothing:
        streams = nothing.fileno(), file.fileno(), file.fileno()
        return Started(ready.start(words, output.parent, environment(LANG=ready.LANGUAGE), streams), output)


def run(words: Sequence[str], output: Path) -> Done:
    """Runs it to its end."""
    return start(words, output).done()
