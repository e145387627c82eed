"""A loopback HTTP endpoint for checks: it says what it is told to, and counts what it sees."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from types import TracebackType

from attrs import field, frozen


@frozen(kw_only=True)
class Reply:
    """What is sent back after `delay` seconds; `cut` breaks off in the middle of the body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(factory=dict)
    delay: float = 0.0
    cut: bool = False


class Endpoint:
    """An HTTP/1.1 endpoint in a thread of its own, open as long as its `with` block."""

    def __init__(self, reply: Callable[[int], Reply]) -> None:
        self._reply = reply
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="endpoint", daemon=True)
        self.requests = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.url = ""

    def __enter__(self) -> Endpoint:
        self._thread.start()
        if not self._up.wait(10):
            raise RuntimeError("the endpoint did not come up")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await self._talk(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass  # the caller went away, or the check is over
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
                connections.discard(task)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._up.set()
        await self._stop.wait()
        for _ in range(20):  # a connection that waits to be accepted becomes a task some turns later
            await asyncio.sleep(0)
        server.close()
        for task in connections:
            task.cancel()
        while connections:
            await asyncio.wait(connections)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 : head.index(b"\r\n", at)]) if at >= 0 else 0
            await reader.readexactly(length)
            self.requests += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                reply = self._reply(self.requests)
                await asyncio.sleep(reply.delay)
            finally:
                self.in_flight -= 1
            writer.write(_bytes(reply))
            await writer.drain()
            if reply.cut:
                return


def _bytes(reply: Reply) -> bytes:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(reply.body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} -", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    body = reply.body[: len(reply.body) // 2] if reply.cut else reply.body
    return "\r\n".join(lines).encode("latin-1") + body
