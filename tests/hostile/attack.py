"""Runs the hostile scripts in the sandbox, as whoever starts this program, and prints what came of each as JSON."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from attrs import evolve

from skillopt_es.adapters.sandboxes.launch import MIB, Execution, Launch, Limits, SandboxError
from skillopt_es.adapters.sandboxes.namespaces import Namespaces

SOURCES = {each.stem: each.read_bytes() for each in sorted((Path(__file__).parent / "scripts").glob("*.py"))}
FILES = ("result.json", "pipe.json", "link.json", "main.py")
LIMITS = Limits(
    wall_seconds=40, cpu_seconds=30, memory_bytes=128 * MIB, disk_bytes=32 * MIB, file_bytes=31 * MIB, processes=20
)
_KEYS = {"x86_64": (248, 250), "aarch64": (217, 219)}


def leave_a_key() -> None:
    """A key in the session's keyring, as a user has who is signed in somewhere; nothing where a kernel has no keys."""
    add, control = _KEYS[os.uname().machine]
    libc = ctypes.CDLL(None)
    libc.syscall(control, 1, None)
    libc.syscall(add, b"user", b"hostile-canary", b"secret", 6, -3)


async def attack(name: str, script: bytes, sandbox: Namespaces) -> dict[str, Any]:
    """What came of one script; one that goes on for ever has a second for it."""
    goes_on = b"# ends: timeout" in script
    launch = Launch(
        command=[sandbox.python, "-I", "-S", "main.py"],
        files={"main.py": script},
        stdin=b"input",
        collect=FILES,
        limits=evolve(LIMITS, wall_seconds=1) if goes_on else LIMITS,
    )
    begun = time.monotonic()
    try:
        ended: Execution | SandboxError = await sandbox.run(launch)
    except SandboxError as error:
        ended = error
    told = {"script": name, "seconds": round(time.monotonic() - begun, 1)}
    if isinstance(ended, SandboxError):
        return {**told, "unmeasured": str(ended)}
    files = {name: data.decode(errors="replace")[:200] for name, data in ended.files.items()}
    said = {"stdout": ended.stdout[:2000], "stderr": ended.stderr[:2000], "files": files}
    return {**told, "ended_by": ended.ended_by, "code": ended.code, **said}


async def attack_all(names: list[str]) -> list[dict[str, Any]]:
    """What came of all, or of those with these names."""
    sandbox = Namespaces(at_once=4)
    scripts = {name: script for name, script in SOURCES.items() if not names or name in names}
    return await asyncio.gather(*(attack(name, script, sandbox) for name, script in scripts.items()))


if __name__ == "__main__":
    leave_a_key()
    print(json.dumps(asyncio.run(attack_all(sys.argv[1:])), indent=1))
