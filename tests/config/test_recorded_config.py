"""The config that a log has recorded is whole: no default of today stands in for a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.config import load_config, recorded_config
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json


def without(key: str, recorded: dict[str, Json]) -> dict[str, Json]:
    """A recorded config that lacks a key."""
    section, _, name = key.partition(".")
    values = recorded[section]
    assert isinstance(values, dict)
    return {**recorded, section: {other: value for other, value in values.items() if other != name}}


def test_a_recorded_config_is_read_as_it_was() -> None:
    """Settings that are laid over it change these alone."""
    now = load_config(None)
    recorded = dict(now.resolved)
    assert recorded_config(recorded, Path(now.folder)).resolved == recorded
    asked: dict[str, Json] = {"evaluation.gate_draws": 7}
    changed = recorded_config(recorded, Path(now.folder), asked)
    assert changed.evaluation.gate_draws == 7
    assert without("evaluation.gate_draws", dict(changed.resolved)) == without("evaluation.gate_draws", recorded)


@pytest.mark.parametrize(
    "key", ["evaluation.gate_noise", "search.first_gates", "env.workers", "model.temperature", "model.attempts"]
)
def test_a_recorded_config_that_lacks_a_key_is_refused_by_its_name(key: str) -> None:
    """Also where `null` means something."""
    now = load_config(None)
    with pytest.raises(ConfigError) as caught:
        recorded_config(without(key, dict(now.resolved)), Path(now.folder))
    assert caught.value.message == f"{key} is missing"
