"""A run's config and what was fixed when it started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.config import EMPTY, RunConfig, recorded_config
from skillopt_es.config.places import config_folder
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.values import Json, Measured, Role, Score, SkillTree
from skillopt_es.skill.density import semantic_density


@frozen(kw_only=True)
class RunData:
    """A run's config and what was fixed when it started."""

    config: RunConfig
    started: RunStarted

    @property
    def selection_items(self) -> tuple[str, ...]:
        """The validation items that every gate uses."""
        return _first(self.started.splits.val, self.config.evaluation.sel_env_num)

    @property
    def test_items(self) -> tuple[str, ...]:
        """The test items, none when tests are off."""
        if not self.config.evaluation.eval_test:
            return ()
        return _first(self.started.splits.test, self.config.evaluation.test_env_num)

    @property
    def workers(self) -> Mapping[Role, int]:
        """How many calls of each role may be in flight."""
        workers = self.config.env.workers
        return {"target": workers, "optimizer": self.config.gradient.analyst_workers, "judge": workers}

    def passes(self, outcome: Measured) -> bool:
        """Whether a task counts as solved: the whole of it, or any part where partial ones pass."""
        # Any part of the task, but not what rounding leaves of nothing.
        return outcome.hard >= 1e-9 if self.config.follows("partial_passes") else outcome.passed

    def gate_value(self, score: Score, skill: SkillTree) -> float:
        """The number that the gate compares: the chosen score, and the text's own bonus where that is on."""
        return self.worth(score.hard, score.soft) + self.bonus(skill)

    def worth(self, hard: float, soft: float) -> float:
        """What a hard and a soft score count together."""
        evaluation = self.config.evaluation
        if evaluation.gate_metric == "hard":
            return hard
        if evaluation.gate_metric == "soft":
            return soft
        weight = evaluation.gate_mixed_weight
        return (1 - weight) * hard + weight * soft

    def bonus(self, skill: SkillTree) -> float:
        """What a text itself adds to its value."""
        evaluation = self.config.evaluation
        if not evaluation.use_semantic_density:
            return 0.0
        return evaluation.semantic_density_weight * semantic_density(skill.text, evaluation.words)


def _first(items: tuple[str, ...], count: int) -> tuple[str, ...]:
    return items[:count] if count else items


def recorded_run(started: RunStarted, folder: Path, overrides: Mapping[str, Json] = EMPTY) -> RunData:
    """The run that a log's first event describes, with the settings that resuming it has changed."""
    place = config_folder(started.folder, folder)
    try:
        config = recorded_config(dict(started.config), place, limit_chosen=started.limit_chosen)
    except ConfigError as error:
        raise LogDamaged(f"the recorded config cannot be read by this version: {error.message}") from error
    if overrides:  # a wrong one is the user's mistake, not the log's
        config = recorded_config(dict(started.config), place, overrides, limit_chosen=started.limit_chosen)
    return RunData(config=config, started=started)
