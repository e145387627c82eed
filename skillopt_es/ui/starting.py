"""
Runs that are begun, continued or estimated from the page: by the command itself, in processes of their own.

So the page has no power that the command has not; what runs goes on when the page is closed; and code that a config
names is never run in the page's process. Every argument is a word of its own: no shell reads them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from attrs import field, frozen

from skillopt_es.config.layers import demos
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.values import Json
from skillopt_es.runs.folders import checked_name, is_run
from skillopt_es.ui.config_files import config_files
from skillopt_es.ui.safety import Refused

_PATIENCE_SECONDS = 90  # an estimate reads up to twenty earlier logs; Start works without it
_MOST_SETTING = 4000  # characters: a pinned line or a path is shorter, and arguments of a command have a limit
_MOST_SHOWN = 60  # no key is longer
_LAST = 4000  # bytes of what a process has said that are shown


class NotChecked(SkillOptError):
    """The command said neither what a run may take nor what is wrong with it."""


@frozen
class Process:
    """A command that was begun from the page, and what it says."""

    name: str
    words: tuple[str, ...]
    child: subprocess.Popen[bytes]
    said: int
    """A file that has no name any more: it is gone with the page."""
    resumes: bool = False
    """Whether it goes on with a run that there was."""
    filled: Mapping[str, str] = field(factory=dict)
    """The form that it was begun with."""

    def ended(self) -> int | None:
        """Its exit code; None while it works."""
        return self.child.poll()

    def words_said(self) -> str:
        """The end of what it has said."""
        start = max(0, os.fstat(self.said).st_size - _LAST)
        return os.pread(self.said, _LAST, start).decode(errors="replace")


@frozen
class Offered:
    """What a run can be begun with, by the names of the form, and whether there may be more config files."""

    configs: Mapping[str, tuple[str, ...]]
    cut: bool


@frozen
class Starter:
    """Begins commands over one directory of runs, from the folder that the page was begun in."""

    directory: Path
    processes: dict[str, Process] = field(factory=dict)

    def offered(self) -> Offered:
        """Everything that a run can be begun with, and how the command names it; nothing else is ever begun."""
        found = {f"demo: {name}": (f"--demo={name}",) for name in demos()}
        files, cut = config_files(Path.cwd(), self.directory)
        for file in files:
            shown = str(file.relative_to(Path.cwd()))
            found[f"file: {shown}"] = (f"./{shown}",)
        runs = self.directory.iterdir() if self.directory.is_dir() else ()
        for run in sorted(path.name for path in runs if is_run(path)):
            found[f"again: {run}"] = (f"--again={run}",)
        return Offered(found, cut)

    def words(self, config: str, settings: Sequence[str]) -> tuple[str, ...]:
        """The command that trains so; raises Refused for a config that was not offered."""
        named = self.offered().configs.get(config)
        if named is None:
            raise Refused("there is no such config here", hint="choose one of the list")
        for text in settings:
            key = text.partition("=")[0][:_MOST_SHOWN]
            if len(text) > _MOST_SETTING:
                raise Refused(f"{key} is too long: a setting has {_MOST_SETTING:,} characters at most")
            if "\0" in text:  # no argument of a command can hold one
                raise Refused(f"{key} has a NUL character", hint="type the value again")
        return ("run", *named, *(f"--set={text}" for text in settings), *self._where())

    def checked(self, words: Sequence[str]) -> dict[str, Json]:
        """
        The estimate of a run before it begins, or the error that there would be, as the command says it.

        Raises NotChecked where the command says neither.
        """
        try:
            done = subprocess.run(  # noqa: S603 -- our own command, and a word for each argument
                [*_command(), *words, "--dry-run", "--json"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE_SECONDS,
                check=False,
            )
            return cast("dict[str, Json]", json.loads(done.stdout))
        except subprocess.TimeoutExpired:
            raise NotChecked(f"no estimate within {_PATIENCE_SECONDS} seconds", hint="Start begins the run") from None
        except ValueError:
            raise NotChecked("the command said nothing that can be read", hint="Start shows what it says") from None

    def is_busy(self, name: str) -> bool:
        """Whether a command that was begun from here is at work on a run."""
        process = self.processes.get(name)
        return process is not None and process.ended() is None

    def name(self, config: str, name: str) -> str:
        """The name of a new run, which no run has yet."""
        stem = Path(config.rpartition(": ")[2]).stem or "run"
        name = checked_name("name", name or f"{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
        if is_run(self.directory / name):
            raise Refused(f"there is a run {name} already", hint="give it another name")
        return name

    def begin(self, words: Sequence[str], name: str, filled: Mapping[str, str]) -> Process:
        """A new run, in a process of its own; `filled` is the form that asks for it."""
        return self._begun(name, (*words, f"--run={name}", "--quiet"), filled=filled)

    def resume(self, folder: Path) -> Process:
        """Goes on with a run, in a process of its own."""
        return self._begun(folder.name, ("resume", *self._where(), "--quiet", "--", folder.name), resumes=True)

    def _where(self) -> tuple[str, ...]:
        return (f"--dir={self.directory}",)

    def _begun(
        self, name: str, words: Sequence[str], *, resumes: bool = False, filled: Mapping[str, str] | None = None
    ) -> Process:
        if self.is_busy(name):
            raise Refused(f"{name} is at work already")
        said, path = tempfile.mkstemp()
        Path(path).unlink()
        child = subprocess.Popen(  # noqa: S603 -- our own command, and a word for each argument
            [*_command(), *words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=os.name == "posix",  # Ctrl-C ends the page, not the runs
        )
        process = Process(name, tuple(words), child, said, resumes, filled or {})
        self.processes[name] = process
        return process


def _command() -> list[str]:
    return [sys.executable, "-m", "skillopt_es"]
