"""
The original's names for backends and benchmarks: which of ours they mean, and what is said of those not built.

A name that an installed adapter has comes first, so a line of ADAPTERS is without effect once there is one.
"""

from __future__ import annotations

from collections.abc import Mapping

ENDPOINT = "an endpoint that speaks OpenAI's chat completions: model.backend: openai with model.base_url"

# What else a backend may be called. A name that an installed adapter has comes before these.
BACKEND_NAMES: Mapping[str, str] = {
    "openai_chat": "openai",
    "openai_compatible": "openai",
    "openai_compatible_chat": "openai",
    "openai-compatible": "openai",
    "compat": "openai",
    "azure": "azure_openai",
    "azure-openai": "azure_openai",
    "codex": "codex_exec",
    "claude": "claude_chat",
    "anthropic": "claude_chat",
    "cursor": "cursor_exec",
    "cursor_agent": "cursor_exec",
    "copilot": "copilot_chat",
    "copilot_cli": "copilot_chat",
    "github_copilot": "copilot_chat",
    "qwen": "qwen_chat",
    "minimax": "minimax_chat",
}
_FOR_THE_TARGET = ("claude_code_exec", "cursor_exec", "copilot_exec", "qwen_chat", "minimax_chat")

_LABELS = {*BACKEND_NAMES.values(), *_FOR_THE_TARGET} - {"openai"}

_BACKENDS_INSTEAD = f"use {ENDPOINT}"
_BENCHMARKS_INSTEAD = "env.name: tasks trains on any tasks of your own"

# Adapters of the original that are not installed here: what they are, and what to use instead.
ADAPTERS: Mapping[str, tuple[str, str]] = {
    "azure_openai": ("the Azure backend is not built yet", _BACKENDS_INSTEAD),
    "claude_chat": ("the Claude command as a chat backend is not built yet", _BACKENDS_INSTEAD),
    "qwen_chat": ("the Qwen backend is not built yet", _BACKENDS_INSTEAD),
    "minimax_chat": ("the MiniMax backend is not built yet", _BACKENDS_INSTEAD),
    "codex_exec": ("the Codex backend is not built yet", _BACKENDS_INSTEAD),
    "claude_code_exec": ("the Claude Code backend is not built yet", _BACKENDS_INSTEAD),
    "cursor_exec": ("the Cursor backend is not built yet", _BACKENDS_INSTEAD),
    "copilot_chat": ("the Copilot chat backend is not built yet", _BACKENDS_INSTEAD),
    "copilot_exec": ("the Copilot backend is not built yet", _BACKENDS_INSTEAD),
    **{
        name: (f"the benchmark {name} is not built yet", _BENCHMARKS_INSTEAD)
        for name in ("docvqa", "officeqa", "spreadsheetbench")
    },
    **{
        name: (f"the original names the benchmark {name}, but was never shipped with it", _BENCHMARKS_INSTEAD)
        for name in ("babyvision", "mathverse", "mmrb", "sealqa", "swebench")
    },
}


def role_backend(label: str, own: str, role: str) -> str:
    """One role's backend, from the label and its own; as in the original, `openai_chat` leaves it to a label."""
    label, own = label.strip(), own.strip()
    both = BACKEND_NAMES.get(label.lower(), label)
    if own.lower() not in ("", "openai_chat"):
        return own
    if role == "optimizer" and both in _FOR_THE_TARGET:
        return "openai"
    return label if not own or both in _LABELS else "openai"
