"""A key that is newer than a log has the value under which the log was made, which may not be today's default."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.config import load_config, recorded_config
from skillopt_es.events.values import Json


def without(key: str, recorded: dict[str, Json]) -> dict[str, Json]:
    """A recorded config of the time before a key."""
    section, _, name = key.partition(".")
    values = recorded[section]
    assert isinstance(values, dict)
    return {**recorded, section: {other: value for other, value in values.items() if other != name}}


def test_a_log_without_the_noise_of_families_ran_under_that_of_items() -> None:
    """Its verdicts must come out as they did; a run that starts now has families, and records it."""
    now = load_config(None)
    assert now.evaluation.gate_noise == "families"
    recorded = dict(now.resolved)
    assert recorded_config(recorded, Path()).evaluation.gate_noise == "families"
    older = without("evaluation.gate_noise", recorded)
    assert recorded_config(older, Path()).evaluation.gate_noise == "items"
    asked: dict[str, Json] = {"evaluation.gate_noise": "families"}
    assert recorded_config(older, Path(), asked).evaluation.gate_noise == "families"
