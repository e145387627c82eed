"""A program beside ours: fed, listened to, and ended with everything it started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen

_CHUNK = 65_536


@frozen
class Said:
    """What a program printed, the middle left out when it was much; its exit code is None when it had to be ended."""

    code: int | None
    stdout: str
    stderr: str


class Spoken:
    """The head and the tail of a stream, whatever its length."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Some more of it."""
        room = self._half - len(self._head)
        self._head += chunk[: max(0, room)]
        self._tail += chunk[max(0, room) :]
        surplus = len(self._tail) - self._half
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    @property
    def text(self) -> str:
        """What was kept; a mark says how much is missing."""
        mark = f"\n[… {self._left_out} bytes left out …]\n".encode() if self._left_out else b""
        return (self._head + mark + self._tail).decode(errors="replace")


async def talk(
    command: Sequence[str],
    *,
    stdin: bytes,
    environment: Mapping[str, str],
    folder: Path,
    seconds: float,
    output_bytes: int,
    pass_fds: Sequence[int] = (),
) -> Said:
    """Runs a program to its end or to the deadline; raises OSError when it cannot be started."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
        pass_fds=pass_fds,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = Spoken(output_bytes), Spoken(output_bytes)
    code: int | None = None
    hearing = [asyncio.ensure_future(_hear(process.stdout, out)), asyncio.ensure_future(_hear(process.stderr, err))]
    try:
        async with asyncio.timeout(seconds):
            await _feed(process.stdin, stdin)
            code = await process.wait()
    except TimeoutError:
        code = None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        # Whoever left the group may hold the pipes open: what is in them by now is all that is heard.
        await asyncio.wait(hearing, timeout=0.5)
        for task in hearing:
            task.cancel()
        await asyncio.gather(*hearing, return_exceptions=True)
        process._transport.close()  # type: ignore[attr-defined]  # or its pipes stay open until collected
    return Said(code, out.text, err.text)


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it does not want to know more
        pipe.write(data)
        await pipe.drain()
    pipe.close()


async def _hear(pipe: asyncio.StreamReader, spoken: Spoken) -> None:
    while chunk := await pipe.read(_CHUNK):
        spoken.add(chunk)
