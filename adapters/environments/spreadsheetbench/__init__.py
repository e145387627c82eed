"""SpreadsheetBench: the target writes Python that changes a workbook; graded by the cells that come out."""

from __future__ import annotations

from skillopt_es.adapters.environments.options import read_options
from skillopt_es.adapters.environments.spreadsheetbench.environment import SpreadsheetBench, SpreadsheetOptions
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The SpreadsheetBench environment as configured; raises ConfigError for options it does not know."""
    return SpreadsheetBench(settings, read_options(SpreadsheetOptions, settings))
