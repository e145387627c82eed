"""
Who may ask the page for what: names of this machine only, a token for whatever acts, and a policy that runs no text.

A browser sends requests for any site that it has open. So a request must name this server by a name that nobody can
point elsewhere (a page that rebinds its own name is refused), and what acts must come from one of our own pages: it
brings the session's cookie, the form's token and our own origin.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from attrs import field, frozen
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillopt_es.events.errors import SkillOptError

MOST_BYTES = 256 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with none at all, browsers send forms without an origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Refused(SkillOptError):
    """A request that may not be done, and why."""

    exit_code = 2


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    return host in _LOOPBACK


@frozen(kw_only=True)
class Rules:
    """What holds for one session of the page: where it listens, its token, and whether anything may be changed."""

    host: str
    port: int
    read_only: bool = False
    token: str = field(factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def address(self) -> str:
        """What a person opens; the token signs the browser in."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies do not tell ports apart."""
        return f"skillopt_es_{self.port}"

    @property
    def form_token(self) -> str:
        """What a form of ours brings, which no other site can read."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server by a name that nobody else can point here."""
        try:
            name = urlsplit(f"//{host}").hostname
            given = urlsplit(f"//{host}").port
        except ValueError:
            return False
        if not name or (given is not None and not 0 < given < 65536):
            return False
        if is_loopback(self.host):
            return name in _LOOPBACK
        return name in _LOOPBACK or name in (self.host, socket.gethostname()) or _is_address(name)

    def signed_in(self, headers: Headers) -> bool:
        """Whether the browser has this session's cookie."""
        try:
            said = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return said is not None and hmac.compare_digest(said.value.encode(), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """What every request passes, and the headers that every answer gets."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers in the application's place what may not reach it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._answer(scope)
        await (self._app if answer is None else answer)(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """What is said in place of the page; None for a request that may pass."""
        headers, rules = Headers(scope=scope), self._rules
        if not rules.knows(headers.get("host", "")):
            return PlainTextResponse("This server does not answer to that name.\n", 421)
        signing_in = self._sign_in(scope)
        if signing_in is not None:
            return signing_in
        refused = self._refused(scope["method"], headers)
        return None if refused is None else PlainTextResponse(f"{refused[1]}\n", refused[0])

    def _refused(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Why a request may not be done; None for one that may."""
        rules = self._rules
        signed_in = rules.signed_in(headers)
        if not signed_in and not is_loopback(rules.host):
            return 401, "Open the address that the command printed: it has the token."
        if method in ("GET", "HEAD"):
            return None
        if rules.read_only:
            return 403, "This page is read-only."
        if not signed_in:
            return 403, "Open the address that the command printed: what acts needs its token."
        return None if _is_own(headers) else (403, "This request comes from another site.")

    def _sign_in(self, scope: Scope) -> Response | None:
        """Takes the token out of the address and into a cookie; None where the address has none."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if not given or scope["method"] != "GET":
            return None
        if not hmac.compare_digest(given[0].encode(), self._rules.token.encode()):
            return PlainTextResponse("That is not the token of this session.\n", 403)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = f"/{str(scope['path']).lstrip('/')}"  # two slashes would name another server
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(self._rules.cookie, self._rules.token, httponly=True, samesite="strict", path="/")
        return answer


def _is_own(headers: Headers) -> bool:
    """Whether a request that acts was made by a page of this very server."""
    origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and origin == f"http://{headers['host']}"


async def checked_form(request: Request, rules: Rules) -> dict[str, str]:
    """The fields of a form of ours, the last one of each name; raises Refused for any other."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Refused("this form is too long")
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=2000)
    except ValueError as error:
        raise Refused(f"this is no form: {error}") from None
    last = {name: values[-1] for name, values in fields.items()}
    if not hmac.compare_digest(last.pop("form_token", "").encode(), rules.form_token.encode()):
        raise Refused("this form is not of this session", hint="open the page again")
    return last
