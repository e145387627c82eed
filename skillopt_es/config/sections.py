"""The sections of a config as frozen values: which keys there are, their types and their bounds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs
from attrs import field, frozen

from skillopt_es.config.places import is_packaged, place_in_words
from skillopt_es.config.table import other_words
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import (
    ConfigFile,
    GateMetric,
    GateRule,
    Json,
    Measured,
    Role,
    Score,
    SkillTree,
    Trust,
)
from skillopt_es.ports import RoleSettings
from skillopt_es.skill.density import LEADING_WORDS, semantic_density
from skillopt_es.skill.schedule import Scheduler

Tree = dict[str, Json]


def _limits(*, low: float | None = None, high: float | None = None) -> dict[str, object]:
    return {"low": low, "high": high}


def _aliases(key: str) -> dict[str, object]:
    return {"aliases": other_words(key)}


UpdateMode = Literal["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]


Crashed = Literal["unmeasured", "zero"]
PairPolicy = Literal["mixed", "changed", "unchanged"]


# Bounds that no provider goes beyond, or below which nothing works; a provider's own ones are its own affair.
_SHARED: Mapping[str, Mapping[str, object]] = {
    "temperature": _limits(low=0, high=5),
    "timeout_seconds": _limits(low=0.001),
    "attempts": _limits(low=1, high=100),
    "backoff_seconds": _limits(low=0),
    "backoff_cap_seconds": _limits(low=0),
    "patience_seconds": _limits(low=0),
    "concurrency": _limits(low=1),
    "requests_per_minute": _limits(low=0),
    "tokens_per_minute": _limits(low=0),
    "deadline_seconds": _limits(low=0),
    "max_output_tokens": _limits(low=0),
    "thinking": _aliases("model.thinking"),
    "auth_mode": _aliases("model.auth_mode"),
}


def _bounded(cls: type, attributes: list[attrs.Attribute[object]]) -> list[attrs.Attribute[object]]:
    """The settings that providers are given, too, with what a config may say of them."""
    return [each.evolve(metadata=_SHARED.get(each.name, each.metadata)) for each in attributes]


@frozen(kw_only=True, field_transformer=_bounded)
class RoleConfig(RoleSettings):
    """One role's model: the settings of any, and those of an agent: of the user's own, or a coding agent."""

    command: str | tuple[str, ...] | None = field(metadata={"words": "a command: a list of texts, or one text"})
    url: str
    gateway: str
    agent_command: str
    agent_access: Literal["read", "edit", "full"]
    agent_answers: Literal["hidden", "visible"]
    agent_isolated: bool
    agent_network: bool
    agent_env: str
    agent_web_search: bool | None
    agent_thinking_tokens: int | None = field(metadata=_limits(low=0))
    agent_trace: bool
    agent_processes: int = field(metadata=_limits(low=1))

    @property
    def agent_on_the_web(self) -> bool:
        """Whether a coding agent may meet texts from the web."""
        return self.agent_network or self.agent_web_search is True

    @property
    def argv(self) -> tuple[str, ...]:
        """The command of an agent of the user's own, word by word."""
        if isinstance(self.command, str):
            return tuple(shlex.split(self.command))
        return self.command or ()

    @property
    def agent_variables(self) -> tuple[str, ...]:
        """The names of the environment variables that a coding agent is given besides the usual ones."""
        return tuple(name.strip() for name in self.agent_env.split(",") if name.strip())


@frozen(kw_only=True)
class TrainConfig:
    """In which way, how long and over what."""

    algorithm: str
    num_epochs: int = field(metadata=_limits(low=1))
    train_size: int = field(metadata=_limits(low=0))
    batch_size: int = field(metadata=_limits(low=1))
    accumulation: int = field(metadata=_limits(low=1))
    seed: int
    patience: int | None = field(metadata=_limits(low=1))
    target_score: float | None = field(metadata=_limits(low=0))
    reuse: Literal["never", "identical"]
    speculate: bool


@frozen(kw_only=True)
class GradientConfig:
    """How trajectories become patches."""

    minibatch_size: int = field(metadata=_limits(low=1))
    merge_batch_size: int = field(metadata=_limits(low=2))
    analyst_workers: int = field(metadata=_limits(low=1))
    failure_only: bool
    max_trajectory_chars: int = field(metadata=_limits(low=200))


@frozen(kw_only=True)
class OptimizerConfig:
    """How patches become a candidate, and what happens at an epoch's end."""

    learning_rate: int = field(metadata=_limits(low=0))
    min_learning_rate: int = field(metadata=_limits(low=0))
    lr_scheduler: Scheduler = field(metadata=_aliases("optimizer.lr_scheduler"))
    lr_control_mode: Literal["fixed", "autonomous", "none"] = field(metadata=_aliases("optimizer.lr_control_mode"))
    skill_update_mode: UpdateMode = field(metadata=_aliases("optimizer.skill_update_mode"))
    max_completion_tokens: int = field(metadata=_limits(low=1))
    rewrite_max_completion_tokens: int = field(metadata=_limits(low=1))
    rewrite_reasoning_effort: str
    use_slow_update: bool
    slow_update_samples: int = field(metadata=_limits(low=1))
    slow_update_gate_with_selection: bool
    longitudinal_pair_policy: PairPolicy = field(metadata=_aliases("optimizer.longitudinal_pair_policy"))
    use_meta_skill: bool
    ask_again: bool
    use_skill_aware_reflection: bool
    skill_aware_appendix_source: Literal["both", "failure_only"]
    skill_aware_consolidate_threshold: int = field(metadata=_limits(low=0))
    skill_aware_max_notes: int = field(metadata=_limits(low=1))
    leak_span: int = field(metadata=_limits(low=0, high=1000))


@frozen(kw_only=True)
class SearchConfig:
    """What the algorithm `search` does to learn more from its calls."""

    first_batch: int = field(metadata=_limits(low=1))
    first_gates: int = field(metadata=_limits(low=0))
    rounds: int = field(metadata=_limits(low=1))
    draw_again: bool
    anew: int = field(metadata=_limits(low=0))
    backlog: bool
    beside: int = field(metadata=_limits(low=0))
    together: int = field(metadata=_limits(low=0))
    prune: bool
    examples: Literal["auto", "on", "off"]
    reply: Literal["auto", "json", "text"]


@frozen(kw_only=True)
class RolloutConfig:
    """What an evaluation must have measured to count."""

    max_failed_share: float = field(metadata=_limits(low=0, high=1))
    max_failed_share_train: float = field(metadata=_limits(low=0, high=1))
    max_unanswered_share: float = field(metadata=_limits(low=0, high=1))
    crashed: Crashed


@frozen(kw_only=True)
class EvaluationConfig:
    """How a candidate is judged."""

    use_gate: bool
    gate_metric: GateMetric
    gate_mixed_weight: float = field(metadata=_limits(low=0, high=1))
    use_semantic_density: bool
    semantic_density_weight: float
    leading_words: str | tuple[str, ...] | None
    gate_rule: GateRule
    gate_repeats: int = field(metadata=_limits(low=2, high=100))
    gate_standard_errors: float = field(metadata=_limits(low=0, high=10))
    judge_noise: float = field(metadata=_limits(low=0, high=1))
    no_regression: int | None = field(metadata=_limits(low=0))
    min_items: int = field(metadata=_limits(low=0))
    max_size: int = field(metadata=_limits(low=0))
    no_untrusted_only: bool
    fresh_score: bool
    certificate: bool
    early_stop: Literal["off", "exact"]
    early_stop_wave: int = field(metadata=_limits(low=1))
    sel_env_num: int = field(metadata=_limits(low=0))
    test_env_num: int = field(metadata=_limits(low=0))
    eval_test: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The leading words that count for semantic density."""
        if self.leading_words is None:
            return LEADING_WORDS
        if isinstance(self.leading_words, str):
            return tuple(word.strip() for word in self.leading_words.split(",") if word.strip())
        return self.leading_words


@frozen(kw_only=True)
class EnvConfig:
    """Which tasks, and where they come from; `options` are the environment's own keys."""

    name: str
    skill_init: str
    executor: str
    workers: int = field(metadata=_limits(low=1))
    exec_timeout: float = field(metadata=_limits(low=0.001))
    max_completion_tokens: int = field(metadata=_limits(low=1))
    split_mode: Literal["ratio", "split_dir", "field", "file"]
    split_ratio: str
    split_seed: int
    split_field: str
    split_dir: str
    data_path: str
    limit: int = field(metadata=_limits(low=0))
    seal_test: bool
    trust: Trust
    same_input: Literal["warn", "refuse"]
    options: Mapping[str, Json]


@frozen(kw_only=True)
class RayConfig:
    """Where attempts are made with `env.executor: ray`; it decides nothing."""

    address: str
    cpus: float = field(metadata=_limits(low=0))
    resources: Mapping[str, Json]


@frozen(kw_only=True)
class SkillsConfig:
    """How a folder of skills is trained (train.algorithm: skills)."""

    reflection_trigger_size: int = field(metadata=_limits(low=1))
    reflection_group_size: int = field(metadata=_limits(low=1))
    always_in_key: bool
    max_rejected_update_buffer_size: int = field(metadata=_limits(low=1))
    sentinels: int = field(metadata=_limits(low=0))
    manage: bool
    manage_gate_rule: GateRule
    retire_after: int = field(metadata=_limits(low=0))
    recall_loss: int | None = field(metadata=_limits(low=0))
    triggers: int = field(metadata=_limits(low=0))
    misrouted: int | None = field(metadata=_limits(low=0))
    most_skills: int = field(metadata=_limits(low=1, high=100))
    most_listed: int = field(metadata=_limits(low=100))


SkillOptRule = Literal[
    "edit_budget",
    "epoch_end",
    "gate_unchanged",
    "leave_gaps",
    "notes_after_verdict",
    "partial_passes",
    "promote_if_tested",
    "stale_scores",
]
"""A decision that SkillOpt takes in another way than we do."""


@frozen(kw_only=True)
class SkillOptConfig:
    """Which decisions are SkillOpt's, for runs that are compared with it."""

    follow: tuple[SkillOptRule, ...]


@frozen(kw_only=True)
class PricesConfig:
    """What tokens cost; it decides nothing. Recorded, so that a log can be added up without its config."""

    unit: str
    models: Mapping[str, Json]


@frozen(kw_only=True)
class BudgetConfig:
    """The most that a run may use in all its sessions; None: as much as it needs."""

    max_cost: float | None = field(metadata=_limits(low=0.0001))
    max_tokens: int | None = field(metadata=_limits(low=1))
    max_calls: int | None = field(metadata=_limits(low=1))
    max_minutes: float | None = field(metadata=_limits(low=0.01))


@frozen(kw_only=True)
class RunConfig:
    """
    A whole run; `folder` is where the config file lies, to which relative paths belong.

    `notices` is what the user has to be told about keys without effect, `notes` how the others were understood,
    `sources` says where each key's value is from; `released_size` that `train.train_size` is what the original's files
    say of the released split, and nobody's wish. `limit_chosen` says that `env.max_completion_tokens` is the user's.
    """

    optimizer_model: RoleConfig
    target_model: RoleConfig
    judge_model: RoleConfig
    train: TrainConfig
    gradient: GradientConfig
    optimizer: OptimizerConfig
    search: SearchConfig
    rollout: RolloutConfig
    evaluation: EvaluationConfig
    env: EnvConfig
    ray: RayConfig
    skills: SkillsConfig
    skillopt: SkillOptConfig
    prices: PricesConfig
    budget: BudgetConfig
    folder: str
    resolved: Mapping[str, Json]
    notices: tuple[str, ...] = field(default=(), eq=False)
    notes: tuple[str, ...] = field(default=(), eq=False)
    sources: Mapping[str, str] = field(factory=dict, eq=False)
    released_size: bool = field(default=False, eq=False)
    limit_chosen: bool = field(default=False, eq=False)
    file: ConfigFile | None = field(default=None, eq=False)

    def follows(self, rule: SkillOptRule) -> bool:
        """Whether this decision is taken as SkillOpt takes it."""
        return rule in self.skillopt.follow

    @property
    def own_settings(self) -> SearchConfig | SkillsConfig | None:
        """The section of the run's own algorithm, where it has one."""
        sections: Mapping[str, SearchConfig | SkillsConfig] = {"search": self.search, "skills": self.skills}
        return sections.get(self.train.algorithm)

    @property
    def workers(self) -> Mapping[Role, int]:
        """How many calls of each role may be in flight."""
        return {"target": self.env.workers, "optimizer": self.gradient.analyst_workers, "judge": self.env.workers}

    def passes(self, outcome: Measured) -> bool:
        """Whether a task counts as solved: the whole of it, or any part where partial ones pass."""
        # Any part of the task, but not what rounding leaves of nothing.
        return outcome.hard >= 1e-9 if self.follows("partial_passes") else outcome.passed

    def gate_value(self, score: Score, skill: SkillTree) -> float:
        """The number that the gate compares: the chosen score, and the text's own bonus where that is on."""
        return self.worth(score.hard, score.soft) + self.bonus(skill)

    def worth(self, hard: float, soft: float) -> float:
        """What a hard and a soft score count together."""
        if self.evaluation.gate_metric == "hard":
            return hard
        if self.evaluation.gate_metric == "soft":
            return soft
        weight = self.evaluation.gate_mixed_weight
        return (1 - weight) * hard + weight * soft

    def bonus(self, skill: SkillTree) -> float:
        """What a text itself adds to its value."""
        if not self.evaluation.use_semantic_density:
            return 0.0
        return self.evaluation.semantic_density_weight * semantic_density(skill.text, self.evaluation.words)

    def path(self, value: str) -> Path:
        """A path of the config, seen from the config file's folder."""
        return real_path(Path(self.folder, value))

    def place(self, key: str) -> str:
        """Where a key's value was written, to begin an error with; empty where the user did not write it."""
        source = self.sources.get(key, "")
        return f"{source}: " if source and not is_packaged(source) else ""

    def origin(self, key: str) -> str:
        """Where a key's value is from, in words."""
        return place_in_words(self.sources[key]) if key in self.sources else "as recorded"

    def role(self, role: Role) -> RoleConfig:
        """One role's model settings."""
        return {"optimizer": self.optimizer_model, "target": self.target_model, "judge": self.judge_model}[role]

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that have a model: an evaluation needs no optimizer, and few runs have a judge."""
        every: tuple[Role, ...] = ("optimizer", "target", "judge")
        return tuple(role for role in every if role == "target" or self.role(role).model)


SECTIONS: Mapping[str, type] = {
    "train": TrainConfig,
    "gradient": GradientConfig,
    "optimizer": OptimizerConfig,
    "search": SearchConfig,
    "rollout": RolloutConfig,
    "evaluation": EvaluationConfig,
    "env": EnvConfig,
    "ray": RayConfig,
    "skills": SkillsConfig,
    "skillopt": SkillOptConfig,
    "prices": PricesConfig,
    "budget": BudgetConfig,
}
for _section in (RoleConfig, *SECTIONS.values()):
    attrs.resolve_types(_section)  # from here on every attribute's type is a type, not its source text

SHARED_ROLE_KEYS = tuple(a.name for a in attrs.fields(RoleConfig) if a.name != "model")
MODEL_KEYS = (
    "optimizer",
    "target",
    "judge",
    *SHARED_ROLE_KEYS,
    *(f"{role}_{key}" for role in ("optimizer", "target", "judge") for key in SHARED_ROLE_KEYS),
)
