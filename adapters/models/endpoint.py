"""Where the calls of one role go: the URL, the headers with the key, the proxy; checked once, at opening."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

import httpx
from attrs import field, frozen

from skillopt_es.adapters.models.redaction import Redactor
from skillopt_es.errors import ConfigError, SettingRefused
from skillopt_es.events.values import Role
from skillopt_es.ports import ModelSettings

_FIXED_HEADERS = {
    "Accept": "application/json",
    # Neither br nor zstd: `Body` unpacks only these two.
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": "application/json",
    "User-Agent": "skillopt-es",
}
_NONE: Mapping[str, str] = {}
_SECRET_HEADERS = ("authorization", "api-key", "x-api-key")


@frozen(kw_only=True)
class Endpoint:
    """A checked endpoint; nothing that may hold a secret is part of its repr."""

    url: httpx.URL
    host: str
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    proxy: Proxy | None
    redactor: Redactor = field(repr=False)


def open_endpoint(
    settings: ModelSettings,
    environ: Mapping[str, str],
    path: str,
    *,
    key_header: str = "Authorization",
    headers_of_api: Mapping[str, str] = _NONE,
    query: str = "",
    example: str = "http://host:8000/v1",
) -> Endpoint:
    """The endpoint for `base_url` + path; raises ConfigError naming the setting or environment variable at fault."""
    url = _checked_url(settings, path, example)
    if query:
        url = url.copy_with(query=query.encode())
    key = _key(settings, environ)
    headers = httpx.Headers({**_FIXED_HEADERS, **headers_of_api})
    if key:
        headers[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
    if settings.stream:
        headers["Accept"] = "text/event-stream"
    # The user's own come last and win; a key among them is redacted like ours.
    headers.update(_extra_headers(settings))
    proxy = proxy_for(url, environ)
    if proxy and proxy.authorization and url.scheme == "http":  # no tunnel: the proxy reads the request itself
        headers["Proxy-Authorization"] = proxy.authorization
    secrets = [key, proxy.authorization if proxy else "", *(headers.get(name, "") for name in _SECRET_HEADERS)]
    # An error may quote a key without its scheme.
    bare = tuple(secret.removeprefix("Bearer ").removeprefix("Basic ") for secret in secrets)
    return Endpoint(
        url=url,
        host=url.netloc.decode(),
        headers=dict(headers),
        secrets=bare,
        proxy=proxy,
        redactor=Redactor(bare),
    )


def setting(role: Role, name: str) -> str:
    """How a config spells a setting of this role, and of both roles."""
    return f"model.{role}_{name} (or model.{name})"


def refused(settings: ModelSettings, name: str, said: str, *, hint: str = "") -> SettingRefused:
    """That a setting of this role is not usable; `said` goes on after its name."""
    return SettingRefused(name, said, spelled=setting(settings.role, name), hint=hint)


def _checked_url(settings: ModelSettings, path: str, example: str) -> httpx.URL:
    try:
        url = httpx.URL(settings.base_url.strip())
    except httpx.InvalidURL as error:
        raise refused(settings, "base_url", f" is not a URL: {error}") from None
    if url.userinfo:
        raise refused(
            settings, "base_url", " holds credentials", hint="name an environment variable in model.api_key_env instead"
        )
    if url.query or url.fragment:  # either may hold a key, so neither is shown
        raise refused(
            settings,
            "base_url",
            f" must end before {path}, ? and #; it is not shown, as what follows may be a secret",
            hint="name an environment variable in model.api_key_env for a key",
        )
    if url.scheme not in {"http", "https"} or not url.host or not 0 < (url.port or 1) < 65536:
        raise refused(settings, "base_url", f" must be like {example}, not {settings.base_url!r}")
    if url.path.rstrip("/").endswith(path):
        raise refused(settings, "base_url", f" must end before {path}: {settings.base_url!r}")
    return url.copy_with(path=url.path.rstrip("/") + path)


def _key(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    name = settings.api_key_env
    if not name:
        return ""
    key = environ.get(name, "").strip()
    where = setting(settings.role, "api_key_env")
    if not key:
        raise ConfigError(
            f"the environment variable {name} is not set, but {where} names it",
            hint=f"export {name}=…, or write {name}=… into a file .env beside the config; "
            "if the endpoint needs no key, set model.api_key_env to an empty text",
        )
    if not _fits_header(key):
        raise ConfigError(
            f"the environment variable {name} holds something that cannot be a key (control or non-ASCII characters)"
        )
    return key


def _extra_headers(settings: ModelSettings) -> Mapping[str, str]:
    for name, value in settings.extra_headers.items():
        if not name or not _fits_header(name) or " " in name or ":" in name or not _fits_header(value):
            raise refused(settings, "extra_headers", f": {name!r} is not a header that can be sent")
    return settings.extra_headers


def _fits_header(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)


@frozen
class Proxy:
    """A proxy's address and, apart from it, what authorizes us there."""

    url: httpx.URL
    authorization: str = field(default="", repr=False)


def proxy_for(url: httpx.URL, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy on the way to this URL, if there is one; never for this machine, which no proxy could reach."""
    # Capital letters sort first, so the lower-case spelling wins where both are set.
    given = {name.lower(): value for name, value in sorted(environ.items()) if name.lower().endswith("_proxy")}
    text = given.get(f"{url.scheme}_proxy") or given.get("all_proxy")
    local = url.host == "localhost" or url.host.startswith("127.") or url.host == "::1"
    if not text or local or _is_exempt(url.host, given.get("no_proxy", "")):
        return None
    try:
        proxy = httpx.URL(text if "://" in text else f"http://{text}")
    except httpx.InvalidURL:
        raise ConfigError(f"the environment variable {url.scheme}_proxy is not a URL") from None
    if proxy.scheme not in {"http", "https"} or not proxy.host:
        hint = f"use an http proxy, or add {url.host} to no_proxy"
        raise ConfigError(f"the environment variable {url.scheme}_proxy does not name an http proxy", hint=hint)
    login = base64.b64encode(unquote_to_bytes(proxy.userinfo)).decode()
    return Proxy(proxy.copy_with(userinfo=b""), f"Basic {login}" if login else "")


def _is_exempt(host: str, no_proxy: str) -> bool:
    # `host`, `.host` and `*.host` mean the same here; what is left of a bare `*` is empty and stands for all.
    names = [name.strip().lower().lstrip("*").lstrip(".") for name in no_proxy.split(",") if name.strip()]
    return any(not name or host == name or host.endswith(f".{name}") for name in names)
