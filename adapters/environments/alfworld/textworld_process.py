"""A TextWorld game in a child process: deadlines on every answer, and nothing of it is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from skillopt_es.adapters.environments.alfworld.games import Game
from skillopt_es.adapters.environments.alfworld.world import View, WorldError

_CHILD = ("-m", "skillopt_es.adapters.environments.alfworld.textworld_child")
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL")  # no key of a model is among them
# asyncio alone would stop at 64 KiB, and a view of a game may be longer.
_LONGEST_LINE = 4 * 1024 * 1024
_LAST_WORDS = 2000  # bytes: the end of a traceback, of which the last line is shown


def textworld_is_installed() -> bool:
    """Whether real games can be played here."""
    return all(find_spec(name) is not None for name in ("textworld", "alfworld", "fast_downward"))


class TextWorldProcess:
    """A world whose game runs in a process of its own, started by `reset`."""

    def __init__(self, game: Game, *, seconds: float, command: tuple[str, ...] = (sys.executable, *_CHILD)) -> None:
        self._game = game
        self._seconds = seconds
        self._command = command
        self._child: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def reset(self) -> View:
        """Start the game; raises WorldError when it does not begin in time."""
        text = self._game.read()
        await self.aclose()
        self._folder = tempfile.TemporaryDirectory(prefix="skillopt-es-alfworld-", ignore_cleanup_errors=True)
        try:
            with self._errors.open("wb") as errors:
                self._child = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                    cwd=self._folder.name,
                    env=_environment(self._folder.name),
                    start_new_session=True,
                    limit=_LONGEST_LINE,
                )
        except OSError as error:
            raise WorldError(f"the game's process cannot be started: {error.strerror}") from error
        return await self._ask(
            {"problem": text.problem, "task": text.task, "domain": text.domain, "grammar": text.grammar}
        )

    async def step(self, command: str) -> View:
        """The view after a command; raises WorldError when the process is dead or late."""
        return await self._ask({"command": command})

    async def aclose(self) -> None:
        """End the process and whatever it has started."""
        child, self._child = self._child, None
        folder, self._folder = self._folder, None
        try:
            if child is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
                if child.stdin is not None:
                    child.stdin.close()
                await child.wait()
        finally:
            if folder is not None:
                folder.cleanup()

    @property
    def _errors(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name, "errors.txt")

    async def _ask(self, question: Mapping[str, str]) -> View:
        child = self._child
        if child is None or child.stdin is None or child.stdout is None:
            raise WorldError("the game has not been started")
        try:
            async with asyncio.timeout(self._seconds):
                child.stdin.write(json.dumps(question).encode() + b"\n")
                await child.stdin.drain()
                line = await child.stdout.readline()
        except TimeoutError:
            raise WorldError(f"the game gave no answer in {self._seconds:g} seconds") from None
        except (OSError, ValueError) as error:
            raise WorldError(f"the game's process broke off{self._last_words()}") from error
        if not line.endswith(b"\n"):
            raise WorldError(f"the game's process died{self._last_words()}")
        return _view(line)

    def _last_words(self) -> str:
        """The last line that the process wrote to its stderr."""
        with contextlib.suppress(OSError):
            said = self._errors.read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip().splitlines()
            return f": {said[-1][:300]}" if said else ""
        return ""


def _environment(folder: str) -> dict[str, str]:
    """Little of ours, and a home of its own, where what is written goes away with it."""
    own = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**own, "HOME": folder, "TMPDIR": folder, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _view(line: bytes) -> View:
    try:
        said = json.loads(line)
        return View(str(said["observation"]).strip(), tuple(map(str, said["commands"])), said["won"], said["over"])
    except (ValueError, KeyError, TypeError) as error:
        raise WorldError("the game's process said something that is no view") from error
