"""The installed command, run as a process of its own in a folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from attrs import define, evolve, field, frozen

from support import ready
from support.ready import COMMAND, PATIENCE, Ready

Process = Ready | subprocess.Popen[bytes]


# The projects of these tests are small on purpose, so this warning of a new run is no complaint here.
_FEW = re.compile(r"^warning: \d+ validation tasks?: fewer than 20 [^\n]*\n", re.MULTILINE)


@frozen
class Done:
    """How a command ended: its exit code (negative: the signal that killed it) and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def complaints(self) -> list[str]:
        """The lines of stderr that say what went wrong."""
        return [line for line in self.err.splitlines() if line.lower().startswith(("error", "usage", "traceback"))]


@frozen
class Desk:
    """Where a user types commands: a folder and an environment; `how` goes to Popen as it is."""

    folder: Path
    environ: Mapping[str, str] = field(factory=dict)
    command: Path = COMMAND
    how: Mapping[str, Any] = field(factory=dict)

    def with_environ(self, **more: str) -> Desk:
        """The same desk with more environment variables."""
        return evolve(self, environ={**self.environ, **more})

    def run(self, *words: object) -> Done:
        """The command, waited for."""
        with self.start(*words) as running:
            return running.wait()

    def start(self, *words: object) -> Running:
        """The command, running."""
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "error",
            **self.environ,
        }
        out, err = (self._file(name) for name in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            return Running(self._process(words, environ, stdout.fileno(), stderr.fileno()), out, err)

    def _process(self, words: Sequence[object], environ: Mapping[str, str], out: int, err: int) -> Process:
        if self.command == COMMAND and not self.how and ready.is_plain(environ):
            with Path(os.devnull).open("rb") as nothing:
                return ready.start(words, self.folder, environ, (nothing.fileno(), out, err))
        return subprocess.Popen(
            [str(self.command), *map(str, words)],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            **self.how,
        )

    def _file(self, name: str) -> Path:
        folder = self.folder.with_name(f"{self.folder.name}-printed")
        folder.mkdir(exist_ok=True)
        return folder / f"{len(list(folder.iterdir())):03}-{name}"


@define
class Running:
    """A command that runs; leaving the `with` block kills it if it still does."""

    process: Process
    out: Path
    err: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def said(self) -> str:
        """What it has printed on stderr so far."""
        return self.err.read_text(encoding="utf-8", errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def until(self, condition: Callable[[], object]) -> None:
        """Waits until something is true while it runs."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"it ended: {self.process.returncode} {self.said}"
            assert time.monotonic() < deadline, f"it never happened; so far it said: {self.said}"
            time.sleep(0.002)

    def wait(self) -> Done:
        """Its end."""
        code = self.process.wait(PATIENCE)
        return Done(code, self.out.read_text(encoding="utf-8"), _FEW.sub("", self.said))

    def kill(self) -> Done:
        """SIGKILL, and its end."""
        self.send(signal.SIGKILL)
        return self.wait()
