"""DocVQA: questions about images of document pages, graded by how close the text of the answer is (ANLS)."""

from __future__ import annotations

from skillopt_es.adapters.environments.docvqa.environment import DocVQA, DocVQAOptions
from skillopt_es.adapters.environments.options import read_options
from skillopt_es.ports import Environment, EnvironmentSettings


def open_environment(settings: EnvironmentSettings) -> Environment:
    """The DocVQA environment as configured; raises ConfigError for options it does not know."""
    return DocVQA(settings, read_options(DocVQAOptions, settings))
