"""What a fork may change, and what measured skills count under its rule: pure functions of what both runs share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from attrs import AttrsInstance, asdict

from skillopt_es.config import PLANNED_BY, RESUMABLE_MODEL_KEYS, RunConfig, limits_answers
from skillopt_es.config.sections import EnvConfig, EvaluationConfig, RoleConfig
from skillopt_es.engine.algorithm import Commands
from skillopt_es.events.values import SkillTree
from skillopt_es.gate.verdicts import too_little
from skillopt_es.projections.state import AnyState, RunState

S = TypeVar("S")

GATE_KEYS = (
    "use_gate",
    "gate_metric",
    "gate_mixed_weight",
    "use_semantic_density",
    "semantic_density_weight",
    "leading_words",
    "gate_rule",
    "gate_repeats",
    "gate_standard_errors",
    "judge_noise",
    "no_regression",
    "min_items",
    "max_size",
    "no_untrusted_only",
)
"""The keys of `evaluation` that only say how measured scores are judged."""

_PATIENCE = (
    "workers",
    "analyst_workers",
    "exec_timeout",
    "max_completion_tokens",
    "rewrite_max_completion_tokens",
)


def contradiction(state: RunState[S], old: RunConfig, new: RunConfig, commands: Commands[S]) -> str:
    """Why what a fork wants to change does not fit what stands before it; empty when it does."""
    if _deciding(old) == _deciding(new) and not _limits_otherwise(old, new):
        return ""
    begun = commands.under_way(state)
    if begun:
        return f"{begun} under way, and the same settings must decide both halves of it"
    items = len(state.started.splits.val)
    return (
        _against_the_start(old, new, items)
        or (_against_what_was_measured(old, new) if state.measured else "")
        or commands.contradicts(state, old, new)
    )


def _against_the_start(old: RunConfig, new: RunConfig, validation_items: int) -> str:
    for name in PLANNED_BY:
        if getattr(old.train, name) != getattr(new.train, name):
            return f"train.{name} is {getattr(old.train, name)}, and all steps were planned by it when the run started"
    why = too_little(new, validation_items)
    if why is not None:
        return why.message
    if _tasks(old.env) != _tasks(new.env):
        return "the tasks, the first skill and how tasks are tried (env) are those that the run started with"
    return ""


def _against_what_was_measured(old: RunConfig, new: RunConfig) -> str:
    if _answering(old.target_model) != _answering(new.target_model):
        return "the skills measured so far were measured with another target model, and cannot be compared with it"
    if _answering(old.judge_model) != _answering(new.judge_model):
        return "the skills measured so far were graded by another judge, and cannot be compared with it"
    if _limits_otherwise(old, new):
        most = old.env.max_completion_tokens
        return f"env.max_completion_tokens is {most}, and the skills measured so far were measured with it"
    if old.evaluation.sel_env_num != new.evaluation.sel_env_num:
        return "evaluation.sel_env_num: the skills measured so far were measured on other validation items"
    return ""


def _limits_otherwise(old: RunConfig, new: RunConfig) -> bool:
    """
    Whether an answer counts otherwise for its limit: where it is cut at one that was chosen, it is graded.

    At a limit that nobody chose it is not measured: then a higher one changes no result.
    """
    was, now = old.env.max_completion_tokens, new.env.max_completion_tokens
    return now < was or (now != was and limits_answers(old))


def _deciding(config: RunConfig) -> tuple[object, ...]:
    """All of a config that decides or is asked; the rest may change at any moment."""
    roles = tuple(_answering(config.role(role)) for role in config.roles)
    stages = (config.train, _without(config.gradient, _PATIENCE), _without(config.optimizer, _PATIENCE))
    return (*roles, *stages, config.own_settings, config.evaluation, config.skillopt, _tasks(config.env))


def _answering(role: RoleConfig) -> Mapping[str, object]:
    """The part of a role's settings that its answers depend on."""
    return _without(role, RESUMABLE_MODEL_KEYS)


def _tasks(env: EnvConfig) -> Mapping[str, object]:
    return _without(env, _PATIENCE)


def _without(section: AttrsInstance, names: Collection[str]) -> Mapping[str, object]:
    return {name: value for name, value in asdict(section, recurse=False).items() if name not in names}


def gate_values(
    state: AnyState, texts: Mapping[str, SkillTree], old: EvaluationConfig, config: RunConfig
) -> dict[str, float]:
    """What each measured skill counts under a run's rule, by hash; empty when the rule is the old one."""
    if all(getattr(old, name) == getattr(config.evaluation, name) for name in GATE_KEYS):
        return {}
    return {skill: config.gate_value(found.stated, texts[skill]) for skill, found in state.measured.items()}
