"""Keys of `model` that few backends read: their defaults are recorded where a role has such a backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skillopt_es.config import RunConfig, load_config, recorded_config
from skillopt_es.config.backends import CODING_AGENTS, OWN_AGENTS
from skillopt_es.config.own_keys import own_keys
from skillopt_es.config.sections import SHARED_ROLE_KEYS
from skillopt_es.errors import ConfigError
from skillopt_es.ports import MODELS, Provider
from skillopt_es.version import installed_for

AGENTS = {*CODING_AGENTS, *OWN_AGENTS}
AZURE = {"api_version", "auth_mode", "ad_scope", "managed_identity_client_id", "allow_hosts", "protocol"}


def loaded(folder: Path, **model: Any) -> RunConfig:
    """A config with these keys of `model`."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({"model": {"optimizer": "o", "target": "t", **model}}))
    return load_config(file)


def recorded(config: RunConfig) -> set[str]:
    """The own keys of backends that a log of this run would hold."""
    model = config.resolved["model"]
    assert isinstance(model, dict)
    return {*model} & {*own_keys()}


def test_a_providers_keys_are_those_that_it_takes() -> None:
    """The file says of each key which backends read it, and so does each provider."""
    takes = {name: point.load() for name, point in installed_for(MODELS).items()}
    for key, own in own_keys().items():
        assert key in SHARED_ROLE_KEYS
        if not {*own.backends} & AGENTS:
            takers = {name for name, it in takes.items() if isinstance(it, Provider) and key in it.takes}
            assert {*own.backends} == takers, key
        else:
            assert {*own.backends} <= AGENTS


def test_a_log_has_the_keys_of_its_backends_alone(tmp_path: Path) -> None:
    """Also for one role, and behind a gateway; all others are read as their defaults."""
    assert recorded(loaded(tmp_path, backend="simulated")) == set()
    azure = loaded(tmp_path, backend="simulated", target_backend="azure", base_url="https://x.openai.azure.com")
    assert recorded(azure) == AZURE
    assert azure.target_model.auth_mode == "auto"
    assert not azure.target_model.agent_network
    behind = loaded(tmp_path, backend="simulated", target_backend="http", target_url="http://h", gateway="openai")
    assert {"gateway", "protocol", "agent_trace"} <= recorded(behind)
    assert "api_version" not in recorded(behind)
    again = recorded_config(dict(azure.resolved), tmp_path)
    assert again.target_model == azure.target_model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"agent_access": "full"}, "model.agent_access is 'full', but must be left out: it is for the backend codex"),
        ({"backend": "codex", "url": "http://h"}, "it is for the backend http, and the backends here are"),
        ({"agent_acess": "full"}, "unknown key model.agent_acess"),
    ],
)
def test_a_key_for_an_agent_that_no_role_has_is_refused(model: dict[str, Any], said: str, tmp_path: Path) -> None:
    """With the backends that it is for."""
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, **model)
    assert said in caught.value.message


def test_a_stand_in_takes_the_keys_of_any_agent(tmp_path: Path) -> None:
    """It stands for what the config is written for."""
    assert loaded(tmp_path, backend="simulated", agent_access="full").target_model.agent_access == "full"
