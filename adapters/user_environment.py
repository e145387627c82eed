"""The environment variables of the user that a program may get: harmless ones, and those that the config names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from skillopt_es.adapters.models.endpoint import refused, setting
from skillopt_es.errors import ConfigError
from skillopt_es.ports import ModelSettings

_HARMLESS = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL")
_NETWORK = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What is shorter would be cut out of ordinary words, too.
_SHORTEST_SECRET = 8


def secrets_in(given: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """What must not reach the log: these values, and a proxy's address with a login (user:password@) in it."""
    proxies = [environ[name] for name in _PROXIES if "@" in environ.get(name, "")]
    return tuple(value for value in (*given, *proxies) if len(value) >= _SHORTEST_SECRET)


def user_variables(environ: Mapping[str, str], more: Sequence[str] = ("HOME",)) -> dict[str, str]:
    """The harmless variables of the user's own environment, and some `more` by their names: none holds a key."""
    names = (*_HARMLESS, *_NETWORK, *_PROXIES, *more)
    return {name: environ[name] for name in names if name in environ}


def named_variables(settings: ModelSettings, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Those that the config names; raises ConfigError for one that is not set."""
    assert settings.agent is not None
    where = setting(settings.role, "agent_env")
    for name in settings.agent.env:
        if not _VARIABLE.fullmatch(name):
            raise refused(settings, "agent_env", " holds something that is not the name of an environment variable")
        if name not in environ:
            raise ConfigError(
                f"the environment variable {name} is not set, but {where} names it", hint=f"export {name}=…"
            )
    return {name: environ[name] for name in settings.agent.env}
