"""
One POST over pooled connections: what came back, or why nothing did.

It uses aiohttp alone. What httpx adds to it (requests, responses and errors of its own) is not wanted here, and took a
sixth of the processor time of a call without delay. Measured by tests/bench/bench_calls.py.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Mapping

import aiohttp
import httpx
from attrs import frozen

from skillopt_es.adapters.models.endpoint import Endpoint
from skillopt_es.adapters.models.errors import Failure, failure

CONNECT_SECONDS = 10.0  # three lost SYN packets are sent again within seven: what needs longer is not there
# Below the 5 s after which uvicorn, and so vLLM, closes an idle connection: a request should not meet a closing one.
IDLE_SECONDS = 4.0
MOST_BYTES = 32 * 2**20  # an answer of 100,000 tokens, streamed with 300 bytes around each, has 30 MB


@frozen
class HttpReply:
    """A complete reply; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """Posts bodies to one endpoint; connections are opened when first needed, in the event loop that needs them."""

    def __init__(
        self, endpoint: Endpoint, *, concurrency: int, timeout_seconds: float, most_bytes: int = MOST_BYTES
    ) -> None:
        self._endpoint = endpoint
        self._concurrency = concurrency
        self._timeout_seconds = timeout_seconds
        self._most_bytes = most_bytes
        self._url = str(endpoint.url)
        self._timeout = _timeout(timeout_seconds)
        tunnel = endpoint.url.scheme == "https" and endpoint.proxy is not None and endpoint.proxy.authorization
        # aiohttp's own way to pass credentials is deprecated.
        self._to_proxy = {"Proxy-Authorization": tunnel} if tunnel else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, body: bytes, client_request_id: str, token: str = "", seconds: float = math.inf
    ) -> HttpReply | Failure:
        """
        The reply, whatever its status, or a transport failure; a cancelled call closes its connection.

        After `seconds` a reply that is not complete is given up, wherever it is: also one whose headers trickle.
        """
        host = self._endpoint.host
        deadline = asyncio.timeout(None if math.isinf(seconds) else max(seconds, 0.0))
        try:
            async with deadline:
                return await self._send(body, client_request_id, token, seconds)
        except TooLongError:
            return failure("invalid_reply", f"{host} sent a reply of more than {self._most_bytes} bytes")
        except UnreadableError as error:
            return failure("transport", f"the reply of {host} cannot be read: {error}")
        except TimeoutError as error:
            # aiohttp's time-outs are TimeoutErrors, too.
            if not deadline.expired():
                return self._failure(error)
            return failure("timeout", f"{host} was still replying at the call's deadline")
        except (aiohttp.ClientError, OSError) as error:
            return self._failure(error)

    async def aclose(self) -> None:
        """Close all connections; a later call would open new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(self, body: bytes, client_request_id: str, token: str, seconds: float) -> HttpReply:
        # To aiohttp 0 means no limit.
        timeout = self._timeout if seconds >= self._timeout_seconds else _timeout(max(seconds, 0.001))
        headers = {"x-client-request-id": client_request_id}
        if token:
            headers["authorization"] = f"Bearer {token}"
        asking = self._session_here().post(
            self._url,
            headers=headers,
            data=body,
            allow_redirects=False,
            timeout=timeout,
            proxy_headers=self._to_proxy,
        )
        async with asking as response:
            said = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.raw_headers}
            whole = Body(said.get("content-encoding", ""), self._most_bytes)
            while piece := await response.content.readany():
                whole.add(piece)
            return HttpReply(response.status, said, whole.whole)

    def _session_here(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        # Connections belong to one event loop.
        if self._session is None or self._loop is not loop:
            self._loop, self._session = loop, self._open()
        return self._session

    def _open(self) -> aiohttp.ClientSession:
        endpoint, proxy = self._endpoint, self._endpoint.proxy
        # Loading certificates takes longer than a hundred calls; plain http to a plain host never looks at them.
        tls = endpoint.url.scheme == "https" or proxy is not None
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._concurrency,
                keepalive_timeout=IDLE_SECONDS,
                ssl=httpx.create_ssl_context() if tls else True,
            ),
            headers=endpoint.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # its own unpacking knows no limit
            proxy=None if proxy is None else str(proxy.url),
        )

    def _failure(self, error: Exception) -> Failure:
        # Of a reply that is no HTTP, the cause says what is wrong with it.
        unread = isinstance(error, aiohttp.ClientResponseError) and not isinstance(error, aiohttp.ClientHttpProxyError)
        cause = error.__cause__ or error if unread else error
        late = isinstance(cause, TimeoutError) and not isinstance(cause, aiohttp.ConnectionTimeoutError)
        return failure("timeout" if late else "transport", self._story(cause))

    def _story(self, cause: BaseException) -> str:
        host, proxy = self._endpoint.host, self._endpoint.proxy
        match cause:
            case aiohttp.ConnectionTimeoutError():
                story = f"no connection to {host} within {CONNECT_SECONDS:g} s"
            case TimeoutError():
                story = f"{host} sent nothing for {self._timeout_seconds:g} s"
            case aiohttp.ClientSSLError():
                story = f"no trusted TLS connection to {host}: {cause}"
            case aiohttp.ClientProxyConnectionError() if proxy:
                story = f"cannot connect to the proxy {proxy.url.netloc.decode()}: {_reason(cause)}"
            case aiohttp.ClientConnectorError():
                story = f"cannot connect to {host}: {_reason(cause)}"
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | OSError():
                story = f"{host} closed the connection before its reply was complete"
            case _:
                story = f"the exchange with {host} failed: {type(cause).__name__}: {cause}"
        return story


def _timeout(read_seconds: float) -> aiohttp.ClientTimeout:
    # The first covers looking up the host's name, which the second does not.
    return aiohttp.ClientTimeout(connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=read_seconds)


def _reason(error: aiohttp.ClientConnectorError) -> str:
    return error.os_error.strerror or str(error.os_error) or type(error.os_error).__name__


# With 32 added, zlib finds out itself whether it reads gzip or zlib; a deflate without any header is the third way.
_ANY_HEADER = zlib.MAX_WBITS | 32


class TooLongError(Exception):
    """The body is longer than its reader takes, packed or unpacked."""


class UnreadableError(Exception):
    """The body cannot be unpacked."""


class Body:
    """A body in pieces; raises TooLongError as soon as it is too long, UnreadableError where it cannot be unpacked."""

    def __init__(self, encoding: str, most: int) -> None:
        packed = encoding.strip().lower() in {"gzip", "x-gzip", "deflate"}
        self._inflate = zlib.decompressobj(_ANY_HEADER) if packed else None
        self._may_lack_header = encoding.strip().lower() == "deflate"
        self._most = most
        self._came = 0
        self._whole = bytearray()

    def add(self, piece: bytes) -> None:
        """Some more of it."""
        self._came += len(piece)
        if self._came > self._most:  # what unpacks to nothing would have no end otherwise
            raise TooLongError
        if self._inflate is None:
            self._take(piece)
            return
        while piece:
            piece = self._unpacked(self._inflate, piece)

    @property
    def whole(self) -> bytes:
        """All of it."""
        # What breaks off unpacks without an error: only its missing end tells.
        if self._inflate is not None and self._whole and not self._inflate.eof:
            raise UnreadableError("the compressed body ends before its end")
        return bytes(self._whole)

    def _unpacked(self, inflate: zlib._Decompress, piece: bytes) -> bytes:
        """Takes what a piece unpacks to, up to the limit; what is left of the piece."""
        if inflate.eof:  # one more member of a gzip
            self._inflate = inflate = zlib.decompressobj(_ANY_HEADER)
        try:
            # One byte more than may be kept shows that it is too much, before a small body unpacks to gigabytes.
            self._take(inflate.decompress(piece, self._most - len(self._whole) + 1))
        except zlib.error as error:
            # `deflate` is sent with and without a header: if nothing could be read so far, begin again without one.
            if not self._may_lack_header or self._whole:
                raise UnreadableError(f"the compressed body is damaged: {error}") from error
            self._inflate, self._may_lack_header = zlib.decompressobj(-zlib.MAX_WBITS), False
            return piece
        # What the limit left over, or the next member of a gzip.
        return inflate.unconsumed_tail or inflate.unused_data

    def _take(self, piece: bytes) -> None:
        if len(self._whole) + len(piece) > self._most:
            raise TooLongError
        self._whole += piece
