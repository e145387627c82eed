"""
Which backend a role has, and the keys under which each backend's settings may also be written.

A role reads `<role>_<key>`, then the key under its backend's own name (`target_qwen_chat_thinking_mode`, then
`qwen_chat_thinking_mode`), then the shared key. A blank value is none: the next place is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from skillopt_es.config.adapter_names import BACKEND_NAMES, role_backend
from skillopt_es.config.sections import SHARED_ROLE_KEYS, Tree
from skillopt_es.events.values import Json, Role

_AZURE = {
    "endpoint": "base_url",
    "api_version": "api_version",
    "auth_mode": "auth_mode",
    "ad_scope": "ad_scope",
    "managed_identity_client_id": "managed_identity_client_id",
}
_COMMON = {
    "base_url": "base_url",
    "model": "model",
    "temperature": "temperature",
    "timeout_seconds": "timeout_seconds",
    "max_tokens": "max_output_tokens",
}
_QWEN = {
    **_COMMON,
    "thinking_mode": "thinking",
    "enable_thinking": "thinking",
    "use_max_completion_tokens": "token_field",
}
_MINIMAX = {**_COMMON, "region": "region", "enable_thinking": "thinking"}
_OWN_KEYS: Mapping[str, Mapping[str, str]] = {
    "openai_compatible": _COMMON,
    "azure_openai": _AZURE,
    "azure": {"endpoint": "base_url", "api_version": "api_version"},
    "qwen_chat": _QWEN,
    "minimax": _MINIMAX,
}
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai_compatible", "azure_openai", "azure"),
    "azure_openai": ("azure_openai", "azure"),
    "qwen_chat": ("qwen_chat",),
    "minimax_chat": ("minimax",),
}
_NOT_AZURE = frozenset({"openai_compatible", "compat", "openai"})  # an auth mode that says: this is no Azure at all
_ROLES: tuple[Role, ...] = ("optimizer", "target")
_BY_PREFIX = tuple(f"{prefix}_{name}" for prefix, names in _OWN_KEYS.items() for name in names)
OWN_KEYS = (*_BY_PREFIX, *(f"{role}_{key}" for role in _ROLES for key in _BY_PREFIX))


def spellings(key: str) -> tuple[str, ...]:
    """How else a `model:` key may be written, with the same role in front or none; a later layer replaces them all."""
    role = next((f"{role}_" for role in _ROLES if key.startswith(f"{role}_")), "")
    ours = key.removeprefix(role)
    return tuple(
        f"{role}{prefix}_{name}"
        for prefix, names in _OWN_KEYS.items()
        for name, meant in names.items()
        if meant == ours
    )


@frozen
class Written:
    """A value and the key that it was written under."""

    key: str
    value: Json


def backend_of(model: Tree, role: Role) -> Written:
    """The backend of a role; the original's `openai_chat` with an Azure endpoint and no other auth mode is Azure's."""
    own, label = model.get(f"{role}_backend"), model.get("backend")
    found = Written("backend", label) if own is None or own == "" else Written(f"{role}_backend", own)
    if not isinstance(found.value, str) or not isinstance(label or "", str):
        return found
    name = role_backend(str(label or ""), str(own or ""), role).strip().lower()
    name = BACKEND_NAMES.get(name, name)
    spelled = found.value.strip().lower()
    meant = spelled == "openai_chat" or BACKEND_NAMES.get(spelled, spelled) != "openai"
    mode = _first(model, (f"{role}_azure_openai_auth_mode", "azure_openai_auth_mode"))
    endpoint = _first(model, (f"{role}_azure_openai_endpoint", "azure_openai_endpoint"))
    elsewhere = mode is not None and str(mode.value).strip().lower() in _NOT_AZURE
    if name == "openai" and meant and endpoint is not None and not elsewhere:
        name = "azure_openai"
    elif name == "azure_openai" and elsewhere:
        name = "openai"
    return Written(found.key, name)


def written(model: Tree, role: Role, backend: str, key: str) -> Written:
    """Where a role's setting is written and what it says, with the words of other spellings translated."""
    own = list(_own_keys(backend, key))
    candidates = [f"{role}_{name}" for name in own] + own
    ours = f"{role}_{key}"
    if key == "model":
        found = _first(model, [role, *candidates])
        return found or Written(role, model.get(role, ""))
    if model.get(ours) is not None:
        return Written(ours, model[ours])
    found = _first(model, candidates)
    if found is not None and not (key == "auth_mode" and str(found.value).strip().lower() in _NOT_AZURE):
        return Written(found.key, _translated(found))
    return Written(key, model.get(key))


def _own_keys(backend: str, key: str) -> Iterator[str]:
    for prefix in _FAMILIES.get(backend, ()):
        for name, ours in _OWN_KEYS[prefix].items():
            if ours == key:
                yield f"{prefix}_{name}"


def _first(model: Tree, keys: list[str] | tuple[str, ...]) -> Written | None:
    for key in keys:
        value = model.get(key)
        if value is not None and not (isinstance(value, str) and not value.strip()):
            return Written(key, value)
    return None


def _translated(found: Written) -> Json:
    """A value in our words: numbers that were written as text, and switches that became choices."""
    key, value = found.key, found.value
    if key.endswith("use_max_completion_tokens"):
        return "max_completion_tokens" if _is_yes(value) else "max_tokens"
    if key.endswith("minimax_enable_thinking"):
        return "enabled" if _is_yes(value) else "disabled"
    if key.endswith("qwen_chat_enable_thinking"):  # its `false` never meant more than to say nothing
        return "enabled" if _is_yes(value) else "server_default"
    if key.endswith("temperature") and isinstance(value, str):
        return None if value.strip().lower() in {"none", "off", "null", "omit"} else _number(value)
    if key.endswith(("max_tokens", "timeout_seconds")) and isinstance(value, str):
        return _number(value)
    return value


def _is_yes(value: Json) -> bool:
    return value is True or str(value).strip().lower() in {"true", "yes", "on", "1", "enable", "enabled"}


def _number(text: str) -> Json:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


assert all(ours in (*SHARED_ROLE_KEYS, "model") for names in _OWN_KEYS.values() for ours in names.values())
