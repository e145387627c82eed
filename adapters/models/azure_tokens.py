"""
Azure's bearer tokens without its SDK: where they come from.

    azure_cli            `az account get-access-token`, as whoever ran `az login`
    managed_identity     the identity of the App Service, Azure ML job, AKS pod or virtual machine this runs on
    workload_identity    a federated token file (AKS), exchanged at the login endpoint
    service_principal    AZURE_CLIENT_ID with AZURE_CLIENT_SECRET, exchanged there too
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import httpx

from skillopt_es.adapters.models.credentials import Source, Token, read_token
from skillopt_es.adapters.models.endpoint import Proxy, proxy_for, refused
from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.reading import as_object, as_text, parsed_json
from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.ports import AuthMode, ModelSettings

_IMDS = "http://169.254.169.254"
_LOGIN = "https://login.microsoftonline.com"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def token_source(mode: AuthMode, scope: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    """Where tokens come from; raises ConfigError for what this machine lacks for it."""
    if mode == "azure_cli":
        return azure_cli(_resource(scope), environ, settings)
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
            raise refused(
                settings,
                "auth_mode",
                f" is {settings.auth_mode}, but the environment variable {name} is not set",
                hint=f"set {', '.join(names)}, or choose another auth_mode",
            )
    return [environ[name].strip() for name in names]


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
        said = as_object(parsed_json(response.content))
        why = as_text(said.get("error_description")) or as_text(said.get("error")) or as_text(said.get("message"))
        return failure("auth", f"{who} gives no token (HTTP {response.status_code}): {clean.error(why[:300])}")
    return read_token(response.content, now, who)


# The metadata service answers 404 and 410 while it is being updated, so these are no refusals.
_PASSING = frozenset({404, 410, 429})
# Outside Azure nobody answers at the metadata address: a short wait to connect finds that out soon.
_PATIENCE = httpx.Timeout(30, connect=3)


def _resource(scope: str) -> str:
    # The command line and the metadata service ask for a resource, the login endpoint for a scope.
    return scope.removesuffix("/.default")


CLI_SECONDS = 10.0  # as long as azure-identity waits for the same command


def azure_cli(resource: str, environ: Mapping[str, str], settings: ModelSettings) -> Source:
    """Tokens of whoever ran `az login`; raises ConfigError when there is no such command."""
    program = shutil.which("az", path=environ.get("PATH"))
    if program is None:
        raise refused(
            settings,
            "auth_mode",
            " is azure_cli, but there is no `az` command",
            hint="install the Azure CLI and run `az login`, or name a key's variable in model.api_key_env",
        )
    command = (program, "account", "get-access-token", "--output", "json", "--resource", resource)
    # The command needs the user's environment, but not our key.
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
    return read_token(out, now, "`az account get-access-token`")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Also what it started, when it is given up."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            # It was started as the leader of a session, so its group has its number.
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
