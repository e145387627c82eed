"""LiveMathematicianBench: multiple-choice questions on recent theorems, graded by the chosen label."""

from __future__ import annotations

from skillopt_es.adapters.environments.livemath.environment import LiveMath, LiveMathOptions
from skillopt_es.adapters.environments.options import read_options
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The LiveMathematicianBench environment as configured; raises ConfigError for options it does not know."""
    return LiveMath(settings, read_options(LiveMathOptions, settings))
