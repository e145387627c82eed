"""The environment variables of an agent: a short list of harmless ones, its own, and those that the config names."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skillopt_es.adapters.harnesses.agent import Agent
from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.user_environment import named_variables, secrets_in, user_variables
from skillopt_es.errors import ConfigError
from skillopt_es.ports import ModelSettings

_SIGN_IN = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


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
