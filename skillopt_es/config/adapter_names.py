"""
The original's names for backends and benchmarks: which of ours they mean, and what is said of those not built.

A name that an installed adapter has comes first, so a line of ADAPTERS is without effect once there is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

# What else a backend may be called. A name that an installed adapter has comes before these.
BACKEND_NAMES: Mapping[str, str] = {
    "openai_chat": "openai",
    "openai_compatible": "openai",
    "openai_compatible_chat": "openai",
    "openai-compatible": "openai",
    "compat": "openai",
    "azure": "azure_openai",
    "azure-openai": "azure_openai",
    "codex_exec": "codex",
    "claude": "claude_code",
    "claude_chat": "claude_code",
    "claude_code_exec": "claude_code",
    "cursor_agent": "cursor",
    "cursor_exec": "cursor",
    "copilot_chat": "copilot",
    "copilot_cli": "copilot",
    "copilot_exec": "copilot",
    "github_copilot": "copilot",
    "qwen": "qwen_chat",
    "minimax": "minimax_chat",
}
KNOWN_BACKENDS = frozenset({*BACKEND_NAMES, *BACKEND_NAMES.values(), "anthropic", "simulated", "handoff"})
_FOR_THE_TARGET = ("claude_code_exec", "cursor", "copilot_exec", "qwen_chat", "minimax_chat")

_BENCHMARKS_INSTEAD = "env.name: tasks trains on any tasks of your own"

# Adapters of the original that are not installed here: what they are, and what to use instead.
ADAPTERS: Mapping[str, tuple[str, str]] = {
    **{
        name: (f"the original names the benchmark {name}, but was never shipped with it", _BENCHMARKS_INSTEAD)
        for name in ("babyvision", "mathverse", "mmrb", "sealqa", "swebench")
    },
}


@frozen
class Label:
    """How a pair of backends was chosen: did somebody write the label, and the role's own on the command line?"""

    written: bool = False
    role_asked: bool = False


PLAIN = Label()


def role_backend(label: str, own: str, role: str, how: Label = PLAIN) -> str:
    """One role's backend, from the label and its own; as in the original, `openai_chat` leaves it to a label."""
    label, own = label.strip(), own.strip()
    both = BACKEND_NAMES.get(label.lower(), label)
    if own.lower() not in ("", "openai_chat") or (own and how.role_asked):
        return own
    if role == "optimizer" and {label.lower(), both} & {*_FOR_THE_TARGET}:
        return "openai_chat"
    return own if own and label.lower() == "openai" and not how.written else label
