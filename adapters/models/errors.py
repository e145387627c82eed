"""
What went wrong with one try, why, and whether it makes sense to ask again.

    config          400, 404, 422, redirects, any other 4xx     no retry, every later call would fail too; only of a
                                                                 400 or 422 that is not sure, see `perhaps_request`
    auth            401, 403                                     no retry, every later call would fail too
    quota           402, billing codes with any status           no retry, every later call would fail too
    rate_limit      other 429, 529, 503 slow_down                retry, as long as there is patience
    server          other 5xx, 408, 409, 424, 425                retry
    transport       connect, cut or unreadable reply             retry
    timeout         nothing came in time                         retry, at most twice
    context_length  413, context codes and messages              no retry, this request only
    empty           a reply without a word                       retry, at most twice
    invalid_reply   JSON of a shape nobody documents             no retry, this request only
    crash           an agent or a function of the user's raised  retry, at most twice

`x-should-retry: true` or `false` overrules the last column. What says when to come back (`Retry-After`) is a matter of
patience, too, whatever its status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from attrs import evolve, field, frozen

from skillopt_es.adapters.models.known import KNOWN
from skillopt_es.ports import SYSTEMIC, FailureKind, Usage

_LONGEST_QUOTED = 20_000  # characters that are looked through for keys; what is shown of them is far less
# RFC 9110, 4918 and 8470: late, in conflict, failed with another, too early: a second try may do.
_PASSING_STATUSES = frozenset({408, 409, 424, 425})
# Servers that give this error no code of its own (vLLM, llama.cpp, LM Studio) all say it in one of these ways.
_CONTEXT_MESSAGE = re.compile(
    r"context (length|window|size)|prompt is too long|exceeds the maximum number of tokens", re.IGNORECASE
)
_RETRIED: frozenset[FailureKind] = frozenset({"rate_limit", "server", "transport", "timeout", "empty", "crash"})


@frozen(kw_only=True)
class Failure:
    """
    One try that gave no answer.

    `server_wait` is how long the server asked us to stay away, `usage` what it took. `closed` says that the endpoint
    takes nobody for longer than we have patience. `quote` is shown behind the message; nothing is concluded from it.
    """

    kind: FailureKind
    message: str
    retry: bool
    quote: str = ""
    status: int | None = None
    codes: frozenset[str] = frozenset()
    param: str = ""
    request_id: str = ""
    server_wait: float | None = None
    usage: Usage = field(factory=Usage)
    closed: bool = False

    @property
    def told(self) -> str:
        """The message, with what is quoted in place of the endpoint's own."""
        return f"{self.message}: {self.quote}" if self.quote else self.message

    @property
    def systemic(self) -> bool:
        """Whether every later call would fail the same way, as far as one can tell."""
        return self.closed or (self.kind in SYSTEMIC and not self.perhaps_request)

    @property
    def perhaps_request(self) -> bool:
        """Whether it may be about this one request, not about every one: a 400 or 422 that names no model."""
        return self.kind == "config" and self.status in {400, 422} and not self.codes & KNOWN.model_codes


@frozen
class ErrorBody:
    """
    An endpoint's own words: what it says, its code and type (lower case), and the field it complains about.

    `kind` is known where a provider's own reading of them says it. `quote` is the body where it holds no message: it
    may be anything, also the request itself, so its words mean nothing to us.
    """

    message: str
    codes: frozenset[str] = frozenset()
    param: str = ""
    kind: FailureKind | None = None
    quote: str = ""

    @property
    def text(self) -> str:
        """The message, with the codes that it does not mention."""
        unsaid = sorted(code for code in self.codes if code not in self.message.lower())
        return f"{self.message} ({', '.join(unsaid)})" if unsaid else self.message


OddError = Callable[[Mapping[str, object]], ErrorBody | None]


def failure(kind: FailureKind, message: str, *, status: int | None = None, request_id: str = "") -> Failure:
    """A failure that is retried as its kind says."""
    return Failure(kind=kind, message=message, retry=kind in _RETRIED, status=status, request_id=request_id)


def failure_of(status: int, headers: Mapping[str, str], error: ErrorBody, request_id: str = "") -> Failure:
    """What an HTTP error means; the codes in the body know more than the status."""
    kind = kind_of(status, error)
    wish = headers.get("x-should-retry", "").strip().lower()
    return Failure(
        kind=kind,
        message=_with_status(status, error.text),
        retry={"true": True, "false": False}.get(wish, kind in _RETRIED),
        quote=error.quote,
        status=status,
        codes=error.codes,
        param=error.param,
        request_id=request_id,
    )


def _with_status(status: int, text: str) -> str:
    """An error's words behind its status, which some gateways have said already."""
    name, text = f"HTTP {status}", text.strip()
    return text if text.startswith(name) else f"{name}: {text}" if text else name


def status_in(error: Mapping[str, object]) -> int:
    """The HTTP status that an error inside a 200 stands for."""
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    names = (error.get("type"), code)
    # An error that says nothing of the kind is taken as a gateway's, which may pass.
    return next((KNOWN.status_of[name] for name in names if isinstance(name, str) and name in KNOWN.status_of), 502)


def kind_of(status: int, error: ErrorBody) -> FailureKind:
    """The kind of an HTTP error, by the table at the top of this module."""
    return _kind_by_code(status, error) or _kind_by_status(status)


def _kind_by_code(status: int, error: ErrorBody) -> FailureKind | None:
    if error.kind is not None:
        return error.kind
    if error.codes & KNOWN.quota_codes:
        return "quota"
    if error.codes & KNOWN.context_codes or (status in {400, 422} and _CONTEXT_MESSAGE.search(error.message)):
        return "context_length"
    if error.codes & KNOWN.slow_codes:
        return "rate_limit"
    return None


def _kind_by_status(status: int) -> FailureKind:
    if status in {401, 403}:
        return "auth"
    if status in {429, 529}:
        return "rate_limit"
    if status == 402:
        return "quota"
    if status == 413:
        return "context_length"
    return "server" if status >= 500 or status in _PASSING_STATUSES else "config"


def read_error(body: bytes, odd_error: OddError) -> ErrorBody:
    """
    An error body in any of the shapes that compatible servers send; an unreadable one is its own message.

    `odd_error` finds the error where one provider alone puts it.
    """
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        # A gateway's page in HTML, for example.
        return ErrorBody(body[:_LONGEST_QUOTED].decode(errors="replace"))
    if isinstance(parsed, list) and parsed:  # Gemini wraps the object in a list
        parsed = parsed[0]
    if not isinstance(parsed, dict):
        return ErrorBody(body[:_LONGEST_QUOTED].decode(errors="replace"))
    found = error_in(parsed)
    # As inside a 200, what everybody understands comes before what one provider says.
    odd = None if parsed.get("error") and found.message.strip() else odd_error(parsed)
    found = found if odd is None else odd
    return found if found.message.strip() else evolve(found, quote=_quoted(parsed))


def _quoted(parsed: Mapping[str, object]) -> str:
    """A body that can be printed; it is spelled anew because escapes such as `\\/` would hide a key in it."""
    try:
        text = json.dumps(parsed, ensure_ascii=False)[:_LONGEST_QUOTED] if parsed else ""
    except RecursionError:  # it could only just be read
        return ""
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def error_in(parsed: Mapping[str, object]) -> ErrorBody:
    """The error that a parsed body reports: OpenAI's object, a bare text, or FastAPI's `detail`."""
    inner = parsed.get("error") or parsed
    if not isinstance(inner, dict):
        name = _as_text(inner)
        return ErrorBody(
            _as_text(parsed.get("message") or inner), frozenset() if " " in name else frozenset([name.lower()])
        )
    message = _as_text(inner.get("message") or inner.get("detail") or "")
    codes = (inner.get("code"), inner.get("type"), inner.get("status"))
    names = frozenset(code.lower() for code in codes if isinstance(code, str) and code)
    return ErrorBody(message, names, _as_text(inner.get("param") or ""))


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
