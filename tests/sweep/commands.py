"""The command in a process of its own: forked from this one, which has all imported, so that a trial is quick."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen
from sweep.worlds import ENVIRONMENT

from skillopt_es.cli.main import COMMANDS, main

LONGEST_SECONDS = 120.0

for _module in sorted({f"cli.{module}" for module, _ in COMMANDS.values()} | {"session", "wiring"}):
    importlib.import_module(f"skillopt_es.{_module}")  # once, not in each child


@frozen
class Done:
    """How a command ended (negative: by this signal) and what it said."""

    code: int
    said: str


@frozen
class Started:
    """A command that runs."""

    process: int
    output: Path

    def stop(self, number: int) -> None:
        """Sends a signal."""
        os.kill(self.process, number)

    def done(self, seconds: float = LONGEST_SECONDS) -> Done:
        """Waits for its end."""
        until = time.monotonic() + seconds
        while True:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                return Done(
                    os.waitstatus_to_exitcode(status), self.output.read_text(encoding="utf-8", errors="replace")
                )
            if time.monotonic() > until:
                os.kill(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                raise TimeoutError(f"no end after {seconds:.0f} s: {self.output.read_text(errors='replace')[-2000:]}")
            time.sleep(0.002)


def start(words: Sequence[str], output: Path) -> Started:
    """Starts `skillopt-es` with these words."""
    output.write_bytes(b"")  # here, as a signal may end the child before it opens its file
    process = os.fork()
    if process:
        return Started(process, output)
    code = 70
    try:
        os.setpgid(0, 0)
        os.chdir(output.parent)
        os.environ |= ENVIRONMENT
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        code = _exit_code(words)
    except KeyboardInterrupt:  # before the command has its own way with it
        code = 130
    finally:
        os._exit(code)


def run(words: Sequence[str], output: Path) -> Done:
    """Runs it to its end."""
    return start(words, output).done()


def _exit_code(words: Sequence[str]) -> int:
    try:
        main(list(words))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
