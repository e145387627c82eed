"""The environment variables of an agent: a short list of harmless ones, its own, and those that the config names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.adapters.harnesses.agent import Agent
from skillopt_es.adapters.models.endpoint import refused, setting
from skillopt_es.errors import ConfigError
from skillopt_es.ports import ModelSettings

_HARMLESS = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL")
_NETWORK = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
_SIGN_IN = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What is shorter would be cut out of ordinary words, too.
_SHORTEST_SECRET = 8


@frozen
class ChildEnvironment:
    """What every run of an agent gets; `private` if it signs in with a key of ours and so needs no home of the user."""

    variables: Mapping[str, str]
    private: bool
    secrets: tuple[str, ...]


def child_environment(agent: Agent, settings: ModelSettings, environ: Mapping[str, str]) -> ChildEnvironment:
    """The variables to pass on; raises ConfigError when a named one is not set."""
    key = _key(settings, environ)
    # Whoever is signed in with a key or asks an endpoint of his own needs nothing that is kept in his home.
    private = bool(key or settings.base_url)
    names = () if private else (*_SIGN_IN, *agent.state_variables)
    variables = user_variables(environ, names)
    more = named_variables(settings, environ)
    variables.update(more)
    if key:
        own, endpoint = agent.key_variables
        variables[endpoint if settings.base_url else own] = key
    return ChildEnvironment(variables, private, secrets_in((key, *more.values()), environ))


def secrets_in(given: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """What must not reach the log: these values, and a proxy's address with a login (user:password@) in it."""
    proxies = [environ[name] for name in _PROXIES if "@" in environ.get(name, "")]
    return tuple(value for value in (*given, *proxies) if len(value) >= _SHORTEST_SECRET)


def _key(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    name = settings.api_key_env
    if not name:
        return ""
    key = environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"the environment variable {name} is not set, but {setting(settings.role, 'api_key_env')} names it",
            hint=f"export {name}=…, or set {setting(settings.role, 'api_key_env')} to an empty text to use the sign-in "
            f"of the user",
        )
    return key


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
