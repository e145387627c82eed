"""How backends and their settings may be written, and what becomes of each spelling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.params import each_of

from skillopt_es.config import RunConfig, load_config, recorded_config
from skillopt_es.errors import ConfigError
from skillopt_es.sessions.opening import open_model


def given(folder: Path, **model: Any) -> RunConfig:
    """A config with this model section."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({"model": {"optimizer": "o", "target": "t", **model}, "env": {"name": "tasks"}}))
    return load_config(file)


@pytest.mark.parametrize(
    ("written", "backend"),
    [
        ("openai", "openai"),
        ("OpenAI", "openai"),
        ("openai_compatible", "openai"),
        ("openai-compatible", "openai"),
        ("compat", "openai"),
        ("openai_chat", "openai"),
        ("codex_exec", "codex"),
        ("azure", "azure_openai"),
        ("azure-openai", "azure_openai"),
        ("anthropic", "anthropic"),
        ("claude_chat", "claude_code"),
        ("qwen", "qwen_chat"),
        ("minimax", "minimax_chat"),
        ("someone_elses", "someone_elses"),
    ],
)
def test_a_backend_has_several_names(tmp_path: Path, written: str, backend: str) -> None:
    """For both roles or for one."""
    assert given(tmp_path, backend=written).role("target").backend == backend
    assert given(tmp_path, target_backend=written).role("target").backend == backend
    assert given(tmp_path, target_backend=written).role("optimizer").backend == "openai"


@each_of(
    ("backend", "key", "value", "name", "expected"),
    [
        ("azure_openai", "azure_openai_endpoint", "https://x", "base_url", "https://x"),
        ("azure_openai", "azure_openai_api_version", "2024-10-21", "api_version", "2024-10-21"),
        ("azure_openai", "azure_openai_auth_mode", "key", "auth_mode", "api_key"),
        ("azure_openai", "azure_openai_auth_mode", "aad", "auth_mode", "managed_identity"),
        ("azure_openai", "azure_openai_ad_scope", "s", "ad_scope", "s"),
        ("azure_openai", "azure_openai_managed_identity_client_id", "c", "managed_identity_client_id", "c"),
        ("qwen", "qwen_chat_base_url", "http://q/v1", "base_url", "http://q/v1"),
        ("qwen", "qwen_chat_model", "Qwen/Q", "model", "Qwen/Q"),
        ("qwen", "qwen_chat_temperature", "0.7", "temperature", 0.7),
        ("qwen", "qwen_chat_temperature", "none", "temperature", None),
        ("qwen", "qwen_chat_timeout_seconds", 60, "timeout_seconds", 60.0),
        ("qwen", "qwen_chat_max_tokens", "20000", "max_output_tokens", 20000),
        ("qwen", "qwen_chat_thinking_mode", "no", "thinking", "disabled"),
        ("qwen", "qwen_chat_thinking_mode", False, "thinking", "disabled"),
        ("qwen", "qwen_chat_thinking_mode", "auto", "thinking", "server_default"),
        ("qwen", "qwen_chat_enable_thinking", True, "thinking", "enabled"),
        ("qwen", "qwen_chat_enable_thinking", False, "thinking", "server_default"),
        ("qwen", "qwen_chat_use_max_completion_tokens", True, "token_field", "max_completion_tokens"),
        ("minimax", "minimax_region", "cn_zh", "region", "cn_zh"),
        ("minimax", "minimax_model", "MiniMax-M3", "model", "MiniMax-M3"),
        ("minimax", "minimax_enable_thinking", "false", "thinking", "disabled"),
        ("openai_compatible", "openai_compatible_base_url", "http://c/v1", "base_url", "http://c/v1"),
        ("openai_compatible", "openai_compatible_model", "m", "model", "m"),
    ],
)
def test_the_original_s_keys_are_understood(
    tmp_path: Path, backend: str, key: str, value: Any, name: str, expected: Any
) -> None:
    """For their own backend alone, also where a stand-in takes its place; a role's own key beats the shared one."""
    model = {"backend": backend, key: value}
    role = {"target": "", "optimizer": ""} if name == "model" else {}
    if name == "model":
        role = {"target": "", "optimizer": "o"}
    assert getattr(given(tmp_path, **{**model, **role}).role("target"), name) == expected
    other = given(tmp_path, backend="simulated", **{key: value}).role("target")
    assert getattr(other, name) == getattr(given(tmp_path, backend="simulated").role("target"), name)
    both = {"backend": backend, "optimizer_backend": backend}
    one = given(tmp_path, **both, **{f"optimizer_{key}": value}, **({"target": "t"} if role else {}))
    assert getattr(one.role("target"), name) == getattr(given(tmp_path, **both).role("target"), name)


def test_a_blank_key_of_the_original_is_no_setting(tmp_path: Path) -> None:
    """It neither hides the shared key nor another role's."""
    config = given(
        tmp_path,
        backend="qwen",
        qwen_chat_thinking_mode="disabled",
        target_qwen_chat_thinking_mode="",
        qwen_chat_base_url="",
        base_url="http://shared/v1",
    )
    assert (config.role("target").thinking, config.role("target").base_url) == ("disabled", "http://shared/v1")


def test_openai_chat_is_azure_s_when_an_azure_endpoint_is_given(tmp_path: Path) -> None:
    """As in the original; its auth mode can say that it is none."""
    azure = {"backend": "openai_chat", "azure_openai_endpoint": "https://x.openai.azure.com"}
    assert given(tmp_path, **azure).role("target").backend == "azure_openai"
    compatible = given(tmp_path, **azure, azure_openai_auth_mode="openai_compatible").role("target")
    assert (compatible.backend, compatible.base_url) == ("openai", "https://x.openai.azure.com")
    assert compatible.auth_mode == "auto"
    one = given(tmp_path, backend="openai_chat", target_azure_openai_endpoint="https://x.openai.azure.com")
    assert (one.role("target").backend, one.role("optimizer").backend) == ("azure_openai", "openai")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"thinking": "sometimes"}, "model.thinking is 'sometimes', but must be one of server_default"),
        ({"target_thinking": 3}, "model.target_thinking is 3"),
        ({"target_backend": "qwen", "qwen_chat_thinking_mode": "maybe"}, "model.qwen_chat_thinking_mode is 'maybe'"),
        ({"auth_mode": "magic"}, "model.auth_mode is 'magic', but must be one of auto, api_key"),
        ({"protocol": "grpc"}, "model.protocol is 'grpc', but must be one of auto, chat_completions, responses"),
        ({"stream": "yes please"}, "model.stream is 'yes please', but must be true or false"),
        ({"deadline_seconds": -1}, "model.deadline_seconds is -1"),
        ({"max_output_tokens": 8000}, "optimizer.max_completion_tokens is 16384, but must be at most 8000"),
        ({"target_max_output_tokens": 8000}, "env.max_completion_tokens is 16384, but must be at most 8000"),
        ({"azure_openai_api_key": "sk-0123456789abcdef"}, "a secret does not belong in a config"),
        ({"target_qwen_chat_api_key": "sk-0123456789abcdef"}, "a secret does not belong in a config"),
        ({"minimax_reigon": "cn_zh"}, "unknown key model.minimax_reigon"),
    ],
)
def test_what_cannot_be_is_named(tmp_path: Path, model: dict[str, Any], words: str) -> None:
    """With the key as it is written, what is allowed, and no secret."""
    with pytest.raises(ConfigError) as caught:
        given(tmp_path, **model)
    assert words in caught.value.message
    assert "sk-0123" not in f"{caught.value} {caught.value.hint}"


CANNOT_OPEN = [
    ({"backend": "qwen", "base_url": ""}, "model.target_base_url"),
    ({"backend": "qwen", "base_url": "http://h/v1", "thinking": "adaptive"}, "model.target_thinking"),
    ({"backend": "qwen", "base_url": "http://h/v1", "reasoning_effort": "low"}, "model.target_reasoning_effort"),
    ({"backend": "minimax", "region": "mars"}, "model.target_region"),
    ({"backend": "minimax", "target": "MiniMax-M2.7", "thinking": False}, "model.target_thinking"),
    ({"backend": "minimax", "reasoning_effort": "low"}, "model.target_reasoning_effort"),
    ({"backend": "anthropic", "temperature": 1.5}, "model.target_temperature"),
    ({"backend": "anthropic", "temperature": 0.5, "thinking": True}, "model.target_temperature"),
    ({"backend": "anthropic", "reasoning_effort": "minimal"}, "model.target_reasoning_effort"),
    ({"backend": "anthropic", "protocol": "responses"}, "model.target_protocol"),
    ({"backend": "anthropic", "token_field": "max_completion_tokens"}, "model.target_token_field"),
    ({"base_url": "http://h/v1", "thinking": "enabled"}, "model.target_thinking"),
    ({"base_url": "http://h/v1", "region": "cn_zh"}, "model.target_region"),
    ({"base_url": "http://h/v1", "api_version": "2024-10-21"}, "model.target_api_version"),
    ({"base_url": "https://api.openai.com/v1", "target": "gpt-4o", "reasoning_effort": "low"}, "reasoning_effort"),
    ({"base_url": "https://api.openai.com/v1", "target": "o3", "temperature": 0.2}, "model.target_temperature"),
    ({"base_url": "https://api.openai.com/v1", "target": "gpt-5", "reasoning_effort": "max"}, "reasoning_effort"),
    ({"base_url": "http://h/v1", "extra_body": {"input": 1}}, "model.target_extra_body"),
    ({"backend": "anthropc"}, "model.backend"),
]


@pytest.mark.parametrize(("model", "words"), CANNOT_OPEN, ids=[json.dumps(model) for model, _ in CANNOT_OPEN])
def test_a_model_that_cannot_work_is_refused_when_it_is_opened(
    tmp_path: Path, model: dict[str, Any], words: str
) -> None:
    """One sentence with the setting, and what to do."""
    with pytest.raises(ConfigError) as caught:
        open_model(given(tmp_path, **model), "target", {})
    assert words in caught.value.message
    assert caught.value.hint or "must" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_later_layer_wins_however_an_earlier_one_is_spelled(tmp_path: Path) -> None:
    """`--set model.base_url` beats the file's `qwen_chat_base_url`; the file's own order does not matter."""
    given(tmp_path, backend="qwen", qwen_chat_base_url="http://file/v1", target_qwen_chat_thinking_mode="enabled")
    words = ["model.base_url=http://set/v1", "model.target_thinking=disabled"]
    config = load_config(tmp_path / "config.yaml", words)
    assert {config.role("target").base_url, config.role("optimizer").base_url} == {"http://set/v1"}
    assert config.role("target").thinking == "disabled"
    changed = recorded_config(dict(config.resolved), tmp_path, {"model.base_url": "http://resumed/v1"})
    assert changed.role("target").base_url == "http://resumed/v1"
