"""The original's flat config and our sections: the same keys under two names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from skillopt_es.events.values import Json

_RENAMED = {
    "model.backend": "model_backend",
    "model.optimizer": "optimizer_model",
    "model.target": "target_model",
    "optimizer.learning_rate": "edit_budget",
    "optimizer.min_learning_rate": "min_edit_budget",
    "optimizer.meta_learning_rate": "meta_edit_budget",
    "env.name": "env",
}
_SAME = {
    "model": (
        "optimizer_backend",
        "target_backend",
        "reasoning_effort",
        "rewrite_reasoning_effort",
        "rewrite_max_completion_tokens",
        "codex_trace_to_optimizer",
    ),
    "train": ("num_epochs", "train_size", "batch_size", "accumulation", "seed"),
    "gradient": ("minibatch_size", "merge_batch_size", "analyst_workers", "failure_only"),
    "optimizer": (
        "lr_scheduler",
        "lr_control_mode",
        "skill_update_mode",
        "use_slow_update",
        "slow_update_samples",
        "slow_update_gate_with_selection",
        "longitudinal_pair_policy",
        "use_meta_skill",
        "use_skill_aware_reflection",
        "skill_aware_appendix_source",
        "skill_aware_consolidate_threshold",
    ),
    "evaluation": (
        "use_gate",
        "gate_metric",
        "gate_mixed_weight",
        "use_semantic_density",
        "semantic_density_weight",
        "leading_words",
        "sel_env_num",
        "test_env_num",
        "eval_test",
    ),
    "env": (
        "skill_init",
        "split_mode",
        "split_ratio",
        "split_seed",
        "split_dir",
        "data_path",
        "exec_timeout",
        "workers",
        "max_turns",
        "max_steps",
        "max_completion_tokens",
        "limit",
        "data_root",
        "mode",
    ),
}
_FLAT = {**_RENAMED, **{f"{section}.{name}": name for section, names in _SAME.items() for name in names}}
_NESTED = {flat: nested for nested, flat in _FLAT.items()}
_SECTIONS = ("model", "train", "gradient", "optimizer", "rollout", "evaluation", "env")
_OTHERS = "skillopt"
"""Where an imported config keeps keys that have no place in our sections."""
_SECRET = re.compile(r"(api_?key|token|secret|password|credential)$", re.IGNORECASE)
HIDDEN = "(a secret, not imported)"


def flat_config(config: Mapping[str, Json]) -> dict[str, Json]:
    """Our sections as the original's flat keys; a key that it does not have keeps its section before a dot."""
    flat: dict[str, Json] = {}
    for section, values in config.items():
        for name, value in cast("dict[str, Json]", values).items():
            key = name if section == _OTHERS else _FLAT.get(f"{section}.{name}", f"{section}.{name}")
            flat[key] = value
    return flat


def nested_config(flat: Mapping[str, Json]) -> dict[str, Json]:
    """The original's flat keys as our sections, without the keys to anything."""
    sections: dict[str, dict[str, Json]] = {}
    for key, value in flat.items():
        section, _, name = _NESTED.get(key, key).partition(".")
        if section not in _SECTIONS or not name:
            section, name = _OTHERS, key
        hidden = _SECRET.search(key) is not None and isinstance(value, str) and value != ""
        sections.setdefault(section, {})[name] = HIDDEN if hidden else value
    return cast("dict[str, Json]", sections)
