"""Your own tasks: items of input and expected answer, and a grader chosen by name, function or command."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.adapters.environments.options import read_options
from skillopt_es.adapters.environments.tasks.environment import Tasks
from skillopt_es.adapters.environments.tasks.options import GivenCode, TaskOptions
from skillopt_es.ports import Environment, EnvironmentSettings, GraderFunction


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The `tasks` environment as configured; raises ConfigError for options or a grader that cannot be used."""
    return Tasks(settings, read_options(TaskOptions, settings))


def open_graded_by(function: GraderFunction, settings: EnvironmentSettings) -> Environment:
    """The same, graded by a function that the caller handed over."""
    return Tasks(settings, evolve(read_options(TaskOptions, settings), grader=GivenCode(function)))
