"""ALFWorld: household tasks as text games, played in TextWorld or in a built-in household."""

from __future__ import annotations

from skillopt_es.adapters.environments.alfworld.environment import Alfworld, AlfworldOptions
from skillopt_es.adapters.environments.options import read_options
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The ALFWorld environment as configured; raises ConfigError for options it does not know."""
    return Alfworld(settings, read_options(AlfworldOptions, settings))
