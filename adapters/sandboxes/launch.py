"""What a sandbox is asked to run, what came of it, and how files in its work folder may be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, Protocol

from attrs import field, frozen

EndedBy = Literal["exit", "signal", "timeout", "cpu", "memory"]

MIB = 1 << 20  # bytes


@frozen(kw_only=True)
class Limits:
    """
    What one execution may use up; CPU and file size are per process, the disk is for all its files.

    Behind walls, memory is for all its processes, files and sockets together; without them for each process.
    """

    wall_seconds: float = 60.0
    cpu_seconds: int = 60
    memory_bytes: int = 1024 * MIB
    file_bytes: int = 64 * MIB
    disk_bytes: int = 256 * MIB
    processes: int = 64
    output_bytes: int = 64 * 1024


@frozen(kw_only=True)
class Launch:
    """A command for a fresh folder that holds only these files, some of them programs; paths are relative to it."""

    command: Sequence[str]
    files: Mapping[str, bytes] = field(factory=dict)
    programs: Sequence[str] = ()
    stdin: bytes = b""
    collect: Sequence[str] = ()
    limits: Limits = field(factory=Limits)


@frozen(kw_only=True)
class Execution:
    """How a launch ended; `files` has those of the asked-for files that are there and not larger than a file may be."""

    ended_by: EndedBy
    code: int
    stdout: str
    stderr: str
    files: Mapping[str, bytes]

    @property
    def well(self) -> bool:
        """Whether the command ended by itself and reported success."""
        return self.ended_by == "exit" and self.code == 0


class SandboxError(Exception):
    """The launch did not begin, which says nothing about the code in it. Whatever comes later is how it ended."""


class Sandbox(Protocol):
    """Runs code that nobody has read."""

    @property
    def confines(self) -> bool:
        """Whether code is kept from files, network and processes of this machine."""
        ...

    @property
    def python(self) -> str:
        """The Python interpreter that launches can start."""
        ...

    async def run(self, launch: Launch) -> Execution:
        """Runs it to its end or its limit; raises SandboxError when it could not be begun."""
        ...


def checked_paths(launch: Launch) -> None:
    """Raises SandboxError for a file that would not be in the work folder."""
    for name in (*launch.files, *launch.collect):
        path = PurePosixPath(name)
        if not name or "\0" in name or path.is_absolute() or ".." in path.parts or str(path) in {"", "."}:
            raise SandboxError(f"{name!r} is not the name of a file in the sandbox's work folder")
