"""SearchQA: short factual questions over retrieved snippets, graded by exact match and token F1."""

from __future__ import annotations

from skillopt_es.adapters.environments.options import read_options
from skillopt_es.adapters.environments.searchqa.environment import SearchQA, SearchQAOptions
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The SearchQA environment as configured; raises ConfigError for options it does not know."""
    return SearchQA(settings, read_options(SearchQAOptions, settings))
