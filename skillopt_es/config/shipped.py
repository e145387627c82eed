"""
What the original's own files say, whoever uses them: values that nobody chose, and what it takes in their place.

Its base file has settings for every backend it knows, and the name of one model. None of that is a wish for the backend
that a run has.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.config.backends import COMPATIBLE, ROLES, Backend
from skillopt_es.events.values import Json

MARK = "codex_trace_to_optimizer"
"""A key that its base file has and no config in our words: whoever builds on that file has it somewhere below."""

_AZURE: Mapping[str, tuple[Json, ...]] = {
    "azure_openai_api_version": ("2024-12-01-preview",),
    "azure_openai_ad_scope": ("https://cognitiveservices.azure.com/.default",),
}
SHIPPED: Mapping[str, tuple[Json, ...]] = {
    "reasoning_effort": ("medium",),
    **_AZURE,
    **{f"{role}_{key}": values for role in ROLES for key, values in _AZURE.items()},
    "minimax_model": ("MiniMax-M2.7", "MiniMax-M3"),
    "minimax_temperature": ("0.7",),
    "minimax_max_tokens": ("8000",),
    "minimax_enable_thinking": ("false",),
    "codex_exec_path": ("codex",),
    "codex_exec_sandbox": ("workspace-write",),
    "codex_exec_reasoning_effort": ("none",),
    "codex_exec_network_access": (False,),
    "codex_exec_web_search": (False,),
    "codex_trace_to_optimizer": (True,),
    "claude_code_exec_path": ("claude",),
    "claude_code_exec_effort": ("medium",),
    "claude_code_exec_max_thinking_tokens": (16384,),
}
"""By key of `model`: what its files say, in both of its states."""

_SIZES: Mapping[str, int] = {"searchqa": 400, "spreadsheetbench": 80}
"""By environment: how many training items its files say there are, those of the released split."""

_NO_MODEL = ("", "gpt-5.4", "gpt-5.5")  # what its files name, and what means "the backend's own" there
_MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-6",
    "claude_code": "claude-sonnet-4-6",
    "cursor": "composer-2.5",
    "qwen_chat": "Qwen/Qwen3.5-4B",
    "minimax_chat": "MiniMax-M3",
}
_ADDRESSES: Mapping[str, str] = {"qwen_chat": "http://localhost:8000/v1"}
_PUBLIC = "https://api.openai.com/v1"
# Where its files' effort means nothing: what it never sends one to.
_WITHOUT_EFFORT = ("qwen_chat", "minimax_chat", "cursor")
_OF_AZURE_ALONE = ("api_version", "ad_scope", "managed_identity_client_id")


def is_shipped(key: str, value: Json) -> bool:
    """Whether its files have this value for this key of `model`."""
    # False equals 0, so the types count, too.
    return any(type(value) is type(other) and value == other for other in SHIPPED.get(key, ()))


def is_shipped_size(environment: Json, size: Json) -> bool:
    """Whether its files have this `train_size` for this environment."""
    return type(size) is int and size == _SIZES.get(str(environment))


def stands_for_any(model: str) -> bool:
    """Whether this name of a model is only what its files say before a backend is chosen."""
    return model.strip() in _NO_MODEL


def default_model(backend: Backend) -> str:
    """The model that the original takes for this backend; empty where it keeps what its files say."""
    if backend.spelled == "copilot_exec":
        return "default"
    return _MODELS.get(str(backend.name), "")


def default_address(backend: Backend) -> str:
    """The endpoint that the original takes where nothing names one."""
    return _PUBLIC if backend.spelled in COMPATIBLE else _ADDRESSES.get(str(backend.name), "")


def without_meaning(backend: Backend) -> Mapping[str, Json]:
    """Which settings of its files this backend ignores, and what they are when nobody set them."""
    found: dict[str, Json] = {}
    if backend.name in _WITHOUT_EFFORT or backend.spelled in COMPATIBLE:
        found["reasoning_effort"] = ""
    if backend.name == "openai":
        found.update(dict.fromkeys(_OF_AZURE_ALONE, ""))
    return found


def thinking_that_cannot_be(backend: Backend, model: str) -> bool:
    """Whether this model thinks whatever its files say."""
    return backend.name == "minimax_chat" and model.lower().startswith("minimax-m2")
