"""The proxy that the environment asks for, read the way curl and httpx read it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

import httpx
from attrs import field, frozen

from skillopt_es.errors import ConfigError


@frozen
class Proxy:
    """A proxy's address and, apart from it, what authorizes us there."""

    url: httpx.URL
    authorization: str = field(default="", repr=False)


def proxy_for(url: httpx.URL, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy on the way to this URL, if there is one; never for this machine, which no proxy could reach."""
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
    names = [name.strip().lower().lstrip("*").lstrip(".") for name in no_proxy.split(",") if name.strip()]
    return any(not name or host == name or host.endswith(f".{name}") for name in names)
