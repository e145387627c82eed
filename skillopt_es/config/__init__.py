"""
RunConfig: everything a run was told, read from YAML into frozen values; every error names its key.

`resolved` is the plain mapping that RunStarted records and from which the same RunConfig is read back.
"""

from skillopt_es.config.layers import (
    EMPTY,
    demo_config,
    load_config,
    recorded_config,
    resume_overrides,
    with_overrides,
)
from skillopt_es.config.sections import EnvConfig, EvaluationConfig, OptimizerConfig, RoleConfig, RunConfig, TrainConfig

__all__ = [
    "EMPTY",
    "EnvConfig",
    "EvaluationConfig",
    "OptimizerConfig",
    "RoleConfig",
    "RunConfig",
    "TrainConfig",
    "demo_config",
    "load_config",
    "recorded_config",
    "resume_overrides",
    "with_overrides",
]
