"""
The sandbox of Linux: name spaces of its own, a root directory in memory, no network, no privilege.

`inside.py` builds it; this module starts that program for each launch and reads its report.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import sys
import time
from functools import lru_cache
from pathlib import Path

import cattrs
from attrs import field, frozen

from skillopt_es.adapters.background import in_background
from skillopt_es.adapters.processes import Ended, NotStartedError, Program, run_program
from skillopt_es.adapters.sandboxes import inside
from skillopt_es.adapters.sandboxes.groups import memory_group
from skillopt_es.adapters.sandboxes.launch import EndedBy, Execution, Launch, SandboxError, checked_paths
from skillopt_es.adapters.sandboxes.places import readable_places
from skillopt_es.adapters.sandboxes.start import command_for
from skillopt_es.adapters.sandboxes.syscalls import filter_for

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": inside.WORK,
    "TMPDIR": "/tmp",  # noqa: S108 -- the sandbox's own
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# A machine that needs longer to build the walls is too busy to say anything about the code behind them.
_BUILDING_SECONDS = 30.0
# The deadline is kept inside; this much later whatever hangs there is ended from here.
_GRACE_SECONDS = 10.0
_REPORT_BYTES = 1 << 20  # of one read; a report holds the files that code has left, which may be megabytes
_KILLED = -9  # a process that ended by SIGKILL, as subprocess writes it


@frozen(kw_only=True)
class _Report:
    """What `inside.py` says; `ended_by` is None as long as it has not said how the launch ended."""

    refused: str = ""
    started: bool = False
    ended_by: EndedBy | None = None
    code: int = _KILLED
    files: dict[str, str] = field(factory=dict)


class Namespaces:
    """Launches behind the walls of `inside.py`, at most so many at a time."""

    confines = True

    def __init__(self, *, at_once: int | None = None) -> None:
        self._slots = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self.python = os.path.abspath(sys.executable)  # noqa: PTH100 - links stay, `..` goes

    async def run(self, launch: Launch) -> Execution:
        """Runs it to its end or its limit."""
        checked_paths(launch)
        async with self._slots:
            return await _run(launch)


async def _run(launch: Launch) -> Execution:
    filtered = filter_for(os.uname().machine)
    if filtered is None:
        raise SandboxError(f"the system calls of this processor ({os.uname().machine}) are not known to the sandbox")
    reading, writing = os.pipe()
    try:
        parts: list[bytes] = []
        seconds = _BUILDING_SECONDS + launch.limits.wall_seconds + _GRACE_SECONDS
        report = asyncio.ensure_future(in_background(lambda _: _read_all(reading, parts), seconds=2 * seconds))
        try:
            with memory_group(launch.limits.memory_bytes) as group:
                ended = await run_program(_program(launch, filtered, writing, seconds, group))
        except NotStartedError as error:
            raise SandboxError(f"the sandbox could not be set up: {error}") from error
        except TimeoutError:  # not even killing it ends it
            ended = Ended(how="late", code=_KILLED, output=b"", errors="it cannot be ended")
            report.cancel()
        finally:
            os.close(writing)  # the last writer: the reader comes to its end
            await asyncio.gather(report, return_exceptions=True)
    finally:
        os.close(reading)
    return _execution(ended, _told(b"".join(parts)))


def _program(launch: Launch, filtered: bytes, report_to: int, seconds: float, group: str) -> Program:
    limits = launch.limits
    wanted = {
        "command": list(launch.command),
        "environment": _ENVIRONMENT,
        "files": {name: base64.b64encode(content).decode() for name, content in launch.files.items()},
        "programs": list(launch.programs),
        "stdin": base64.b64encode(launch.stdin).decode(),
        "collect": list(launch.collect),
        "readable": readable_places(),
        "filter": base64.b64encode(filtered).decode(),
        "group": group,
        "socket_bytes": _socket_bytes(),
        "begin_until": time.monotonic() + _BUILDING_SECONDS,
        "wall_seconds": limits.wall_seconds,
        "cpu_seconds": limits.cpu_seconds,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "disk_bytes": limits.disk_bytes,
        "processes": limits.processes,
    }
    return Program(
        argv=command_for("inside", str(report_to)),
        folder=Path("/"),
        environment={},
        stdin=json.dumps(wanted).encode(),
        seconds=seconds,
        most_output=limits.output_bytes,
        most_errors=limits.output_bytes,
        cut=True,
        pass_fds=(report_to,),
    )


@lru_cache(maxsize=1)
def _socket_bytes() -> int:
    """The most that can wait in one socket: a buffer as it is by default, and a last message of the same size."""
    with socket.socket(socket.AF_UNIX) as one:
        return 2 * one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def _told(report: bytes) -> _Report:
    """All its lines as one; of a report that breaks off, the whole ones."""
    lines = report.split(b"\n")[:-1]
    told: dict[str, object] = {}
    for line in lines:
        told.update(json.loads(line))
    return cattrs.structure(told, _Report)


def _execution(ended: Ended, report: _Report) -> Execution:
    """How a launch ended; raises SandboxError for one that did not begin. What has begun has an end, told or not."""
    if not report.started:
        why = report.refused or (ended.errors.splitlines()[-1:] or ["it did not answer"])[0]
        raise SandboxError(f"the sandbox could not be set up: {why}")
    return Execution(
        ended_by=report.ended_by or ("timeout" if ended.how == "late" else "signal"),
        code=report.code,
        stdout=ended.output.decode(errors="replace"),
        stderr=ended.errors,
        files={name: base64.b64decode(content) for name, content in report.files.items()},
    )


def _read_all(descriptor: int, parts: list[bytes]) -> None:
    while part := os.read(descriptor, _REPORT_BYTES):
        parts.append(part)
