"""
Azure OpenAI: `model.backend: azure_openai`. The wire formats of OpenAI under Azure's addresses and its ways to sign in.

Without an `api_version` the v1 endpoint is used, with a date the classic one, where the model is a deployment's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import httpx
from attrs import evolve, frozen

from skillopt_es.adapters.models.azure_tokens import token_source
from skillopt_es.adapters.models.credentials import Credential, TokenCache
from skillopt_es.adapters.models.endpoint import open_endpoint, refused, setting
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.families import refuse_others
from skillopt_es.adapters.models.hints import no_such_model, what_to_check
from skillopt_es.adapters.models.http_model import REAL, HttpModel, Outside, identity_of
from skillopt_es.adapters.models.openai import uses_responses, wire_for
from skillopt_es.ports import ChatModel, ModelSettings, provider

SCOPE = "https://cognitiveservices.azure.com/.default"
# The leading dots matter: a token must not go to notopenai.azure.com.
_HOSTS = (
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
    ".openai.azure.us",
    ".openai.azure.cn",
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?")
_SIGN_IN = {
    "azure_cli": "run `az login` with an account of this tenant",
    "managed_identity": "check model.managed_identity_client_id and the identity of this machine",
    "workload_identity": "check AZURE_CLIENT_ID, AZURE_TENANT_ID and the federated token",
    "service_principal": "check AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
}
_V1 = ("", "v1", "preview", "latest")
_TAKEN = ("protocol", "api_version", "auth_mode", "ad_scope", "managed_identity_client_id", "allow_hosts")


@provider(takes=_TAKEN, system="azure.ai.openai")
def open_model(settings: ModelSettings, environ: Mapping[str, str], outside: Outside = REAL) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for an unusable address, version or way to sign in."""
    refuse_others(settings, open_model.takes)
    if not settings.base_url.strip():
        raise refused(
            settings,
            "base_url",
            " is not set: there is no endpoint",
            hint="name it, such as https://NAME.openai.azure.com, or `export AZURE_OPENAI_ENDPOINT=…`",
        )
    place = _place(settings)
    mode = settings.auth_mode
    if mode == "auto":
        mode = "api_key" if settings.api_key_env else "azure_cli"
    credential: Credential | None = None
    if mode == "api_key":
        _require_key(settings)
    else:
        _require_trusted_host(settings)
        scope = settings.ad_scope or SCOPE
        source = token_source(mode, scope, environ, settings)
        credential = TokenCache(source, wall_clock=outside.wall_clock)
        # Who signs in with a token sends no key beside it.
        settings = evolve(settings, api_key_env="")
    wire, _, api = wire_for(settings)
    at = evolve(settings, base_url=place.base_url)
    endpoint = open_endpoint(
        at, environ, place.path, key_header="api-key", query=place.query, example="https://NAME.openai.azure.com"
    )
    identity = identity_of(at, f"azure-{api}", settings.base_url, api_version=settings.api_version)
    shown = evolve(settings, auth_mode=mode)
    return HttpModel(
        shown,
        identity=identity,
        wire=wire,
        endpoint=endpoint,
        credential=credential,
        own_hint=lambda failed, hint: _hint(failed, hint, shown),
        outside=outside,
    )


def _hint(failed: Failure, hint: str, settings: ModelSettings) -> str:
    """What may be wrong on Azure alone: the sign-in, and the version of the interface."""
    if failed.closed:
        return hint
    if failed.kind == "auth" and settings.auth_mode in _SIGN_IN:
        return f"{_SIGN_IN[settings.auth_mode]}; it needs the role Cognitive Services OpenAI User on the resource"
    if failed.kind != "config":
        return hint
    version = f"{setting(settings.role, 'api_version')} (now {settings.api_version!r})"
    if "api version" in failed.message.lower().replace("-", " "):
        return f"change {version}"
    return what_to_check(settings, f"{version}, ") if no_such_model(failed) else hint


@frozen
class _Place:
    base_url: str
    path: str
    query: str


def _place(settings: ModelSettings) -> _Place:
    """Where this model is: by a date in the classic plane, else in v1."""
    version = settings.api_version.strip()
    kind = "/responses" if uses_responses(settings) else "/chat/completions"
    resource = settings.base_url.strip().rstrip("/")
    for ending in ("/openai/v1", "/openai"):
        resource = resource.removesuffix(ending)
    if "/openai/" in resource:
        raise refused(
            settings,
            "base_url",
            f" is {settings.base_url}, but must end before /openai",
            hint="the deployment's name goes into model." + settings.role,
        )
    if version in _V1:
        query = f"api-version={version}" if version in {"preview", "latest"} else ""
        return _Place(resource, f"/openai/v1{kind}", query)
    if not _DATE.fullmatch(version):
        raise refused(
            settings,
            "api_version",
            f" is {version!r}, but a version is a date like 2024-10-21 or 2025-04-01-preview",
            hint="leave it out to use the v1 endpoint, which has none",
        )
    if kind == "/responses":
        return _Place(resource, "/openai/responses", f"api-version={version}")
    deployment = quote(settings.model, safe="")
    return _Place(resource, f"/openai/deployments/{deployment}{kind}", f"api-version={version}")


def _require_key(settings: ModelSettings) -> None:
    if not settings.api_key_env:
        raise refused(
            settings,
            "auth_mode",
            " is api_key, but no key is named",
            hint=f"name its environment variable in {setting(settings.role, 'api_key_env')}",
        )


def _require_trusted_host(settings: ModelSettings) -> None:
    """A token opens more than one endpoint, so it goes only to Azure, over TLS; or where the user says so."""
    url = urlsplit(settings.base_url.strip())
    try:
        # The host as the client reads it that will send the token: readers disagree about odd addresses.
        host = httpx.URL(settings.base_url.strip()).host.lower()
    except httpx.InvalidURL:
        host = ""
    allowed = {name.strip().lower() for name in settings.allow_hosts.split(",") if name.strip()}
    listed = host in allowed
    if not host or not (listed or host.endswith(_HOSTS)):
        raise refused(
            settings,
            "base_url",
            f" is {settings.base_url}, which is no Azure host, so it is not sent a token",
            hint="an endpoint that takes a key, not a token, needs model.azure_openai_auth_mode: openai_compatible; "
            f"else correct the address, or name its host in {setting(settings.role, 'allow_hosts')}",
        )
    if url.scheme != "https" and not (listed and (host in {"localhost", "::1"} or host.startswith("127."))):
        raise refused(
            settings, "base_url", f" is {settings.base_url}, but a token is only sent over https", hint="use https"
        )
