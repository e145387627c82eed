"""Your own tasks: items of input and expected answer, and a grader chosen by name, function or command."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.ports import Environment, EnvironmentSettings, GraderFunction

# Graders that are commands need the walls of Linux; whoever reads a check of an item elsewhere does not.


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The `tasks` environment as configured; raises ConfigError for options or a grader that cannot be used."""
    from skillopt_es.adapters.environments.options import read_options  # noqa: PLC0415
    from skillopt_es.adapters.environments.tasks.environment import Tasks  # noqa: PLC0415
    from skillopt_es.adapters.environments.tasks.options import TaskOptions  # noqa: PLC0415

    return Tasks(settings, read_options(TaskOptions, settings))


def open_graded_by(function: GraderFunction, settings: EnvironmentSettings) -> Environment:
    """The same, graded by a function that the caller handed over."""
    from skillopt_es.adapters.environments.options import read_options  # noqa: PLC0415
    from skillopt_es.adapters.environments.tasks.environment import Tasks  # noqa: PLC0415
    from skillopt_es.adapters.environments.tasks.options import GivenCode, TaskOptions  # noqa: PLC0415

    # What the config says of the grader is its name: a closure or a lambda has one that no config could use.
    others = {key: value for key, value in settings.options.items() if key != "grader"}
    options = read_options(TaskOptions, evolve(settings, options=others))
    return Tasks(settings, evolve(options, grader=GivenCode(function)))
