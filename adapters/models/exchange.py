"""
One POST over pooled connections: what came back, or why nothing did.

It uses httpx's transport without its client: what a client adds (cookies, authentication, redirects, hooks) is not
wanted here and costs a third of the time of a call. Measured by tests/bench/bench_adapter.py.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Mapping

import aiohttp
import httpx
from attrs import frozen
from httpx_aiohttp import AiohttpTransport

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
        self._headers = httpx.Headers(endpoint.headers)
        self._extensions = _extensions(timeout_seconds)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: AiohttpTransport | None = None

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
            # The transport's time-outs are TimeoutErrors, too.
            if not deadline.expired():
                return self._failure(error)
            return failure("timeout", f"{host} was still replying at the call's deadline")
        except (httpx.HTTPError, aiohttp.ClientError, OSError) as error:
            return self._failure(error)

    async def aclose(self) -> None:
        """Close all connections; a later call would open new ones."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _send(self, body: bytes, client_request_id: str, token: str, seconds: float) -> HttpReply:
        # To aiohttp 0 means no limit.
        extensions = self._extensions if seconds >= self._timeout_seconds else _extensions(max(seconds, 0.001))
        stream = httpx.ByteStream(body)
        request = httpx.Request("POST", self._endpoint.url, headers=self._headers, stream=stream, extensions=extensions)
        request.read()
        request.headers.encoding = "ascii"  # or it is guessed anew for each request
        request.headers["x-client-request-id"] = client_request_id
        if token:
            request.headers["authorization"] = f"Bearer {token}"
        response = await self._transport_here().handle_async_request(request)
        try:
            headers = _plain(response.headers)
            return HttpReply(response.status_code, headers, await self._body(response, headers))
        finally:
            await response.aclose()

    async def _body(self, response: httpx.Response, headers: Mapping[str, str]) -> bytes:
        """All of it, taken as it comes: httpx's own decoders know no limit, and cost three times as much."""
        body = Body(headers.get("content-encoding", ""), self._most_bytes)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        async for piece in response.stream:
            body.add(piece)
        return body.whole

    def _transport_here(self) -> AiohttpTransport:
        loop = asyncio.get_running_loop()
        # Connections belong to one event loop.
        if self._transport is None or self._loop is not loop:
            self._loop, self._transport = loop, self._open()
        return self._transport

    def _open(self) -> AiohttpTransport:
        endpoint = self._endpoint
        # Loading certificates takes longer than a hundred calls; plain http to a plain host never looks at them.
        verify = endpoint.url.scheme == "https" or endpoint.proxy is not None
        transport = AiohttpTransport(verify=verify, proxy=_httpx_proxy(endpoint))
        connector = aiohttp.TCPConnector(
            limit=self._concurrency, keepalive_timeout=IDLE_SECONDS, ssl=transport.ssl_context
        )
        transport.client = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return transport

    def _failure(self, error: Exception) -> Failure:
        # The transport calls every broken connection a connect timeout; its cause knows better.
        cause = error.__cause__ or error
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


def _extensions(read_seconds: float) -> dict[str, dict[str, float]]:
    # "pool" covers looking up the host's name, which "connect" does not.
    return {"timeout": {"pool": CONNECT_SECONDS, "connect": CONNECT_SECONDS, "read": read_seconds}}


def _plain(headers: httpx.Headers) -> dict[str, str]:
    """By lower-case name; a dozen look-ups in httpx's own take a tenth of the time of a call."""
    return {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in headers.raw}


def _httpx_proxy(endpoint: Endpoint) -> httpx.Proxy | None:
    if endpoint.proxy is None:
        return None
    # The transport's own way to pass credentials is deprecated in aiohttp.
    authorization = endpoint.proxy.authorization
    tunnel = endpoint.url.scheme == "https" and authorization
    return httpx.Proxy(endpoint.proxy.url, headers={"Proxy-Authorization": authorization} if tunnel else None)


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
