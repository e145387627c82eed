"""What is said while a run is watched."""

from __future__ import annotations

from typing import get_args

from skillopt_es.cli.progress import STAGES
from skillopt_es.training.tasks import Job


def test_every_question_to_the_optimizer_has_a_name() -> None:
    """A stage without one could not be shown."""
    assert {kind.__name__ for kind in get_args(Job)} == set(STAGES)
