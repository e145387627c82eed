"""
The sandbox of Linux: name spaces of its own, a root directory in memory, no network, no privilege.

`inside.py` builds it; this module starts that program for each job and reads its report.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path

import cattrs
from attrs import field, frozen

from skillopt_es.adapters.processes import Ended, Program, run_program
from skillopt_es.adapters.sandboxes import inside
from skillopt_es.adapters.sandboxes.job import EndedBy, Execution, Job, SandboxError
from skillopt_es.adapters.sandboxes.paths import checked_paths

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": inside.WORK,
    "TMPDIR": "/tmp",  # noqa: S108 -- the sandbox's own
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# The deadline is kept inside; this much later whatever hangs there is ended from here.
_GRACE_SECONDS = 10.0
_REPORT_BYTES = 1 << 20


@frozen(kw_only=True)
class _Report:
    """What `inside.py` says."""

    refused: str = ""
    ended_by: EndedBy = "exit"
    code: int = 0
    files: dict[str, str] = field(factory=dict)


class Namespaces:
    """Jobs behind the walls of `inside.py`, at most so many at a time."""

    confines = True

    def __init__(self, *, at_once: int | None = None) -> None:
        self._slots = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self.python = sys.executable

    async def run(self, job: Job) -> Execution:
        """Runs it to its end or its limit."""
        checked_paths(job)
        async with self._slots:
            ended, report = await _run(job)
        if report is None:
            last = ended.errors.splitlines()[-1:] or ["it did not answer"]
            raise SandboxError(f"the sandbox could not be set up: {last[0]}")
        if report.refused:
            raise SandboxError(f"the sandbox could not be set up: {report.refused}")
        return Execution(
            ended_by=report.ended_by,
            code=report.code,
            stdout=ended.output.decode(errors="replace"),
            stderr=ended.errors,
            files={name: base64.b64decode(content) for name, content in report.files.items()},
        )


def readable_places() -> list[str]:
    """The folders of this Python and its packages, as far as the system's folders do not hold them."""
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).resolve().parent.parent)}
    return sorted(place for place in places if not place.startswith(tuple(f"{one}/" for one in inside.SYSTEM)))


def is_visible(path: str) -> bool:
    """Whether a file of this machine can be read behind the walls."""
    places = (*inside.SYSTEM, *readable_places())
    return Path(path).is_absolute() and any(Path(os.path.normpath(path)).is_relative_to(place) for place in places)


async def _run(job: Job) -> tuple[Ended, _Report | None]:
    limits = job.limits
    wanted = {
        "command": list(job.command),
        "environment": _ENVIRONMENT,
        "files": {name: base64.b64encode(content).decode() for name, content in job.files.items()},
        "programs": list(job.programs),
        "stdin": base64.b64encode(job.stdin).decode(),
        "collect": list(job.collect),
        "readable": readable_places(),
        "wall_seconds": limits.wall_seconds,
        "cpu_seconds": limits.cpu_seconds,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "disk_bytes": limits.disk_bytes,
        "processes": limits.processes,
    }
    reading, writing = os.pipe()
    try:
        report = asyncio.ensure_future(asyncio.to_thread(_read_all, reading))
        try:
            ended = await run_program(
                Program(
                    argv=[sys.executable, "-I", "-S", inside.__file__, str(writing)],
                    folder=Path("/"),
                    environment={},
                    stdin=json.dumps(wanted).encode(),
                    seconds=limits.wall_seconds + _GRACE_SECONDS,
                    most_output=limits.output_bytes,
                    most_errors=limits.output_bytes,
                    cut=True,
                    pass_fds=(writing,),
                )
            )
        finally:
            os.close(writing)  # the last writer: the reader comes to its end
            raw = await report
    finally:
        os.close(reading)
    return ended, cattrs.structure(json.loads(raw), _Report) if raw else None


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, _REPORT_BYTES):
        parts.append(part)
    return b"".join(parts)
