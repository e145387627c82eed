"""A run's log under another rule of the gate: the recorded settings, except those that are asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skillopt_es.audit.regate import regate
from skillopt_es.audit.regated import Regated
from skillopt_es.config import any_overrides
from skillopt_es.engine.algorithms import check_allowed
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json
from skillopt_es.gate.forks import GATE_KEYS
from skillopt_es.runs.lookup import Events


def regated(log: Events, folder: Path, overrides: Sequence[str]) -> Regated:
    """What the rule with these `--set` texts would have decided in a run; raises ConfigError for what is no rule."""
    allowed = [f"evaluation.{name}" for name in GATE_KEYS]
    hint = f"these can: {', '.join(allowed)}; `skillopt-es fork` can change more"
    changed = changed_settings(overrides, allowed.__contains__, "the gate's rule", hint)
    first = next(log.read(until=1), None)
    if first is None or not isinstance(first.event, RunStarted):
        raise NotInRun(f"{folder.name} stopped before it began: it has judged nothing")
    check_allowed("regate", first.event, folder.name)

    return regate(log.read(), lambda state: config_of_run(state.started, folder, {**state.overrides, **changed}))


def changed_settings(
    overrides: Sequence[str], is_allowed: Callable[[str], bool], what: str, hint: str
) -> dict[str, Json]:
    """The settings of `--set` texts, by key; raises ConfigError for one that cannot be changed afterwards."""
    changed = any_overrides(overrides)
    for key in changed:
        if not is_allowed(key):
            raise ConfigError(f"--set {key}: only {what} can be changed afterwards", hint=hint)
    return changed
