"""Settings that a backend does not take are refused, not ignored: a switch that does nothing would be believed."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.adapters.models.endpoint import refused
from skillopt_es.ports import ModelSettings

# The settings that only some backends have, what they are when nobody set them, and whose they are.
_SPECIAL: Mapping[str, tuple[object, str]] = {
    "thinking": ("server_default", "anthropic, minimax_chat and qwen_chat"),
    "protocol": ("auto", "openai and azure_openai"),
    "region": ("", "minimax_chat"),
    "api_version": ("", "azure_openai"),
    "auth_mode": ("auto", "azure_openai"),
    "ad_scope": ("", "azure_openai"),
    "managed_identity_client_id": ("", "azure_openai"),
    "allow_hosts": ("", "azure_openai"),
}


def refuse_others(settings: ModelSettings, taken: frozenset[str]) -> None:
    """Raises ConfigError for a special setting that this backend has no use for."""
    for name, (unset, owners) in _SPECIAL.items():
        value = getattr(settings, name)
        if name not in taken and value != unset:
            raise refused(
                settings,
                name,
                f" is {value!r}, but {settings.backend} has no such setting: it is for {owners}",
                hint=f"leave it out, or write it as model.{_other(settings)}_{name} if it is meant for the other role",
            )


def _other(settings: ModelSettings) -> str:
    return "target" if settings.role == "optimizer" else "optimizer"
