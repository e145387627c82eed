"""What the environment, the chosen backends and the original's defaults make of a config."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillopt_es.config import RunConfig, load_config, recorded_config
from skillopt_es.config.draft import origins
from skillopt_es.config.table import SHIPPED, VARIABLES
from skillopt_es.errors import ConfigError
from skillopt_es.sessions.opening import open_environment, open_model

ORIGINAL = Path(__file__).parent / "original"
SEARCHQA = ORIGINAL / "0.2.0" / "configs" / "searchqa" / "default.yaml"
PLAIN: Mapping[str, str] = {}


def theirs(*overrides: str, environ: Mapping[str, str] = PLAIN, version: str = "0.2.0") -> RunConfig:
    """The original's config for SearchQA."""
    return load_config(ORIGINAL / version / "configs" / "searchqa" / "default.yaml", overrides, environ)


def ours(folder: Path, *overrides: str, environ: Mapping[str, str] = PLAIN, **model: Any) -> RunConfig:
    """A config in our words."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({"model": {"optimizer": "o", "target": "t", **model}}))
    return load_config(file, overrides, environ)


# --- what its files say for other backends ---------------------------------------------------------------------------


def test_a_value_that_came_with_its_files_is_left_out_and_one_that_was_chosen_is_an_error(tmp_path: Path) -> None:
    """Which names the file that it is in."""
    shutil.copytree(ORIGINAL / "0.2.0" / "configs", tmp_path / "configs")
    mine = tmp_path / "configs" / "mine.yaml"
    mine.write_text("_base_: searchqa/default.yaml\nmodel: {reasoning_effort: medium}\n")
    assert load_config(mine, ["model.backend=qwen"]).target_model.reasoning_effort == ""
    mine.write_text("_base_: searchqa/default.yaml\nmodel: {qwen_chat_temperature: 0.2}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(mine)
    assert caught.value.message.startswith(f"{mine}: model.qwen_chat_temperature is 0.2, but it is for qwen_chat")
    assert "azure_openai" in caught.value.message
    assert load_config(mine, ["model.target_backend=qwen_chat"]).target_model.temperature == 0.2
    assert load_config(mine, ["model.backend=simulated"]).target_model.temperature is None


def test_an_effort_that_was_chosen_for_a_backend_without_is_named_with_its_file(tmp_path: Path) -> None:
    """The adapter refuses it; the file is said in front."""
    config = ours(tmp_path, backend="qwen", base_url="http://h/v1", target_reasoning_effort="high")
    with pytest.raises(ConfigError, match=rf"{tmp_path}/config.yaml: model.target_reasoning_effort"):
        open_model(config, "target", {})
    config = theirs("model.reasoning_effort=high", "model.target_backend=qwen_chat")
    with pytest.raises(ConfigError, match=r"--set: model.target_reasoning_effort"):
        open_model(config, "target", {})


@pytest.mark.parametrize(
    ("backend", "effort"),
    [("qwen_chat", ""), ("minimax_chat", ""), ("cursor", ""), ("openai_compatible", ""), ("anthropic", "medium")],
)
def test_the_effort_of_its_files_is_sent_where_it_means_something(backend: str, effort: str) -> None:
    """It is left out, once told, where the original sends none."""
    config = theirs(f"model.target_backend={backend}", "model.azure_openai_endpoint=http://h/v1")
    assert config.target_model.reasoning_effort == effort
    told = [notice for notice in config.notices if "model.reasoning_effort" in notice]
    assert len(told) == (effort == "")
    assert config.optimizer_model.reasoning_effort == "medium"


def test_every_value_that_its_base_file_has_for_one_backend_is_known() -> None:
    """A shipped file with a new one would stop runs that never wanted it."""
    for version in ("0.2.0", "2026-08"):
        model = yaml.safe_load((ORIGINAL / version / "configs" / "_base_" / "default.yaml").read_text())["model"]
        for key, values in SHIPPED.items():
            assert model.get(key) in (None, "", *values)


def test_limits_of_its_files_are_asked_at_most() -> None:
    """Its MiniMax stops at 8,000 tokens; ours are refused instead (tests/config/test_backends.py)."""
    config = theirs("model.target_backend=minimax_chat")
    assert (config.env.max_completion_tokens, config.optimizer.max_completion_tokens) == (8000, 16384)
    assert any("env.max_completion_tokens (16384)" in note for note in config.notes)
    both = theirs("model.target_backend=minimax_chat", "model.optimizer_backend=minimax_chat")
    assert (both.optimizer.max_completion_tokens, both.optimizer.rewrite_max_completion_tokens) == (8000, 8000)


# --- models ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "optimizer", "target"),
    [
        (["model.backend=minimax"], "gpt-5.5", "MiniMax-M2.7"),
        (["model.backend=minimax", "model.minimax_model=MiniMax-M3"], "gpt-5.5", "MiniMax-M3"),
        (["model.backend=minimax", "model.target=MiniMax-mine"], "gpt-5.5", "MiniMax-mine"),
        (["model.backend=qwen"], "gpt-5.5", "Qwen/Qwen3.5-4B"),
        (["model.backend=qwen", "model.qwen_chat_model=Qwen/mine"], "gpt-5.5", "Qwen/mine"),
        (["model.backend=claude"], "claude-sonnet-4-6", "claude-sonnet-4-6"),
        (["model.backend=anthropic"], "claude-sonnet-4-6", "claude-sonnet-4-6"),
        (["model.backend=claude_code_exec"], "gpt-5.5", "claude-sonnet-4-6"),
        (["model.backend=cursor"], "gpt-5.5", "composer-2.5"),
        (["model.backend=copilot_exec"], "gpt-5.5", "default"),
        (["model.backend=codex_exec"], "gpt-5.5", "gpt-5.5"),
        (["model.backend=copilot_chat", "model.copilot_chat_target_model=mine"], "gpt-5.5", "mine"),
        (["model.backend=qwen", "model.target=gpt-5.5"], "gpt-5.5", "gpt-5.5"),
    ],
)
def test_a_backend_s_own_model_takes_the_place_of_the_one_in_its_files(
    overrides: list[str], optimizer: str, target: str
) -> None:
    """As in the original; one that is named on the command line stays, and a replacement is told."""
    config = theirs(*overrides)
    assert (config.optimizer_model.model, config.target_model.model) == (optimizer, target)
    replaced = [note for note in config.notes if "stands for" in note]
    assert len(replaced) == (optimizer != "gpt-5.5") + (target != "gpt-5.5" and "model.target" not in str(overrides))


def test_a_label_that_is_none_is_named_where_it_is_written() -> None:
    """Not where the role's own stands that follows it; with the nearest that there is."""
    with pytest.raises(ConfigError) as caught:
        open_model(theirs("model.backend=qwn"), "target", {})
    assert caught.value.message == "--set: model.backend is 'qwn', but no such adapter is installed"
    assert caught.value.hint == "did you mean qwen?"


def test_a_model_in_our_words_is_never_replaced(tmp_path: Path) -> None:
    """Whoever writes gpt-5.5 into a config of his own means it."""
    assert ours(tmp_path, backend="qwen", target="gpt-5.5", base_url="http://h/v1").target_model.model == "gpt-5.5"


# --- the environment -------------------------------------------------------------------------------------------------

AZURE = {"AZURE_OPENAI_ENDPOINT": "http://env/v1", "AZURE_OPENAI_AUTH_MODE": "openai_compatible"}


@pytest.mark.parametrize(
    ("environ", "overrides", "key", "expected"),
    [
        ({"QWEN_CHAT_BASE_URL": "http://q/v1"}, ["model.backend=qwen"], "base_url", "http://q/v1"),
        (
            {"QWEN_CHAT_BASE_URL": "http://q/v1", "TARGET_QWEN_CHAT_BASE_URL": "http://t/v1"},
            ["model.backend=qwen"],
            "base_url",
            "http://t/v1",
        ),
        (
            {"TARGET_QWEN_CHAT_BASE_URL": "http://t/v1"},
            ["model.backend=qwen", "model.qwen_chat_base_url=http://c/v1"],
            "base_url",
            "http://c/v1",
        ),
        ({}, ["model.backend=qwen"], "base_url", "http://localhost:8000/v1"),
        ({"QWEN_CHAT_TEMPERATURE": "0.4"}, ["model.backend=qwen"], "temperature", 0.4),
        ({"QWEN_CHAT_TEMPERATURE": "off"}, ["model.backend=qwen"], "temperature", None),
        ({"QWEN_CHAT_THINKING_MODE": "disabled"}, ["model.backend=qwen"], "thinking", "disabled"),
        ({"QWEN_CHAT_ENABLE_THINKING": "true"}, ["model.backend=qwen"], "thinking", "enabled"),
        ({"QWEN_CHAT_MODEL": "Qwen/env"}, ["model.backend=qwen"], "model", "Qwen/env"),
        ({"QWEN_CHAT_API_KEY": "sk-1"}, ["model.backend=qwen"], "api_key_env", "QWEN_CHAT_API_KEY"),
        ({"MINIMAX_REGION": "cn_zh"}, ["model.backend=minimax"], "region", "cn_zh"),
        ({"MINIMAX_TEMPERATURE": "0.2"}, ["model.backend=minimax"], "temperature", 0.7),
        ({"AZURE_OPENAI_API_VERSION": "2025-01-01"}, [], "api_version", "2024-12-01-preview"),
        (AZURE, [], "base_url", "http://env/v1"),
        ({**AZURE, "TARGET_AZURE_OPENAI_ENDPOINT": "http://t/v1"}, [], "base_url", "http://t/v1"),
        ({**AZURE, "AZURE_OPENAI_TARGET_ENDPOINT": "http://t/v1"}, [], "base_url", "http://t/v1"),
        (AZURE, ["model.base_url=http://c/v1"], "base_url", "http://c/v1"),
        ({"OPENAI_COMPATIBLE_BASE_URL": "http://o/v1"}, ["model.backend=compat"], "base_url", "http://o/v1"),
        ({}, ["model.backend=openai_compatible"], "base_url", "https://api.openai.com/v1"),
        (AZURE, ["model.backend=openai_compatible"], "base_url", "https://api.openai.com/v1"),
        ({"CODEX_EXEC_PATH": "/opt/codex"}, ["model.backend=codex"], "agent_command", "codex"),
        ({"ANTHROPIC_API_KEY": "sk-1"}, ["model.backend=claude_chat"], "api_key_env", "ANTHROPIC_API_KEY"),
        ({"AZURE_OPENAI_API_KEY": "sk-1"}, [], "api_key_env", ""),
        (
            {"AZURE_OPENAI_API_KEY": "sk-1", "AZURE_OPENAI_AUTH_MODE": "api_key"},
            [],
            "api_key_env",
            "AZURE_OPENAI_API_KEY",
        ),
    ],
)
def test_config_before_environment_before_default(
    environ: dict[str, str], overrides: list[str], key: str, expected: object
) -> None:
    """In the original's order: a role's own before the shared one, and what its base file says is config."""
    assert getattr(theirs(*overrides, environ=environ).target_model, key) == expected


@pytest.mark.parametrize(
    ("environ", "overrides", "key", "expected"),
    [
        ({"CODEX_EXEC_PATH": "/opt/codex"}, ["model.backend=codex"], "agent_command", "/opt/codex"),
        ({"CODEX_CLI_BIN": "/opt/codex"}, ["model.backend=codex"], "agent_command", "/opt/codex"),
        ({"CODEX_EXEC_SANDBOX": "read-only"}, ["model.backend=codex"], "agent_access", "read"),
        ({"CODEX_EXEC_WEB_SEARCH": "1"}, ["model.backend=codex"], "agent_web_search", True),
        ({"CURSOR_EXEC_PATH": "/opt/cursor"}, ["model.backend=cursor"], "agent_command", "/opt/cursor"),
        ({"COPILOT_CHAT_TIMEOUT": "9"}, ["model.backend=copilot", "env.name=tasks"], "timeout_seconds", 9.0),
        ({"COPILOT_CHAT_TARGET_MODEL": "m"}, ["model.backend=copilot"], "model", "m"),
        ({"COPILOT_EXEC_ALLOW_ALL_TOOLS": "true"}, ["model.backend=copilot_exec"], "agent_access", "full"),
    ],
)
def test_agents_of_its_newer_files_are_found_by_the_environment(
    environ: dict[str, str], overrides: list[str], key: str, expected: object
) -> None:
    """These files leave the agents' settings open."""
    assert getattr(theirs(*overrides, environ=environ, version="2026-08").target_model, key) == expected


def test_a_config_in_our_words_reads_them_too_and_the_log_holds_what_they_said(tmp_path: Path) -> None:
    """So a resumed run needs none of them but the key."""
    environ = {"QWEN_CHAT_BASE_URL": "http://q/v1", "QWEN_CHAT_API_KEY": "sk-0123456789", "TARGET_DEPLOYMENT": "x"}
    config = ours(tmp_path, backend="qwen", environ=environ)
    again = recorded_config(dict(config.resolved), tmp_path)
    for each in (config, again):
        target = each.target_model
        assert (target.base_url, target.api_key_env, target.model) == ("http://q/v1", "QWEN_CHAT_API_KEY", "t")
    assert "sk-0123456789" not in str(config)
    assert config.notes == ("taken from the environment: QWEN_CHAT_BASE_URL, QWEN_CHAT_API_KEY",)
    moved = recorded_config(dict(config.resolved), tmp_path, {"model.base_url": "http://elsewhere/v1"})
    assert moved.target_model.base_url == "http://elsewhere/v1"


def test_a_role_without_a_backend_may_have_one_from_the_environment(tmp_path: Path) -> None:
    """Its trainer always names them in a file, so a file that does is never overruled."""
    environ = {"TARGET_BACKEND": "qwen_chat", "OPTIMIZER_BACKEND": "somebody else's", "TARGET_DEPLOYMENT": "mine"}
    config = ours(tmp_path, environ=environ, target="")
    assert (config.target_model.backend, config.target_model.model) == ("qwen_chat", "mine")
    assert config.optimizer_model.backend == "openai"
    assert config.notices == (
        'the environment variable OPTIMIZER_BACKEND is ignored: "somebody else\'s" is not a backend',
    )
    assert theirs(environ=environ).target_model.backend == "azure_openai"


def test_a_model_of_the_environment_that_a_file_beats_is_told() -> None:
    """The original's base file names both models; where one is what the variable says, there is nothing to tell."""
    notes = theirs("model.optimizer=big", environ={"OPTIMIZER_DEPLOYMENT": "big", "TARGET_DEPLOYMENT": "mine"}).notes
    [told] = [note for note in notes if "_DEPLOYMENT" in note]
    assert told.startswith("the environment variable TARGET_DEPLOYMENT is not used: model.target is gpt-5.5 (")
    assert told.endswith("default.yaml), which comes first")


def test_an_endpoint_that_is_not_azure_s_is_told_what_takes_its_key() -> None:
    """And with that it opens."""
    environ = {"AZURE_OPENAI_API_KEY": "sk-0123456789", "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9/v1"}
    with pytest.raises(ConfigError, match="which is no Azure host") as caught:
        open_model(theirs(environ=environ), "target", environ)
    mode = "model.azure_openai_auth_mode"
    assert f"{mode}: openai_compatible" in caught.value.hint
    open_model(theirs(f"{mode}=openai_compatible", environ=environ), "target", environ)


def test_no_environment_is_said_to_be_none(tmp_path: Path) -> None:
    """Not to be one that is not installed."""
    with pytest.raises(ConfigError, match=r"^--set: env.name is not set$") as caught:
        open_environment(ours(tmp_path, "env.name="))
    assert "searchqa" in caught.value.hint


def test_an_empty_key_in_a_config_is_a_choice(tmp_path: Path) -> None:
    """An agent then signs in by itself."""
    environ = {"ANTHROPIC_API_KEY": "sk-0123456789"}
    assert ours(tmp_path, backend="claude_code", environ=environ).target_model.api_key_env == "ANTHROPIC_API_KEY"
    assert ours(tmp_path, backend="claude_code", api_key_env="", environ=environ).target_model.api_key_env == ""


def test_a_key_of_azure_s_that_no_mode_asks_for_is_told() -> None:
    """As in the original, `az` signs in then; an endpoint that is missing is named with its variable."""
    told = "AZURE_OPENAI_API_KEY is set, but no auth mode asks for it: azure_openai_auth_mode: api_key uses it"
    config = theirs(environ={"AZURE_OPENAI_API_KEY": "sk-0123456789"})
    assert told in config.notes
    mode = "model.azure_openai_auth_mode=api_key"
    assert told not in theirs(mode, environ={"AZURE_OPENAI_API_KEY": "sk-0123456789"}).notes
    with pytest.raises(ConfigError, match=r"^model.target_base_url \(or model.base_url\) is not set") as caught:
        open_model(config, "target", {})
    assert "export AZURE_OPENAI_ENDPOINT=…" in caught.value.hint


def test_backends_are_the_same_when_they_are_read_from_the_log_again() -> None:
    """Whatever decided them: the environment, a label on the command line, a role's own."""
    for overrides in (
        [],
        ["model.backend=openai", "model.base_url=http://h/v1"],
        ["model.backend=qwen", "model.target_backend=openai_chat"],
        ["model.backend=openai_compatible"],
        ["model.backend=minimax"],
    ):
        for environ in (PLAIN, AZURE):
            config = theirs(*overrides, environ=environ)
            again = recorded_config(dict(config.resolved), SEARCHQA.parent)
            assert (again.target_model, again.optimizer_model) == (config.target_model, config.optimizer_model)


def test_a_wrong_value_of_a_variable_is_named_with_the_variable() -> None:
    """Not with a file that does not have it."""
    with pytest.raises(ConfigError, match=r"the environment variable QWEN_CHAT_TEMPERATURE: .* is 'warm'"):
        theirs("model.backend=qwen", environ={"QWEN_CHAT_TEMPERATURE": "warm"})


def test_every_variable_of_the_original_is_known() -> None:
    """Those that its settings are read from; what is beside them is in docs/original.md."""
    families = {
        "AZURE_OPENAI": ("ENDPOINT", "API_KEY", "API_VERSION", "AUTH_MODE", "AD_SCOPE", "MANAGED_IDENTITY_CLIENT_ID"),
        "OPENAI_COMPATIBLE": ("BASE_URL", "API_KEY", "MODEL", "TEMPERATURE", "MAX_TOKENS", "TIMEOUT_SECONDS"),
        "QWEN_CHAT": (
            *("BASE_URL", "MODEL", "API_KEY", "ENABLE_THINKING", "THINKING_MODE", "MAX_TOKENS", "TEMPERATURE"),
            *("TIMEOUT_SECONDS", "USE_MAX_COMPLETION_TOKENS"),
        ),
        "MINIMAX": (
            *("API_KEY", "BASE_URL", "MODEL", "REGION", "MAX_TOKENS", "TEMPERATURE", "ENABLE_THINKING"),
            "TIMEOUT_SECONDS",
        ),
        "CODEX": ("EXEC_PATH", "CLI_BIN", "EXEC_SANDBOX", "EXEC_WEB_SEARCH", "EXEC_NETWORK_ACCESS"),
        "CODEX_EXEC": ("REASONING_EFFORT",),
        "CLAUDE": ("CLI_BIN", "CODE_EXEC_PATH", "CODE_EXEC_EFFORT", "CODE_EXEC_MAX_THINKING_TOKENS"),
        "COPILOT": ("EXEC_PATH", "EXEC_ALLOW_ALL_TOOLS", "CHAT_TIMEOUT", "CHAT_TARGET_MODEL", "CHAT_OPTIMIZER_MODEL"),
        "CURSOR_EXEC": ("PATH",),
        "ANTHROPIC": ("API_KEY",),
    }
    known = {name for names in VARIABLES.values() for name in names}
    assert {f"{family}_{name}" for family, names in families.items() for name in names} <= known
    page = (Path(__file__).parents[2] / "docs" / "original.md").read_text()
    lists = re.findall(r"(\w+_)\{([A-Z_, ]+)\}", page)
    named = {*re.findall(r"\w+", page), *(front + name for front, names in lists for name in names.split(", "))}
    of_roles = {re.sub(r"^(OPTIMIZER|TARGET)_|(?<=^AZURE_OPENAI_)(OPTIMIZER|TARGET)_", "", name) for name in known}
    assert of_roles - named == set()
    for role in ("OPTIMIZER", "TARGET"):
        assert {f"{role}_{family}_API_KEY" for family in ("AZURE_OPENAI", "OPENAI_COMPATIBLE", "QWEN_CHAT")} <= known


def test_each_setting_says_where_it_is_from_and_no_secret(tmp_path: Path) -> None:
    """A file, the command line, or a variable."""
    environ = {"QWEN_CHAT_BASE_URL": "http://me:pw@q/v1", "QWEN_CHAT_API_KEY": "sk-0123456789"}
    config = ours(tmp_path, "model.target_temperature=0.5", environ=environ, backend="qwen", extra_headers={"x-a": "v"})
    said = {each.setting: (each.value, each.where) for each in origins(config, "target")}
    assert said == {
        "backend": ("qwen_chat", f"model.backend, {tmp_path}/config.yaml"),
        "model": ("t", f"model.target, {tmp_path}/config.yaml"),
        "base_url": ("http://…@q", "the environment variable QWEN_CHAT_BASE_URL"),
        "api_key_env": ("the variable QWEN_CHAT_API_KEY", "the environment variable QWEN_CHAT_API_KEY"),
        "temperature": ("0.5", "model.target_temperature, --set"),
        "extra_headers": ("not shown", f"model.extra_headers, {tmp_path}/config.yaml"),
    }


# --- agents ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "key", "expected"),
    [
        (["model.codex_exec_sandbox=read-only"], "agent_access", "read"),
        (["model.codex_exec_sandbox=danger-full-access"], "agent_access", "full"),
        ([], "agent_access", "edit"),
        (["model.codex_exec_path=/opt/codex"], "agent_command", "/opt/codex"),
        (["model.codex_bin=/opt/codex"], "agent_command", "/opt/codex"),
        (["model.codex_exec_web_search=true"], "agent_web_search", True),
        (["model.codex_exec_web_search=true"], "agent_network", False),
        (["model.codex_exec_network_access=true"], "agent_network", True),
        (["model.codex_exec_reasoning_effort=high"], "reasoning_effort", "high"),
        ([], "reasoning_effort", "none"),
        (["model.codex_trace_to_optimizer=false"], "agent_trace", False),
        ([], "agent_trace", True),
        (["model.backend=claude_code_exec", "model.claude_code_exec_effort=xhigh"], "reasoning_effort", "max"),
        (["model.backend=claude_code_exec", "model.claude_code_exec_effort=none"], "reasoning_effort", ""),
        (["model.backend=claude_code_exec"], "agent_thinking_tokens", 16384),
        (["model.backend=claude_chat"], "agent_thinking_tokens", None),
        (["model.backend=claude_code_exec", "model.claude_code_exec_path=/c"], "agent_command", "/c"),
        (["model.backend=copilot_exec", "model.copilot_exec_allow_all_tools=true"], "agent_access", "full"),
        (["model.backend=copilot", "model.copilot_chat_timeout=60", "env.name=tasks"], "timeout_seconds", 60),
        (["model.backend=cursor", "model.cursor_exec_path=/c"], "agent_command", "/c"),
    ],
)
def test_settings_of_agents_are_translated(overrides: list[str], key: str, expected: object) -> None:
    """Into the switches that every agent has here."""
    assert getattr(theirs("model.backend=codex", *overrides).target_model, key) == expected


def test_an_optimizer_has_the_effort_of_all_models() -> None:
    """The agent's own one is the target's."""
    config = theirs("model.backend=codex", "model.codex_exec_reasoning_effort=low")
    assert (config.optimizer_model.reasoning_effort, config.target_model.reasoning_effort) == ("medium", "low")


# --- other sections --------------------------------------------------------------------------------------------------


def test_the_timeout_of_an_environment_that_runs_nothing_is_the_target_s(tmp_path: Path) -> None:
    """As in the original; where nobody said one, or the target has its own, nothing changes."""
    assert theirs("env.exec_timeout=77").target_model.timeout_seconds == 77
    assert theirs("env.exec_timeout=77").optimizer_model.timeout_seconds == 300
    assert theirs("env.exec_timeout=77", "model.timeout_seconds=9").target_model.timeout_seconds == 9
    assert theirs("env.exec_timeout=77", "env.name=spreadsheetbench").target_model.timeout_seconds == 300
    assert ours(tmp_path, "env.name=searchqa").target_model.timeout_seconds == 300


def test_a_split_seed_of_0_is_the_seed(tmp_path: Path) -> None:
    """Told, and recorded as the number that it stands for."""
    config = ours(tmp_path, "env.split_seed=0", "train.seed=5")
    assert config.env.split_seed == 5
    assert config.notes == ("env.split_seed is 0, which stands for train.seed (5)",)


# --- paths -----------------------------------------------------------------------------------------------------------


def test_paths_of_its_files_start_where_they_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the working folder first, as there; else at the config."""
    shutil.copytree(ORIGINAL / "0.2.0" / "configs", tmp_path / "configs")
    (tmp_path / "data" / "searchqa_split").mkdir(parents=True)
    beside = tmp_path / "configs" / "searchqa" / "skillopt" / "envs" / "searchqa" / "skills"
    beside.mkdir(parents=True)
    (beside / "initial.md").write_text("# Skill\n")
    monkeypatch.chdir(tmp_path)
    config = load_config(Path("configs/searchqa/default.yaml"))
    assert config.path(config.env.split_dir) == tmp_path / "data" / "searchqa_split"
    assert config.path(config.env.skill_init) == beside / "initial.md"
    assert "these paths start at the working folder, as in the original: data/searchqa_split" in config.notes
    again = recorded_config(dict(config.resolved), Path(config.folder))
    monkeypatch.chdir("/")
    assert again.path(again.env.split_dir) == tmp_path / "data" / "searchqa_split"


def test_lists_of_paths_are_placed_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OfficeQA has several folders of documents."""
    shutil.copytree(ORIGINAL / "0.2.0" / "configs", tmp_path / "configs")
    (tmp_path / "data" / "officeqa_docs_official").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    config = load_config(Path("configs/officeqa/default.yaml"))
    assert config.env.options["data_dirs"] == ["../../data/officeqa_docs_official"]


def test_paths_of_the_command_line_start_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is only beside the config is still found; those in a file of ours start at the file."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "beside.jsonl").write_text("")
    for folder in (tmp_path, project):
        (folder / "tasks.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)

    def data_path(*overrides: str) -> Path:
        config = ours(project, *overrides)
        return config.path(config.env.data_path)

    assert data_path("env.data_path=tasks.jsonl") == tmp_path / "tasks.jsonl"
    assert data_path("env.data_path=beside.jsonl") == project / "beside.jsonl"
    assert data_path("env.data_path=nowhere.jsonl") == tmp_path / "nowhere.jsonl"
    (project / "config.yaml").write_text(
        yaml.safe_dump({"model": {"optimizer": "o", "target": "t"}, "env": {"data_path": "tasks.jsonl"}})
    )
    in_file = load_config(project / "config.yaml")
    assert in_file.path(in_file.env.data_path) == project / "tasks.jsonl"
    over_demo = load_config(None, ["env.data_path=tasks.jsonl"])
    assert over_demo.env.data_path == str(tmp_path / "tasks.jsonl")


@pytest.mark.parametrize("version", ["0.2.0", "2026-08"])
def test_codex_with_an_azure_endpoint_keeps_azure_for_the_optimizer(version: str) -> None:
    """As release 0.2.0 trained; whoever names Codex for it gets Codex, and a setting without a use is an error."""
    words = ("model.backend=codex", "model.azure_openai_endpoint=https://one.example")
    config = theirs(*words, version=version)
    assert (config.optimizer_model.backend, config.target_model.backend) == ("azure_openai", "codex")
    assert config.optimizer_model.base_url == "https://one.example"
    assert any("model.optimizer_backend is azure_openai" in note for note in config.notes)
    assert theirs("model.backend=codex", version=version).optimizer_model.backend == "codex"
    with pytest.raises(ConfigError, match="azure_openai_endpoint"):
        theirs(*words, "model.optimizer_backend=codex_exec", version=version)


@pytest.mark.parametrize("label", ["qwen_chat", "minimax"])
def test_a_label_for_the_target_says_where_it_leaves_an_optimizer_without_an_endpoint(label: str) -> None:
    """On Azure, with the variable that gives it an endpoint."""
    config = theirs(f"model.backend={label}", "model.target_base_url=http://127.0.0.1:9/v1", version="2026-08")
    with pytest.raises(ConfigError) as caught:
        open_model(config, "optimizer", {})
    assert f"model.backend: {label} is the target's alone" in caught.value.hint
    assert "leaves the optimizer on Azure: export AZURE_OPENAI_ENDPOINT=…" in caught.value.hint
