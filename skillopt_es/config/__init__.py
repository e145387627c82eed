"""
RunConfig: everything a run was told, read from YAML into frozen values; every error names its key.

`resolved` is the plain mapping that RunStarted records and from which the same RunConfig is read back.
"""

from skillopt_es.config.layers import (
    EMPTY,
    PLANNED_BY,
    RESUMABLE_MODEL_KEYS,
    any_overrides,
    config_of,
    demo_config,
    limits_answers,
    load_config,
    recorded_config,
    resume_overrides,
    with_overrides,
)
from skillopt_es.config.reader import TRAINING
from skillopt_es.config.sections import EnvConfig, EvaluationConfig, OptimizerConfig, RoleConfig, RunConfig, TrainConfig

__all__ = [
    "EMPTY",
    "PLANNED_BY",
    "RESUMABLE_MODEL_KEYS",
    "TRAINING",
    "EnvConfig",
    "EvaluationConfig",
    "OptimizerConfig",
    "RoleConfig",
    "RunConfig",
    "TrainConfig",
    "any_overrides",
    "config_of",
    "demo_config",
    "limits_answers",
    "load_config",
    "recorded_config",
    "resume_overrides",
    "with_overrides",
]
