"""
A line over a connection of our own: a value each way takes a twentieth of what a call of Ray's takes.

The writer has a door, to which each worker connects with a word that was given to it alone; nothing is read of anybody
else. What travels is pickled, as with Ray itself; where Ray's own talk is encrypted, so is this, with its certificates.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import pickle
import secrets
import ssl
from collections.abc import Mapping
from typing import cast

from attrs import define, field

from skillopt_es.adapters.executors.travels import Line, LineClosed

_WORD = 32  # bytes: 256 random bits cannot be guessed by a process that reaches the port
# To OpenSSL one of some 800 words in plain (measured) begins a handshake, whose rest would be waited for 60 seconds.
_HANDSHAKE_SECONDS = 10.0
_SIZE = 4  # bytes before each value that say how long it is
_TRIES = 5  # a worker may start before its node can reach the writer: five tries bridge four seconds
_BETWEEN = 1.0  # seconds; see `_TRIES`


class Wire(asyncio.Protocol):
    """One end of a line."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._heard: asyncio.Queue[object] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The line is open."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Values, whole or in pieces."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _SIZE:
            end = at + _SIZE + int.from_bytes(buffer[at : at + _SIZE], "big")
            if len(buffer) < end:
                break
            with memoryview(buffer) as view:
                self._heard.put_nowait(pickle.loads(view[at + _SIZE : end]))  # noqa: S301 -- both ends are ours
            at = end
        del buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever hears is told."""
        self._heard.put_nowait(_CLOSED)

    def send(self, value: object) -> None:
        """Sends a value."""
        packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(len(packed).to_bytes(_SIZE, "big") + packed)

    async def hear(self) -> object:
        """The next value; raises LineClosed."""
        value = await self._heard.get()
        if value is _CLOSED:
            self._heard.put_nowait(_CLOSED)  # it stays so
            raise LineClosed
        return value

    def close(self) -> None:
        """Ends it, without what has not been sent yet."""
        if self._transport is not None:
            self._transport.abort()
        self._heard.put_nowait(_CLOSED)


_CLOSED = object()


class _Guest(asyncio.Protocol):
    """Whoever has connected, until the word is there that says who it is."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._said = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._said += data
        if len(self._said) < _WORD:
            return
        waiting = self._door.expected(self._said[:_WORD])
        if waiting is None:
            self._transport.abort()
            return
        wire = Wire()
        self._transport.set_protocol(wire)
        wire.connection_made(self._transport)
        wire.data_received(self._said[_WORD:])
        waiting.set_result(wire)


@define
class Door:
    """Where workers connect to the writer."""

    host: str
    port: int = 0
    _server: asyncio.Server | None = None
    _waiting: dict[bytes, asyncio.Future[Line]] = field(factory=dict)

    async def open(self) -> None:
        """Opens it at a free port; raises OSError."""
        encryption = _encryption(server=True)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Guest(self),
            self.host,
            0,
            ssl=encryption,
            ssl_handshake_timeout=None if encryption is None else _HANDSHAKE_SECONDS,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def expect(self) -> tuple[bytes, asyncio.Future[Line]]:
        """The word for a worker that will connect, and its line once it has."""
        word, line = secrets.token_bytes(_WORD), asyncio.get_running_loop().create_future()
        self._waiting[word] = line
        line.add_done_callback(lambda _: self._waiting.pop(word, None))
        return word, line

    def expected(self, said: bytes) -> asyncio.Future[Line] | None:
        """Who waits for whoever has this word."""
        found = [line for word, line in self._waiting.items() if hmac.compare_digest(word, said) and not line.done()]
        return found[0] if found else None

    def close(self) -> None:
        """Nobody else comes in."""
        if self._server is not None:
            self._server.close()


async def reach(host: str, port: int, word: bytes) -> Wire:
    """A worker's line to the writer; raises OSError where no writer can be reached there."""
    loop = asyncio.get_running_loop()
    for left in reversed(range(_TRIES)):
        try:
            transport, wire = await loop.create_connection(Wire, host, port, ssl=_encryption(server=False))
        except OSError:
            if not left:
                raise
            await asyncio.sleep(_BETWEEN)
        else:
            transport.write(word)
            return wire
    raise AssertionError("the last try has raised")


def _encryption(*, server: bool, environ: Mapping[str, str] = os.environ) -> ssl.SSLContext | None:
    """As Ray's own variables have it: both sides show a certificate of one authority."""
    if environ.get("RAY_USE_TLS", "0") != "1":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # they name nodes by Ray's rules; whose they are is what the authority says
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(environ["RAY_TLS_CA_CERT"])
    context.load_cert_chain(environ["RAY_TLS_SERVER_CERT"], environ["RAY_TLS_SERVER_KEY"])
    return context
