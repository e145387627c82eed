"""The original's YAML loads as it is: its keys are read, translated, or answered with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from support.agents import AGENTS, installed
from support.params import each_of

from skillopt_es.config import RunConfig, load_config
from skillopt_es.config.backends import ADAPTERS, BACKEND_NAMES, OWN_KEYS
from skillopt_es.config.original import FATES, FLAT, KNOWN, MOVED
from skillopt_es.config.sections import MODEL_KEYS
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json
from skillopt_es.ports import MODELS
from skillopt_es.sessions.opening import ENVIRONMENTS, open_environment, open_model
from skillopt_es.version import installed_for

ORIGINAL = Path(__file__).parent / "original"
MODELS_NAMED = ("model.optimizer=o", "model.target=t")


def written(folder: Path, content: Mapping[str, object]) -> Path:
    """A config file; both models have a name unless it says so."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def loaded(folder: Path, content: Mapping[str, object], *overrides: str) -> RunConfig:
    """What such a file says."""
    return load_config(written(folder, content), [*MODELS_NAMED, *overrides])


# --- its files -----------------------------------------------------------------------------------------------------


FILES = [str(file.relative_to(ORIGINAL)) for file in sorted(ORIGINAL.glob("*/configs/*/*.yaml"))]
RETIRED = "is ignored: it has no effect: an analyst is asked once"
LEFT_OUT = (
    "left out, as this run's backends have no use for it: model.codex_exec_*, model.claude_code_exec_*, "
    "model.codex_*, model.minimax_*"
)


@pytest.mark.parametrize("name", [*FILES, "flat.yaml"])
def test_its_files_load_unchanged(name: str) -> None:
    """Once told: which keys have no effect, and what its base file says for backends that the run does not have."""
    config = load_config(ORIGINAL / name)
    old = not name.startswith("2026")
    told = [notice.partition(": ")[2] for notice in config.notices]
    expected = LEFT_OUT if old else LEFT_OUT.replace("model.codex_exec_*, ", "")
    retired = [f"gradient.max_analyst_rounds {RETIRED}"] if old else []
    flat = ["optimizer.meta_learning_rate is ignored: the original never reads it"] if name == "flat.yaml" else []
    assert told == [*retired, *flat, expected]
    assert all(notice.startswith(str(ORIGINAL)) for notice in config.notices)
    ours = yaml.safe_load((Path(__file__).parents[2] / "configs" / "base.yaml").read_text())
    for section, values in config.resolved.items():
        assert isinstance(values, dict)
        known = {*MODEL_KEYS, *OWN_KEYS} if section == "model" else set(ours[section])
        assert section == "env" or set(values) <= known
    assert not config.env.name or open_environment(config).name == config.env.name


def test_a_flat_file_says_what_the_nested_one_says() -> None:
    """The same run, key by key."""
    nested, flat = (load_config(ORIGINAL / name) for name in ("0.2.0/configs/searchqa/default.yaml", "flat.yaml"))
    assert without_paths(flat) == without_paths(nested)
    assert (flat.env.name, flat.env.options, flat.optimizer.learning_rate) == ("searchqa", {"max_turns": 1}, 4)
    assert (flat.target_model.backend, flat.target_model.reasoning_effort) == ("azure_openai", "medium")


def without_paths(config: RunConfig) -> Mapping[str, Json]:
    """The whole config, but where its paths start: they are seen from the file, and the files lie in two folders."""
    env = config.resolved["env"]
    assert isinstance(env, dict)
    return {
        **config.resolved,
        "env": {key: env[key] for key in env if key not in ("skill_init", "split_dir", "data_path")},
    }


def test_its_defaults_are_ours() -> None:
    """But for the names of models and endpoints, which a user has to give, and what an endpoint may not know."""
    ours = load_config(ORIGINAL / "0.2.0/configs/_base_/default.yaml")
    base = yaml.safe_load((Path(__file__).parents[2] / "configs" / "base.yaml").read_text())
    other = {
        f"{section}.{key}": value
        for section, values in ours.resolved.items()
        for key, value in dict(values).items()  # type: ignore[arg-type,call-overload]
        if key in base[section] and value != base[section][key]
    }
    assert other == {
        "model.backend": "azure_openai",
        "model.optimizer": "gpt-5.5",
        "model.target": "gpt-5.5",
        "model.reasoning_effort": "medium",
        "env.name": "",
    }


# --- its keys ------------------------------------------------------------------------------------------------------


KEYS = [line.split() for line in (ORIGINAL / "keys.txt").read_text().splitlines() if not line.startswith("#")]


@each_of(("nested", "flat", "flag"), KEYS)
def test_every_key_of_it_is_known(nested: str, flat: str, flag: str) -> None:
    """A section here reads it, it is for a benchmark's environment to say, or FATES answers it."""
    section, _, name = nested.partition(".")
    assert FLAT[flat] == nested
    assert name in KNOWN[section] or nested in FATES or nested in MOVED or section == "env"
    assert flag in ("-", f"--{flat}", "--backend")


@pytest.mark.parametrize("key", sorted(key for key, fate in FATES.items() if fate.what))
def test_a_key_that_is_not_built_is_refused_unless_it_asks_for_nothing(key: str, tmp_path: Path) -> None:
    """In one sentence with the file, the key, the value and what to use instead."""
    section, _, name = key.partition(".")
    fate = FATES[key]
    for value in fate.passes:
        config = loaded(tmp_path, {section: {name: value}})
        assert name not in dict(config.resolved[section])  # type: ignore[arg-type,call-overload]
        assert not config.notices
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, {section: {name: "surprise"}})
    assert caught.value.message == f"{tmp_path}/config.yaml: {key} is 'surprise', but {fate.what} cannot be chosen here"
    assert caught.value.hint == f"instead: {fate.instead}"


@pytest.mark.parametrize("key", sorted(key for key, fate in FATES.items() if fate.secret))
def test_a_key_itself_is_refused_and_not_shown(key: str, tmp_path: Path) -> None:
    """With the variable that the original reads it from, too."""
    section, _, name = key.partition(".")
    fate = FATES[key]
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, {section: {name: "sk-0123456789"}})
    assert "sk-0" not in str(caught.value) + caught.value.hint
    assert f"model.api_key_env: {fate.secret}" in caught.value.hint
    assert loaded(tmp_path, {section: {name: ""}}).target_model.model == "t"


@pytest.mark.parametrize("key", sorted(key for key, fate in FATES.items() if fate.ignored))
def test_a_retired_key_is_ignored_with_a_warning(key: str, tmp_path: Path) -> None:
    """Once, however many layers say it; from the command line, too."""
    section, _, name = key.partition(".")
    (tmp_path / "below.yaml").write_text(yaml.safe_dump({section: {name: "x"}}))
    config = loaded(tmp_path, {"_base_": "below.yaml", section: {name: "y"}})
    [notice] = config.notices
    assert notice.startswith(f"{tmp_path}/config.yaml: {key} is ignored: ")
    assert loaded(tmp_path, {}, f"{key}=7").notices == (notice.replace(f"{tmp_path}/config.yaml", "--set"),)


def test_no_line_is_left_over_for_what_is_built() -> None:
    """Who builds a key, a backend or a benchmark takes its line out of FATES or ADAPTERS."""
    built = [key for key in FATES if key.partition(".")[2] in KNOWN[key.partition(".")[0]]]
    assert built == []
    assert not set(ADAPTERS) & {*installed_for(MODELS), *installed_for(ENVIRONMENTS)}


# --- its flat names ------------------------------------------------------------------------------------------------

ANY: Mapping[str, Json] = {"leading_words": "MUST", "edit_budget": 3, "min_edit_budget": 1, "seed": 7, "limit": 3}


@pytest.mark.parametrize(("flat", "value"), ANY.items())
def test_a_flat_name_means_the_nested_one(flat: str, value: Json, tmp_path: Path) -> None:
    """In a file and on the command line."""
    nested = loaded(tmp_path, {}, f"{FLAT[flat]}={value}").resolved
    assert loaded(tmp_path, {flat: value}).resolved == nested
    assert loaded(tmp_path, {}, f"{flat}={value}").resolved == nested
    assert nested != loaded(tmp_path, {}).resolved


def test_in_one_layer_the_nested_form_counts_and_the_last_layer_wins(tmp_path: Path) -> None:
    """Whatever form the layers below have."""
    (tmp_path / "below.yaml").write_text("optimizer: {learning_rate: 9}\nseed: 1\n")
    both = {"_base_": "below.yaml", "edit_budget": 5, "optimizer": {"learning_rate": 6}, "seed": 2}
    config = loaded(tmp_path, both)
    assert (config.optimizer.learning_rate, config.train.seed) == (6, 2)
    assert loaded(tmp_path, {"_base_": "below.yaml", "edit_budget": 5}).optimizer.learning_rate == 5


def test_a_flat_name_that_is_mistyped_is_named(tmp_path: Path) -> None:
    """With the nearest that there is."""
    with pytest.raises(ConfigError, match=r"config.yaml: unknown key batch_sise") as caught:
        loaded(tmp_path, {"batch_sise": 4})
    assert caught.value.hint == "did you mean batch_size?"


# --- its words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "word", "read"),
    [
        ("evaluation.gate_metric", " Soft ", "soft"),
        ("optimizer.lr_scheduler", "autonomous", "uncapped"),
        ("optimizer.lr_scheduler", "LINEAR", "linear"),
        ("optimizer.longitudinal_pair_policy", "stable", "unchanged"),
        ("env.split_mode", "Split_Dir", "split_dir"),
        ("model.structured_output", "off", "off"),
    ],
)
def test_its_words_are_understood(key: str, word: str, read: str, tmp_path: Path) -> None:
    """In any case and by their other names."""
    section, _, name = key.partition(".")
    config = loaded(tmp_path, {section: {name: word}})
    values = config.target_model if section == "model" else getattr(config, section)
    assert getattr(values, name) == read


@pytest.mark.parametrize(
    ("label", "own", "optimizer", "target"),
    [
        ("openai", {}, "openai", "openai"),
        ("azure_openai", {}, "azure_openai", "azure_openai"),
        ("openai", {"optimizer": "openai_chat", "target": "openai_chat"}, "openai", "openai"),
        ("claude_code_exec", {}, "openai", "claude_code"),
        ("claude_code_exec", {"optimizer": "openai_chat", "target": "openai_chat"}, "openai", "claude_code"),
        ("qwen", {"target": ""}, "openai", "qwen_chat"),
        ("claude_chat", {"optimizer": "openai_chat"}, "claude_code", "claude_code"),
        ("claude_chat", {"optimizer": "simulated"}, "simulated", "claude_code"),
        ("simulated", {"target": "openai_chat"}, "simulated", "simulated"),
        ("anthropic", {"optimizer": "openai_chat", "target": "openai_chat"}, "anthropic", "anthropic"),
        ("handoff", {"optimizer": "openai_chat", "target": "openai_chat"}, "handoff", "handoff"),
        ("openai_compatible", {"optimizer": "openai_chat", "target": "openai_chat"}, "openai", "openai"),
        ("simulated", {"optimizer": "openai", "target": "openai_chat"}, "openai", "simulated"),
    ],
)
def test_a_label_stands_for_a_pair_of_backends(
    label: str, own: dict[str, str], optimizer: str, target: str, tmp_path: Path
) -> None:
    """As in the original: a role that says nothing, or its default, is left to the label."""
    roles = {f"{role}_backend": name for role, name in own.items()}
    config = loaded(tmp_path, {"model": {"backend": label, **roles}})
    assert (config.optimizer_model.backend, config.target_model.backend) == (optimizer, target)


@pytest.mark.parametrize("name", sorted({*BACKEND_NAMES, *ADAPTERS}))
def test_every_adapter_of_it_is_opened_or_answered_in_one_sentence(name: str, tmp_path: Path) -> None:
    """With the file, and what to use instead."""
    real = BACKEND_NAMES.get(name, name)
    if real in AGENTS:
        environ = installed(real, tmp_path / "agent").environ
        assert open_model(loaded(tmp_path, {"model": {"target_backend": name}}), "target", environ)
        return
    if real in installed_for(MODELS):
        role = {"target_backend": name, "base_url": "http://127.0.0.1:9/v1", "api_key_env": "K"}
        assert open_model(loaded(tmp_path, {"model": role}), "target", {"K": "sk-0123456789"})
        return
    backend = "backend" in ADAPTERS[real][0]
    key = "model.target_backend" if backend else "env.name"
    section, _, leaf = key.partition(".")
    config = loaded(tmp_path, {section: {leaf: name}})
    with pytest.raises(ConfigError) as caught:
        open_model(config, "target", {}) if backend else open_environment(config)
    assert caught.value.message == f"{tmp_path}/config.yaml: {key} is '{real}', but {ADAPTERS[real][0]}"
    assert caught.value.hint == ADAPTERS[real][1]
