"""Your own tasks: items of input and expected answer, and a grader chosen by name, function or command."""

from __future__ import annotations

from skillopt_es.adapters.environments.options import read_options
from skillopt_es.adapters.environments.tasks.environment import Tasks
from skillopt_es.adapters.environments.tasks.options import TaskOptions
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The `tasks` environment as configured; raises ConfigError for options or a grader that cannot be used."""
    return Tasks(settings, read_options(TaskOptions, settings))
