"""Our executors keep to what every executor has to; that over Ray where Ray is installed."""

from __future__ import annotations

import pytest

from skillopt_es.adapters.executors.local import open_executor
from skillopt_es.testing.executors import EXECUTOR_CHECKS, ExecutorCase


@pytest.mark.parametrize("name", EXECUTOR_CHECKS)
def test_the_local_executor(name: str) -> None:
    """In this process."""
    EXECUTOR_CHECKS[name](ExecutorCase(open=open_executor))
