"""What another trainer counted: by stage and step, whole only where the run's own counts cover its steps'."""

from __future__ import annotations

from skillopt_es.events.values import ImportedUsage
from skillopt_es.projections.usage import together, usage_there


def counted(calls: int | None, tokens: int | None = None) -> ImportedUsage:
    """Counts of a stage."""
    return ImportedUsage(calls=calls, input_tokens=tokens, output_tokens=tokens)


def test_counts_are_summed_and_what_one_does_not_say_is_unknown() -> None:
    """And so is the sum of none."""
    assert together([counted(1, 10), counted(2, 5)]) == counted(3, 15)
    assert together([counted(1, 10), counted(2, None)]) == counted(3, None)
    assert together([]) == counted(None)


def test_a_run_of_our_own_has_none() -> None:
    """Its calls are in its journal."""
    assert usage_there([]) is None
