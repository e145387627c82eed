"""Running code with the rights of whoever trains: a private folder, little environment, limits, and no walls at all."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from skillopt_es.adapters.processes import Ended, NotStartedError, Program, run_program
from skillopt_es.adapters.sandboxes.launch import EndedBy, Execution, Launch, Limits, SandboxError, checked_paths

_LIMITER = (
    "import json, os, resource, sys\n"
    "for name, value in json.loads(sys.argv[1]).items():\n"
    "    resource.setrlimit(getattr(resource, name), (value, value + (name == 'RLIMIT_CPU')))\n"
    "os.execve(sys.argv[2], sys.argv[2:], os.environ)\n"
)


class Unconfined:
    """Launches in folders of their own, at most so many at a time; for code that its user trusts."""

    confines = False

    def __init__(self, *, at_once: int | None = None) -> None:
        self._slots = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self.python = sys.executable

    async def run(self, launch: Launch) -> Execution:
        """Runs it to its end or its limit."""
        checked_paths(launch)
        async with self._slots:
            with tempfile.TemporaryDirectory(prefix="skillopt-es-", ignore_cleanup_errors=True) as name:
                return await _run(launch, Path(name))


async def _run(launch: Launch, folder: Path) -> Execution:
    for name, content in launch.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o700 if name in launch.programs else 0o600)
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    program = Program(
        argv=[sys.executable, "-I", "-S", "-c", _LIMITER, _as_json(launch.limits), *launch.command],
        folder=folder,
        environment=environment,
        stdin=launch.stdin,
        seconds=launch.limits.wall_seconds,
        most_output=launch.limits.output_bytes,
        most_errors=launch.limits.output_bytes,
        cut=True,
    )
    try:
        ended = await run_program(program)
    except NotStartedError as error:
        raise SandboxError(str(error)) from error
    return _execution(ended, _collected(folder, launch.collect, launch.limits.file_bytes))


def _as_json(limits: Limits) -> str:
    rows = {
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": limits.memory_bytes,
    }
    known = {name: value for name, value in rows.items() if hasattr(resource, name)}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in known.items()) + "}"


def _collected(folder: Path, names: Sequence[str], largest: int) -> dict[str, bytes]:
    found = {}
    root = folder.resolve()
    for name in names:
        path = root / name
        # A link would point outside of the folder.
        if path.is_file() and path.resolve() == path and path.stat().st_size <= largest:
            found[name] = path.read_bytes()
    return found


def _execution(ended: Ended, files: dict[str, bytes]) -> Execution:
    by_itself: EndedBy = "exit" if ended.code >= 0 else "cpu" if ended.code == -signal.SIGXCPU else "signal"
    return Execution(
        ended_by=by_itself if ended.how == "exited" else "timeout",
        code=ended.code,
        stdout=ended.output.decode(errors="replace"),
        stderr=ended.errors,
        files=files,
    )
