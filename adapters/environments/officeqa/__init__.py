"""OfficeQA: questions over U.S. Treasury bulletins, answered with tools that read the documents or by searching."""

from __future__ import annotations

from skillopt_es.adapters.environments.officeqa.environment import OfficeQA
from skillopt_es.adapters.environments.officeqa.options import OfficeOptions
from skillopt_es.adapters.environments.options import read_options
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The OfficeQA environment as configured; raises ConfigError for options it does not know."""
    return OfficeQA(settings, read_options(OfficeOptions, settings))
