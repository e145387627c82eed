"""The config that a run goes by, as its log has it, and the items that its evaluations take by that config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillopt_es.config import EMPTY, RunConfig, recorded_config
from skillopt_es.config.places import config_folder
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.values import Json


def config_of_run(started: RunStarted, folder: Path, overrides: Mapping[str, Json] = EMPTY) -> RunConfig:
    """The config that a log's first event holds, with the settings that resuming the run has changed."""
    place = config_folder(started.folder, folder)
    try:
        config = recorded_config(dict(started.config), place, limit_chosen=started.limit_chosen)
    except ConfigError as error:
        raise LogDamaged(f"the recorded config cannot be read by this version: {error.message}") from error
    if overrides:  # a wrong one is the user's mistake, not the log's
        config = recorded_config(dict(started.config), place, overrides, limit_chosen=started.limit_chosen)
    return config


def validation_items(started: RunStarted, config: RunConfig) -> tuple[str, ...]:
    """The validation items that a skill's score is of."""
    return _first(started.splits.val, config.evaluation.sel_env_num)


def tested_items(started: RunStarted, config: RunConfig) -> tuple[str, ...]:
    """The test items, none when tests are off."""
    return _first(started.splits.test, config.evaluation.test_env_num) if config.evaluation.eval_test else ()


def _first(items: tuple[str, ...], count: int) -> tuple[str, ...]:
    return items[:count] if count else items
