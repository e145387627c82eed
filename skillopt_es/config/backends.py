"""
Which backend a role has, and the keys under which each backend's settings may also be written.

A role reads `<role>_<key>`, then the key under its backend's own name (`target_qwen_chat_thinking_mode`, then
`qwen_chat_thinking_mode`), then the shared key. A blank value is none: the next place is asked.

The original's names for backends and benchmarks: which of ours they mean, and what is said of those not built.

A name that an installed adapter has comes first, so a line of ADAPTERS is without effect once there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

from skillopt_es.config.sections import SHARED_ROLE_KEYS, Tree
from skillopt_es.config.values import is_blank
from skillopt_es.events.values import Json, Role

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
OWN_AGENTS = ("python", "command", "http")
"""Agents of the user's own: a function, a program, an address."""
CODING_AGENTS = ("codex", "claude_code", "cursor", "copilot")
STAND_INS = ("simulated", "handoff")
"""What stands for whatever a config is written for."""
MODELS_ALONE = (
    "base_url",
    "tokens_per_minute",
    "token_field",
    "structured_output",
    "extra_body",
    "protocol",
    "stream",
    "max_output_tokens",
    "unsupported_fields",
    "thinking",
)
"""Settings without effect on an agent that asks no model of the run; a temperature, say, is refused there."""
_FOR_THE_TARGET = ("claude_code_exec", "cursor", "copilot_exec", "qwen_chat", "minimax_chat")

_BENCHMARKS_INSTEAD = "env.name: tasks trains on any tasks of your own"

# Adapters of the original that are not installed here: what they are, and what to use instead.
ADAPTERS: Mapping[str, tuple[str, str]] = {
    **{
        name: (f"the original names the benchmark {name}, but was never shipped with it", _BENCHMARKS_INSTEAD)
        for name in ("babyvision", "mathverse", "mmrb", "sealqa", "swebench")
    },
}


def kind_of(backend: str) -> str:
    """The installed adapter that a backend means: `python:my_agent.py:answer` is one of `python`."""
    return backend.partition(":")[0]


def is_own_agent(backend: str) -> bool:
    """Whether it is an agent of the user's own, which has no model to be named; a bare `python` is none."""
    return kind_of(backend) in OWN_AGENTS and backend != "python"


def _spelling(name: str) -> str:
    """A backend's name in lower case, but for what it says of a user's own files."""
    head, colon, rest = name.strip().partition(":")
    return f"{head.lower()}{colon}{rest}"


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
    if role != "target" and {label.lower(), both} & {*_FOR_THE_TARGET}:
        return "openai_chat"
    return own if own and label.lower() == "openai" and not how.written else label


_KEY = {"api_key_env": "api_key_env"}
_AZURE = {
    "endpoint": "base_url",
    "api_version": "api_version",
    "auth_mode": "auth_mode",
    "ad_scope": "ad_scope",
    "managed_identity_client_id": "managed_identity_client_id",
    **_KEY,
}
_COMMON = {
    "base_url": "base_url",
    "model": "model",
    "temperature": "temperature",
    "timeout_seconds": "timeout_seconds",
    "max_tokens": "max_output_tokens",
    **_KEY,
}
_QWEN = {
    **_COMMON,
    "thinking_mode": "thinking",
    "enable_thinking": "thinking",
    "use_max_completion_tokens": "token_field",
}
_MINIMAX = {**_COMMON, "region": "region", "enable_thinking": "thinking"}
_CODEX = {
    "path": "agent_command",
    "sandbox": "agent_access",
    "reasoning_effort": "reasoning_effort",
    "network_access": "agent_network",
    "web_search": "agent_web_search",
}
_CLAUDE = {
    "path": "agent_command",
    "effort": "reasoning_effort",
    "max_thinking_tokens": "agent_thinking_tokens",
    **_KEY,
}
OWN_NAMES: Mapping[str, Mapping[str, str]] = {
    "openai_compatible": _COMMON,
    "azure_openai": _AZURE,
    "azure": {"endpoint": "base_url", "api_version": "api_version"},
    "qwen_chat": _QWEN,
    "minimax": _MINIMAX,
    "codex_exec": _CODEX,
    "codex": {"trace_to_optimizer": "agent_trace"},
    "claude_code_exec": _CLAUDE,
    "anthropic": _KEY,
    "cursor_exec": {"path": "agent_command", **_KEY},
    "copilot_exec": {"path": "agent_command", "allow_all_tools": "agent_access"},
    "copilot_chat": {"model": "model", "timeout": "timeout_seconds"},
}
"""By the name in front: what stands behind it, and which of our keys that is."""

# Whose names a backend answers to: first by how it was written, then by what it is.
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "openai_compatible": ("openai_compatible",),
    "openai_chat": ("azure_openai", "azure", "openai_compatible"),
    "openai": ("openai_compatible", "azure_openai", "azure"),
    "azure_openai": ("azure_openai", "azure"),
    "anthropic": ("anthropic",),
    "qwen_chat": ("qwen_chat",),
    "minimax_chat": ("minimax",),
    "codex": ("codex_exec", "codex"),
    "claude_code": ("claude_code_exec",),
    "cursor": ("cursor_exec",),
    "copilot": ("copilot_exec", "copilot_chat"),
}
COMPATIBLE = ("openai_compatible", "openai_compatible_chat", "openai-compatible", "compat")
NOT_AZURE = frozenset({"openai_compatible", "compat", "openai"})  # an auth mode that says: this is no Azure at all
# What an agent that is trained has beside the settings of all models; an optimizer, and a model that is only chatted
# with, has those alone.
_OF_TARGETS = (
    ("codex_exec", "reasoning_effort"),
    ("claude_code_exec", "effort"),
    ("claude_code_exec", "max_thinking_tokens"),
)
ROLES: tuple[Role, ...] = ("optimizer", "target")
"""The roles that every config has, and that the original knows."""
_BY_PREFIX = tuple(f"{prefix}_{name}" for prefix, names in OWN_NAMES.items() for name in names)
OWN_KEYS = (*_BY_PREFIX, *(f"{role}_{key}" for role in ROLES for key in _BY_PREFIX))


def spellings(key: str) -> tuple[str, ...]:
    """How else a `model:` key may be written, with the same role in front or none; a later layer replaces them all."""
    role = next((f"{role}_" for role in ROLES if key.startswith(f"{role}_")), "")
    ours = key.removeprefix(role)
    return tuple(
        f"{role}{prefix}_{name}"
        for prefix, names in OWN_NAMES.items()
        for name, meant in names.items()
        if meant == ours and (prefix, name) not in _OF_TARGETS
    )


def roles_in(model: Tree) -> tuple[Role, ...]:
    """The roles of a config: a judge where one is named."""
    return ROLES if is_blank(model.get("judge")) else (*ROLES, "judge")


@frozen
class Written:
    """A value and the key that it was written under."""

    key: str
    value: Json


@frozen
class Backend:
    """A role's backend: the key that says so, the name of the adapter, and how it was written there."""

    key: str
    name: Json
    spelled: str

    @property
    def families(self) -> tuple[str, ...]:
        """Whose names its settings may have."""
        if self.spelled in COMPATIBLE:
            return _FAMILIES["openai_compatible"]
        name = "openai_chat" if (self.spelled, self.name) == ("openai_chat", "openai") else self.name
        return _FAMILIES.get(name, ()) if isinstance(name, str) else ()

    @property
    def asked_of_the_environment(self) -> tuple[str, ...]:
        """Whose environment variables count: in the original those of Azure, or those of a compatible endpoint."""
        if "azure_openai" not in self.families:
            return self.families
        return ("openai_compatible",) if self.spelled == "openai" else ("azure_openai",)


def backend_of(model: Tree, role: Role, label: Label = PLAIN) -> Backend:
    """The backend of a role; the original's `openai_chat` with an Azure endpoint and no other auth mode is Azure's."""
    own, shared = model.get(f"{role}_backend"), model.get("backend")
    key, value = ("backend", shared) if is_blank(own) else (f"{role}_backend", own)
    if not isinstance(value, str) or not isinstance(shared or "", str):
        return Backend(key, value, "")
    spelled = _spelling(role_backend(str(shared or ""), str(own or ""), role, label))
    if _spelling(str(own or "")) != spelled:
        key = "backend"
    name = BACKEND_NAMES.get(spelled, spelled)
    mode = first(model, (f"{role}_azure_openai_auth_mode", "azure_openai_auth_mode"))
    places = tuple(f"{front}{family}_endpoint" for family in ("azure_openai", "azure") for front in (f"{role}_", ""))
    elsewhere = mode is not None and str(mode.value).strip().lower() in NOT_AZURE
    if spelled == "openai_chat" and not elsewhere and first(model, places) is not None:
        name = "azure_openai"
    elif name == "azure_openai" and elsewhere:
        name, spelled = "openai", "openai_chat"
    return Backend(key, name, spelled)


def written(model: Tree, role: Role, backend: Backend, key: str) -> Written:
    """Where a role's setting is written and what it says, with the words of other spellings translated."""
    if key == "model":
        found = first(model, [role, *own_keys(role, backend, key)])
        return found or Written(role, model.get(role, ""))
    ours = f"{role}_{key}"
    if model.get(ours) is not None:
        return Written(ours, model[ours])
    found = found_in(model, role, backend, key)
    return found or Written(key, model.get(key))


def found_in(model: Tree, role: Role, backend: Backend, key: str) -> Written | None:
    """The setting under one of the backend's own names, in our words; None where there is none."""
    found = first(model, own_keys(role, backend, key))
    if found is None or (key == "auth_mode" and str(found.value).strip().lower() in NOT_AZURE):
        return None
    return Written(found.key, in_our_words(found.key, found.value))


def own_keys(role: Role, backend: Backend, key: str) -> list[str]:
    """The backend's own names for a setting, those of the role first."""
    names = list(_own_names(role, backend, key))
    return [f"{role}_{name}" for name in names] + names


def _own_names(role: Role, backend: Backend, key: str) -> Iterator[str]:
    for prefix in backend.families:
        for name, ours in OWN_NAMES[prefix].items():
            trained = role == "target" and backend.spelled not in ("claude", "claude_chat")
            if ours == key and (trained or (prefix, name) not in _OF_TARGETS):
                yield f"{prefix}_{name}"


def family_of(key: str) -> tuple[str, Role | None] | None:
    """Whose name a `model:` key has, and the role in front of it; None for a key of ours."""
    role = next((role for role in ROLES if key.startswith(f"{role}_")), None)
    bare = key.removeprefix(f"{role}_") if role else key
    for prefix, names in OWN_NAMES.items():
        if bare.startswith(f"{prefix}_") and bare.removeprefix(f"{prefix}_") in names:
            return prefix, role
    return None


def first(model: Tree, keys: Sequence[str]) -> Written | None:
    """The first of these keys that has a value."""
    for key in keys:
        if not is_blank(model.get(key)):
            return Written(key, model[key])
    return None


# A name that stands for no key of ours would be read and lost.
assert all(ours in (*SHARED_ROLE_KEYS, "model") for names in OWN_NAMES.values() for ours in names.values())

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
