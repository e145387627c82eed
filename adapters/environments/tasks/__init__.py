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
    # What the config says of the grader is its name: a closure or a lambda has one that no config could use.
    others = {key: value for key, value in settings.options.items() if key != "grader"}
    options = read_options(TaskOptions, evolve(settings, options=others))
    return Tasks(settings, evolve(options, grader=GivenCode(function)))
