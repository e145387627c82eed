"""
Azure's bearer tokens without its SDK: where they come from, and a cache that renews them before they expire.

    azure_cli            `az account get-access-token`, as whoever ran `az login`
    managed_identity     the identity of the App Service, Azure ML job, AKS pod or virtual machine this runs on
    workload_identity    a federated token file (AKS), exchanged at the login endpoint
    service_principal    AZURE_CLIENT_ID with AZURE_CLIENT_SECRET, exchanged there too
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import httpx
from attrs import frozen

from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.limits import Clock
from skillopt_es.adapters.models.proxy import Proxy, proxy_for
from skillopt_es.adapters.models.reading import Object, as_object, as_text
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.errors import ConfigError
from skillopt_es.ports import AuthMode, ModelSettings

RENEW_BEFORE = 300.0
CLI_SECONDS = 10.0
_IMDS = "http://169.254.169.254"
_LOGIN = "https://login.microsoftonline.com"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_UNKNOWN_LIFE = 3000.0


@frozen(repr=False)
class Token:
    """A token and when it ends (wall clock)."""

    text: str
    expires: float


Source = Callable[[float], Awaitable[Token | Failure]]


class TokenCache:
    """Keeps a token until it is about to end; callers that come together cause one request."""

    def __init__(self, source: Source, *, wall_clock: Clock) -> None:
        self._source = source
        self._wall_clock = wall_clock
        self._known: Token | None = None
        self._asking: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def token(self) -> str | Failure:
        """A token that is good for five minutes at least, or why there is none."""
        known = self._good()
        if known is not None:
            return known
        async with self._lock():
            known = self._good()
            if known is not None:
                return known
            found = await self._source(self._wall_clock())
            if isinstance(found, Failure):
                return found
            self._known = found
            return found.text

    def forget(self) -> None:
        """The endpoint refused the last token."""
        self._known = None

    def _good(self) -> str | None:
        known = self._known
        return known.text if known is not None and known.expires - self._wall_clock() > RENEW_BEFORE else None

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._asking is None or self._asking[0] is not loop:
            self._asking = (loop, asyncio.Lock())
        return self._asking[1]


def token_source(mode: AuthMode, scope: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    """Where tokens come from; raises ConfigError for what this machine lacks for it."""
    if mode == "azure_cli":
        return _azure_cli(scope, environ, settings)
    if mode == "managed_identity":
        return _managed_identity(scope, environ, settings)
    if mode == "workload_identity":
        return _workload_identity(scope, environ, settings)
    names = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
    tenant, client, secret = _required(environ, settings, *names)
    return _login(environ, tenant, {"client_id": client, "client_secret": secret, "scope": scope})


def _required(environ: Mapping[str, str], settings: ModelSettings, *names: str) -> list[str]:
    for name in names:
        if not environ.get(name, "").strip():
            where = setting(settings.role, "auth_mode")
            raise ConfigError(
                f"{where} is {settings.auth_mode}, but the environment variable {name} is not set",
                hint=f"set {', '.join(names)}, or choose another auth_mode",
            )
    return [environ[name].strip() for name in names]


# --- the command line -----------------------------------------------------------------------------------------------


def _azure_cli(scope: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    program = shutil.which("az", path=environ.get("PATH"))
    if program is None:
        raise ConfigError(
            f"{setting(settings.role, 'auth_mode')} is azure_cli, but there is no `az` command",
            hint="install the Azure CLI and run `az login`, or name a key's variable in model.api_key_env",
        )
    command = (program, "account", "get-access-token", "--output", "json", "--resource", _resource(scope))
    own = {name: value for name, value in environ.items() if name != settings.api_key_env}
    return lambda now: _ask_cli(command, {**own, "AZURE_CORE_NO_COLOR": "true"}, now)


async def _ask_cli(command: tuple[str, ...], environ: Mapping[str, str], now: float) -> Token | Failure:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=dict(environ), start_new_session=True
    )
    try:
        async with asyncio.timeout(CLI_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        return failure("transport", f"`az account get-access-token` did not answer within {CLI_SECONDS:g} s")
    finally:
        await _end(process)
    if process.returncode != 0:
        said = " ".join(err.decode(errors="replace").split())
        if "az login" in said:
            return failure("auth", "the Azure CLI is not logged in: run `az login`")
        return failure("auth", f"`az account get-access-token` failed: {said[:300]}")
    return _token(out, now, "`az account get-access-token`")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Also what it started, when it is given up."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


# --- identities of the machine --------------------------------------------------------------------------------------


def _managed_identity(scope: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    given = {name: environ.get(name, "").strip() for name in _IDENTITY_VARIABLES}
    client = settings.managed_identity_client_id.strip()
    params = {"resource": _resource(scope), **({"client_id": client} if client else {})}
    if given["IDENTITY_ENDPOINT"] and given["IDENTITY_HEADER"]:
        headers = {"X-IDENTITY-HEADER": given["IDENTITY_HEADER"]}
        params["api-version"] = "2019-08-01"
        return _get(given["IDENTITY_ENDPOINT"], params, headers, "the managed identity endpoint")
    if given["MSI_ENDPOINT"]:
        params["api-version"] = "2017-09-01"
        return _get(given["MSI_ENDPOINT"], params, {"secret": given["MSI_SECRET"]}, "the managed identity endpoint")
    if given["AZURE_FEDERATED_TOKEN_FILE"]:
        return _workload_identity(scope, environ, settings)
    host = given["AZURE_POD_IDENTITY_AUTHORITY_HOST"].rstrip("/") or _IMDS
    params["api-version"] = "2018-02-01"
    url = f"{host}/metadata/identity/oauth2/token"
    return _get(url, params, {"Metadata": "true"}, "the instance metadata service")


_IDENTITY_VARIABLES = (
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "MSI_ENDPOINT",
    "MSI_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
)


def _workload_identity(scope: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    names = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
    tenant, client, file = _required(environ, settings, *names)

    async def exchange(now: float) -> Token | Failure:
        try:
            assertion = await asyncio.to_thread(Path(file).read_text)  # it is replaced from time to time
        except OSError as error:
            return failure("auth", f"AZURE_FEDERATED_TOKEN_FILE cannot be read: {error.strerror}")
        form = {"client_id": client, "scope": scope, "client_assertion_type": _ASSERTION}
        return await _login(environ, tenant, {**form, "client_assertion": assertion.strip()})(now)

    return exchange


def _login(environ: Mapping[str, str], tenant: str, form: Mapping[str, str]) -> Source:
    authority = environ.get("AZURE_AUTHORITY_HOST", "").strip().rstrip("/") or _LOGIN
    if "://" not in authority:
        authority = f"https://{authority}"
    url = f"{authority}/{quote(tenant, safe='')}/oauth2/v2.0/token"
    form = {"grant_type": "client_credentials", **form}
    proxy = proxy_for(httpx.URL(url), environ)
    clean = Redactor(form[name] for name in ("client_secret", "client_assertion") if name in form)
    return lambda now: _request(httpx.Request("POST", url, data=dict(form)), now, "the login endpoint", clean, proxy)


def _get(url: str, params: Mapping[str, str], headers: Mapping[str, str], who: str) -> Source:
    # No proxy: these addresses only mean something on this machine, and no proxy should see what comes back.
    clean = Redactor(headers.values())
    request = httpx.Request("GET", url, params=dict(params), headers=dict(headers))
    return lambda now: _request(request, now, who, clean, None)


async def _request(
    request: httpx.Request, now: float, who: str, clean: Redactor, proxy: Proxy | None
) -> Token | Failure:
    way = None
    if proxy is not None:
        headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else None
        way = httpx.Proxy(proxy.url, headers=headers)
    try:
        async with httpx.AsyncClient(trust_env=False, proxy=way, timeout=_PATIENCE) as client:
            response = await client.send(request)
    except httpx.HTTPError as error:
        return failure("transport", f"{who} cannot be reached: {type(error).__name__}")
    if response.status_code in _PASSING or response.status_code >= 500:
        return failure("server", f"{who} answered HTTP {response.status_code}", status=response.status_code)
    if response.status_code != 200:
        said = as_object(_parsed(response.content))
        why = as_text(said.get("error_description")) or as_text(said.get("error")) or as_text(said.get("message"))
        return failure("auth", f"{who} gives no token (HTTP {response.status_code}): {clean.error(why[:300])}")
    return _token(response.content, now, who)


_PASSING = frozenset({404, 410, 429})
_PATIENCE = httpx.Timeout(30, connect=3)


def _token(body: bytes, now: float, who: str) -> Token | Failure:
    said = as_object(_parsed(body))
    text = as_text(said.get("access_token")) or as_text(said.get("accessToken"))
    if not text or not text.isascii() or not text.isprintable():
        return failure("auth", f"{who} answered without a token")
    return Token(text, _expiry(said, now))


def _expiry(said: Object, now: float) -> float:
    at = _number(said.get("expires_on"))
    if at is not None:
        return at
    seconds = _number(said.get("expires_in"))
    if seconds is not None:
        return now + seconds
    try:  # older command lines only tell the local time
        return datetime.fromisoformat(as_text(said.get("expiresOn"))).timestamp()
    except ValueError:
        return now + _UNKNOWN_LIFE


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def _parsed(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return parsed


def _resource(scope: str) -> str:
    return scope.removesuffix("/.default")
