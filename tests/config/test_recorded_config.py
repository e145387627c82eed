"""The config that a log has recorded is whole: no default of today stands in for a key."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.make_golden import GOLDEN

from skillopt_es.config import load_config, recorded_config
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError
from skillopt_es.events import codec
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.upcasts import Payload, Upcast, upcast
from skillopt_es.events.values import Json
from skillopt_es.sessions.session import read_state


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
    asked: dict[str, Json] = {"evaluation.gate_repeats": 7}
    changed = recorded_config(recorded, Path(now.folder), asked)
    assert changed.evaluation.gate_repeats == 7
    assert without("evaluation.gate_repeats", dict(changed.resolved)) == without("evaluation.gate_repeats", recorded)


@pytest.mark.parametrize(
    "key", ["evaluation.gate_repeats", "search.first_gates", "env.workers", "model.temperature", "model.attempts"]
)
def test_a_recorded_config_that_lacks_a_key_is_refused_by_its_name(key: str) -> None:
    """Also where `null` means something."""
    now = load_config(None)
    with pytest.raises(ConfigError) as caught:
        recorded_config(without(key, dict(now.resolved)), Path(now.folder))
    assert caught.value.message == f"{key} is missing"


def test_a_key_that_a_later_release_adds_comes_from_an_upcast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The run of the older release is read with the value that decided then, whatever the default is by now."""
    started = read_state(Path(shutil.copytree(GOLDEN / "0.1.0" / "run", tmp_path / "run"))).started
    assert started is not None
    older = codec.encode(evolve(started, config=without("evaluation.gate_repeats", dict(started.config))))
    table: dict[tuple[str, int], Upcast] = {}

    @upcast("RunStarted", version=1, upcasts=table)
    def _with_repeats(payload: Payload) -> Payload:
        config: Any = payload["config"]
        return {**payload, "config": {**config, "evaluation": {**config["evaluation"], "gate_repeats": 7}}}

    kind, _, structure = codec._readers["RunStarted"]
    monkeypatch.setitem(codec._readers, "RunStarted", (kind, 2, structure))
    blobs = {digest: raw.decode() for digest, raw in older.blobs}
    read = codec.decode(older.type, older.version, older.data, blobs.__getitem__, upcasts=table)
    assert isinstance(read, RunStarted)
    assert config_of_run(read, Path()).evaluation.gate_repeats == 7


def test_a_log_with_another_config_is_refused(tmp_path: Path) -> None:
    """With too few keys or others: it is not read as if it said something else."""
    folder = Path(shutil.copytree(GOLDEN / "0.1.0" / "run", tmp_path / "run"))
    started = read_state(folder).started
    assert started is not None
    config = dict(started.config)
    section = config["train"]
    assert isinstance(section, dict)
    refusal = r"the recorded config cannot be read by this version: .*(missing|unknown)"
    for changed in (without("train.seed", config), {**config, "train": {**section, "luck": 1}}):
        with pytest.raises(LogDamaged, match=refusal):
            config_of_run(evolve(started, config=changed), folder)
