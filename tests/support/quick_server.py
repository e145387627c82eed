"""
The cheapest endpoint that answers chat completions after a fixed delay, for benchmarks.

It does little work of its own, so that what is measured is the trainer.

    python -m support.quick_server --delay-ms 50     prints its base URL and runs until ended
"""

from __future__ import annotations

import argparse
import asyncio
import json

from support.bench_models import answer

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class _Connection(asyncio.Protocol):
    """One keep-alive connection; answers each request `delay` seconds after its last byte came."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Takes whole requests out of the stream."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            start = self._received.lower().index(b"content-length:") + 15
            length = int(self._received[start : self._received.index(b"\r\n", start)])
            whole = end + 4 + length
            if len(self._received) < whole:
                return
            body, self._received = self._received[end + 4 : whole], self._received[whole:]
            asyncio.get_running_loop().call_later(self._delay, self._transport.write, _reply(body))  # type: ignore[attr-defined]


def _reply(body: bytes) -> bytes:
    said = answer(json.loads(body), {})
    message = {"role": "assistant", "content": said.text}
    content = json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}], "usage": said.usage, "model": "bench"}
    ).encode()
    return _HEAD % len(content) + content


async def serve(delay: float) -> None:
    """Listens on a free port until cancelled."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(delay), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args().delay_ms / 1000))
