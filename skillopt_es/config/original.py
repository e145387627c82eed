"""
The original's own config: its flat names, and what becomes of each of its keys that no section here has.

A key that a section knows is read there. Who builds one of the others adds it to its section and moves its name from
FATES to READ; a test names what is left over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import attrs
from attrs import frozen

from skillopt_es.config.backends import OWN_KEYS
from skillopt_es.config.sections import MODEL_KEYS, SECTIONS, Tree
from skillopt_es.config.values import nearest, shown
from skillopt_es.errors import ConfigError, first_of
from skillopt_es.events.values import Json


@frozen
class ElsewhereNamed:
    """Other keys here do what it did: a value that asks for nothing is dropped, any other refused with their names."""

    what: str
    instead: str
    harmless: tuple[Json, ...] = ()


@frozen
class Secret:
    """A key itself, which is never config; `variable` is where the original looks for it, too."""

    variable: str


@frozen
class Retired:
    """The original ignores it, or there is no use for it here: a value is ignored, with a warning that says this."""

    why: str


Fate = ElsewhereNamed | Secret | Retired

_NO_SDK = "the agents' SDKs are not used (docs/differences.md)"
_NO_PROFILE = "an agent loads nothing of the user's own settings; say what it has to know in the skill"

# What else of an agent's settings is read: see config/backends.py. Per key: what it is for, what to do instead, and the
# values that ask for nothing else than what happens anyway.
_OF_AGENTS: Mapping[str, tuple[str, str, tuple[Json, ...]]] = {
    "codex_exec_profile": ("a profile of Codex", _NO_PROFILE, ()),
    "codex_exec_use_sdk": ("the SDK of Codex", _NO_SDK, ("auto", "cli", False)),
    "codex_exec_full_auto": ("that mode of Codex", "model.agent_access (Codex has dropped the mode)", (False,)),
    "codex_exec_approval_policy": ("an approval of Codex", "nothing: it is never asked for", ("never",)),
    "claude_code_exec_profile": ("a profile of Claude Code", _NO_PROFILE, ()),
    "claude_code_exec_use_sdk": ("the SDK of Claude Code", _NO_SDK, ("auto", "cli", False)),
    "cursor_exec_sandbox": ("the sandbox of Cursor", "model.agent_access: full for none", ("enabled",)),
    "copilot_exec_home": (
        "the folder with Copilot's state",
        "`export COPILOT_HOME=…` (an agent that signs in by itself is given it)",
        (),
    ),
}

MOVED: Mapping[str, str] = {
    **{f"model.rewrite_{name}": f"optimizer.rewrite_{name}" for name in ("reasoning_effort", "max_completion_tokens")},
    **{f"model.copilot_chat_{role}_model": f"model.{role}_copilot_chat_model" for role in ("optimizer", "target")},
}
"""Keys that have another name here, or stand in another section."""

ALIASES: Mapping[str, str] = {
    **{f"model.{name}": "model.codex_exec_path" for name in ("codex_path", "codex_cli_bin", "codex_bin")},
    **{f"model.{name}": "model.codex_exec_sandbox" for name in ("sandbox", "codex_sandbox")},
}
"""Further names that the original has for a key."""
DEPRECATED: Mapping[str, str] = {"skills.rejected_update_buffer_size": "skills.max_rejected_update_buffer_size"}
"""Names that still count, with a warning that says the right one."""

_SECRETS = {
    "azure_api_key": "AZURE_OPENAI_API_KEY",
    "azure_openai_api_key": "AZURE_OPENAI_API_KEY",
    "optimizer_azure_openai_api_key": "OPTIMIZER_AZURE_OPENAI_API_KEY",
    "target_azure_openai_api_key": "TARGET_AZURE_OPENAI_API_KEY",
    "qwen_chat_api_key": "QWEN_CHAT_API_KEY",
    "optimizer_qwen_chat_api_key": "OPTIMIZER_QWEN_CHAT_API_KEY",
    "target_qwen_chat_api_key": "TARGET_QWEN_CHAT_API_KEY",
    "minimax_api_key": "MINIMAX_API_KEY",
    "optimizer_minimax_api_key": "MINIMAX_API_KEY",
    "target_minimax_api_key": "MINIMAX_API_KEY",
}

FATES: Mapping[str, Fate] = {
    **{f"model.{key}": ElsewhereNamed(*fate) for key, fate in _OF_AGENTS.items()},
    **{f"model.{key}": Secret(variable) for key, variable in _SECRETS.items()},
    "train.steps_per_epoch": Retired("it follows from the training items, train.batch_size and train.accumulation"),
    "gradient.max_analyst_rounds": Retired("it has no effect: an analyst is asked once"),
    "optimizer.meta_learning_rate": Retired("the original never reads it"),
    "env.out_root": Retired("a run's folder is named on the command line, by --dir and --name"),
    "env.split_output_dir": Retired("no split is written to files: the log holds which item is in which split"),
}

# --- flat names ----------------------------------------------------------------------------------------------------
READ = {
    "model": ("optimizer_backend", "target_backend", "reasoning_effort"),
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
        "limit",
        "max_completion_tokens",
    ),
}

# Keys of the benchmarks. Which of them an environment takes is for that environment to say.
_OF_BENCHMARKS = (
    "data_root",
    "data_dirs",
    "docs_dirs",
    "mode",
    "max_turns",
    "max_tool_turns",
    "max_steps",
    "max_api_workers",
    "max_queries_per_turn",
    "shuffle_choices",
    "use_theorem",
    "use_sketch",
    "use_local_tools",
    "image_detail",
    "judge_model",
    "judge_max_completion_tokens",
    "judge_retries",
    "search_mode",
    "search_api_url",
    "search_auth_env",
    "search_provider",
    "search_max_num_results",
    "search_timeout_seconds",
)

RENAMED = {
    "model_backend": "model.backend",
    "optimizer_model": "model.optimizer",
    "target_model": "model.target",
    "edit_budget": "optimizer.learning_rate",
    "min_edit_budget": "optimizer.min_learning_rate",
    "meta_edit_budget": "optimizer.meta_learning_rate",
    "env": "env.name",
}


def _leaves(keys: Iterable[str]) -> dict[str, str]:
    return {key.partition(".")[2]: key for key in keys}


FLAT: Mapping[str, str] = {
    **_leaves(f"{section}.{name}" for section, names in READ.items() for name in names),
    **_leaves(f"model.{name}" for name in OWN_KEYS),
    **_leaves(key for key in FATES if key != "optimizer.meta_learning_rate"),
    **_leaves((*MOVED, *ALIASES)),
    **_leaves(f"env.{name}" for name in _OF_BENCHMARKS),
    **RENAMED,
}

KNOWN: Mapping[str, tuple[str, ...]] = {
    "model": (*MODEL_KEYS, *OWN_KEYS),
    **{name: tuple(a.name for a in attrs.fields(cls) if a.name != "options") for name, cls in SECTIONS.items()},
}


@frozen
class Translated:
    """A layer by sections, what the user has to be told about it, by key, and what is wrong with it."""

    tree: Tree
    notices: Mapping[str, str]
    mistakes: tuple[ConfigError, ...] = ()


def translated(layer: Tree, source: str) -> Translated:
    """The layer with every key at its place here; raises ConfigError for a key that asks for what there is not."""
    found = read_layer(layer, source)
    if found.mistakes:
        raise first_of(found.mistakes)
    return found


def read_layer(layer: Tree, source: str) -> Translated:
    """The same without the keys that ask for what there is not: these are its mistakes."""
    tree: Tree = {}
    notices: dict[str, str] = {}
    mistakes: list[ConfigError] = []
    nested = _by_section(layer, source, mistakes)
    for key, right in DEPRECATED.items():
        (section, _, leaf), (new_section, _, new_leaf) = key.partition("."), right.partition(".")
        if leaf in nested.get(section, {}):
            nested.setdefault(new_section, {}).setdefault(new_leaf, nested[section].pop(leaf))
            notices[key] = f"{source}: {key} is deprecated and counts as {right}, which is its name"
    for section, values in nested.items():
        kept: Tree = {}
        for name, value in values.items():
            key = f"{section}.{name}"
            if name in KNOWN[section] or key not in FATES:
                kept[name] = value
            elif value is not None and value != "":
                try:
                    notice = _judged(key, value, source)
                except ConfigError as mistake:
                    mistakes.append(mistake)
                else:
                    notices.update({key: notice} if notice else {})
        tree[section] = kept
    return Translated(tree, notices, tuple(mistakes))


def _by_section(layer: Tree, source: str, mistakes: list[ConfigError]) -> dict[str, Tree]:
    """Flat keys at their nested places; a key that a layer has in both forms counts in its nested one."""
    nested: dict[str, Tree] = {}
    flat: list[tuple[str, Json]] = []
    for name, value in layer.items():
        # `env` is a section here and, flat, the name of a benchmark.
        if name in KNOWN and not (name in FLAT and isinstance(value, str)):
            if value is not None and not isinstance(value, dict):
                mistakes.append(ConfigError(f"{source}: {name} is {value!r}, but must be a mapping of keys"))
                continue
            nested[name] = {**cast(Tree, value or {})}
        elif name in FLAT:
            flat.append((FLAT[name], value))
        else:
            mistakes.append(_unknown(name, value, source))
    for key, value in flat:
        section, _, leaf = key.partition(".")
        nested.setdefault(section, {}).setdefault(leaf, value)
    for key, moved in (*MOVED.items(), *ALIASES.items()):
        (section, _, leaf), (new_section, _, new_leaf) = key.partition("."), moved.partition(".")
        if leaf in nested.get(section, {}):
            nested.setdefault(new_section, {}).setdefault(new_leaf, nested[section].pop(leaf))
    return nested


def _unknown(name: str, value: Json, source: str) -> ConfigError:
    if isinstance(value, dict):
        return ConfigError(f"{source}: unknown section {name}", hint=nearest(name, tuple(KNOWN)))
    known = (*KNOWN, *FLAT)
    hint = nearest(name, known)
    if hint.startswith("known:"):
        hint = f"a key belongs to a section: {', '.join(KNOWN)}"
    return ConfigError(f"{source}: unknown key {name}", hint=hint)


def _judged(key: str, value: Json, source: str) -> str:
    """What to tell about a key of the original that is dropped; "" for nothing, an error where dropping would lie."""
    match FATES[key]:
        case Secret(variable):
            raise ConfigError(
                f"{source}: {key}: a secret does not belong in a config",
                hint=f"export it (`export {variable}=…`) and write model.api_key_env: {variable}",
            )
        case ElsewhereNamed(what, instead, harmless):
            # False equals 0, so the types count, too.
            if any(type(value) is type(other) and value == other for other in harmless):
                return ""
            raise ConfigError(
                f"{source}: {key} is {shown(key, value)}, but {what} cannot be chosen here", hint=f"instead: {instead}"
            )
        case retired:
            return f"{source}: {key} is ignored: {retired.why}"
