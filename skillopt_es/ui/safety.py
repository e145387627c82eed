"""
Who may ask the page for what: names of this machine only, a token for every page, and a policy that runs no text.

Every process of the machine reaches a port on loopback: other users, and agents from which answers are hidden. So every
page needs the session's token, as a cookie or as a header. A browser sends requests for any site that it has open. So
a request must name this server by a name that nobody can point elsewhere (a page that rebinds its own name is refused),
and what acts must come from one of our own pages: it brings the form's token and our own origin, too.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from urllib.parse import parse_qs, parse_qsl, urlencode

from attrs import field, frozen
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillopt_es.events.errors import SkillOptError
from skillopt_es.report.html import el, note, prose
from skillopt_es.ui.shell import page, problem

MOST_BYTES = 256 * 1024  # the longest form has an order's text of 64 KB, which percent signs make three times as long
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OPEN = frozenset({"/static/style.css", "/static/ui.js", "/favicon.ico"})
"""What anybody may read: it is the same for all."""
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
        found = _HOST.fullmatch(host.lower())
        if found is None or (found[2] is not None and not 0 < int(found[2]) < 65536):
            return False
        name = found[1].strip("[]")
        if is_loopback(self.host):
            return name in _LOOPBACK
        return name in _LOOPBACK or name in (self.host, socket.gethostname()) or _is_address(name)

    def signed_in(self, headers: Headers) -> bool:
        """Whether a request has this session's token: a browser's cookie, or a script's header."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        return self.is_token(cookie) or (scheme.lower() == "bearer" and self.is_token(bearer.strip()))

    def is_token(self, text: str) -> bool:
        """Whether this is the session's token."""
        return hmac.compare_digest(text.encode(), self.token.encode())


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
            raise RuntimeError(f"the page answers no {scope['type']}")

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
        headers = Headers(scope=scope)
        if not self._rules.knows(headers.get("host", "")):
            return PlainTextResponse("This server does not answer to that name.\n", 421)
        return self._sign_in(scope) or self._refused(scope, headers)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Why a request may not be done; None for one that may."""
        reads = scope["method"] in ("GET", "HEAD")
        if reads and scope["path"] in _OPEN:
            return None
        if not self._rules.signed_in(headers):
            return _way_in(headers)
        if reads:
            return None
        if self._rules.read_only:
            return PlainTextResponse("This page is read-only.\n", 403)
        return None if _is_own(headers) else PlainTextResponse("This request comes from another site.\n", 403)

    def _sign_in(self, scope: Scope) -> Response | None:
        """Takes the token out of the address and into a cookie; None where the address has none."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if not given or scope["method"] != "GET":
            return None
        if not self._rules.is_token(given[0]):
            return _way_in(Headers(scope=scope), "That is not the token of this session.")
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = f"/{str(scope['path']).lstrip('/')}"  # two slashes would name another server
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(self._rules.cookie, self._rules.token, httponly=True, samesite="strict", path="/")
        return answer


def _way_in(headers: Headers, wrong: str = "") -> Response:
    """How somebody without the token gets in; it says nothing of what the page shows."""
    more = {"www-authenticate": "Bearer"}
    if "text/html" not in headers.get("accept", ""):
        return PlainTextResponse(f"{wrong} {_ADDRESS} {_HEADER}\n".lstrip(), 401, more)
    if headers.get("sec-fetch-site") == "cross-site":
        # A browser keeps the cookie back where a link of another site leads here. It sends it if our page asks again.
        more["refresh"] = "0"
    main = (
        el("h1", "You are not signed in"),
        problem(wrong) if wrong else None,
        el("p", prose(_ADDRESS)),
        note("Each start of the command makes a new token. The old one stops working."),
        note(_HEADER),
    )
    answer = page("Not signed in", *main, visit=None, status=401)
    answer.headers.update(more)
    return answer


_ADDRESS = "Open the address that `skillopt-es ui` printed in its terminal. It contains the token of this session."
_HEADER = "A script sends the header `Authorization: Bearer TOKEN`. The token is what follows `token=` in that address."


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
