"""What the original's values mean in our words: numbers written as text, switches that became choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillopt_es.events.values import Json

_YES = frozenset({"true", "yes", "on", "1", "enable", "enabled"})
_NO = frozenset({"false", "no", "off", "0", "disable", "disabled"})
_NOT_SENT = frozenset({"none", "off", "null", "omit"})
_SANDBOXES: Mapping[str, Json] = {"read-only": "read", "workspace-write": "edit", "danger-full-access": "full"}


def in_our_words(key: str, value: Json) -> Json:
    """The value of a key with a backend's name; one that is not understood stays as it is, and is refused later."""
    meaning = next((meaning for ending, meaning in _MEANINGS.items() if key.endswith(ending)), None)
    return value if meaning is None else meaning(value)


def _is_yes(value: Json) -> bool:
    return value is True or _word(value) in _YES


def _word(value: Json) -> str:
    return str(value).strip().lower()


def _switch(value: Json) -> Json:
    """A switch that may be text."""
    return True if _word(value) in _YES else False if _word(value) in _NO else value


def _all_tools(value: Json) -> Json:
    switch = _switch(value)
    return ("full" if switch else "read") if isinstance(switch, bool) else value


def _effort(value: Json) -> Json:
    """An effort of Claude Code, whose highest has another name there."""
    word = _word(value)
    return "" if word in _NOT_SENT else "max" if word == "xhigh" else word


def _temperature(value: Json) -> Json:
    return None if isinstance(value, str) and _word(value) in _NOT_SENT else _number(value)


def _number(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


_MEANINGS: Mapping[str, Callable[[Json], Json]] = {
    "use_max_completion_tokens": lambda value: "max_completion_tokens" if _is_yes(value) else "max_tokens",
    "minimax_enable_thinking": lambda value: "enabled" if _is_yes(value) else "disabled",
    # Its `false` never meant more than to say nothing.
    "qwen_chat_enable_thinking": lambda value: "enabled" if _is_yes(value) else "server_default",
    "copilot_exec_allow_all_tools": _all_tools,
    "codex_exec_sandbox": lambda value: _SANDBOXES.get(_word(value), value),
    "codex_exec_network_access": _switch,
    "codex_exec_web_search": _switch,
    "codex_trace_to_optimizer": _switch,
    "claude_code_exec_effort": _effort,
    "claude_code_exec_max_thinking_tokens": _number,
    "temperature": _temperature,
    "max_tokens": _number,
    "timeout_seconds": _number,
    "copilot_chat_timeout": _number,
}
"""By the end of a key: what its values mean."""
