"""What a user can do about a failed call, in terms of their own config."""

from __future__ import annotations

from collections.abc import Callable

from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.adapters.models.known import KNOWN
from skillopt_es.ports import FailureKind, ModelSettings

OwnHint = Callable[[Failure, str], str]
"""What a provider says about a failure, given what is said of any: that as well, or something else."""


def as_for_any(failed: Failure, hint: str) -> str:
    """Most providers have nothing of their own to say."""
    return hint


def hint_for(failed: Failure, settings: ModelSettings) -> str:
    """The next step after this failure; empty when there is nothing sensible to say."""
    role = settings.role
    if failed.closed and failed.kind in ("server", "transport"):
        return (
            f"is the endpoint up? {setting(role, 'base_url')} is {settings.base_url}; "
            f"to give up a question that always fails, set {setting(role, 'patience_seconds')} to 0"
        )
    if failed.closed:
        return f"give it time, or raise {setting(role, 'patience_seconds')}"
    by_kind: dict[FailureKind, str] = {
        "auth": _auth_hint(settings),
        "config": _config_hint(failed, settings),
        "quota": "the account has no credit left: top it up",
        "rate_limit": f"lower {setting(role, 'concurrency')}, or set model.requests_per_minute",
        "timeout": f"{setting(role, 'timeout_seconds')} is {settings.timeout_seconds:g}",
        "transport": f"is the endpoint up? {setting(role, 'base_url')} is {settings.base_url}",
    }
    return by_kind.get(failed.kind, "")


def _auth_hint(settings: ModelSettings) -> str:
    if not settings.api_key_env:
        return f"name the environment variable that holds the key in {setting(settings.role, 'api_key_env')}"
    return f"check the key in the environment variable {settings.api_key_env}"


def _config_hint(failed: Failure, settings: ModelSettings) -> str:
    if no_such_model(failed):
        return what_to_check(settings)
    if failed.status is not None and 300 <= failed.status < 400:
        return f"redirects are not followed: write the final address into {setting(settings.role, 'base_url')}"
    complaint = f"{failed.param} {failed.message}"
    named = next((hint for name, hint in KNOWN.field_hints.items() if name in complaint), "")
    return named or what_to_check(settings)


def what_to_check(settings: ModelSettings, also: str = "") -> str:
    """The settings that say which model is asked, and where."""
    where = f"{also}{setting(settings.role, 'base_url')} (now {settings.base_url})"
    return f"check model.{settings.role} (now {settings.model!r}) and {where}"


def no_such_model(failed: Failure) -> bool:
    """Whether the endpoint says that there is no such model, or nothing at this address."""
    return failed.status == 404 or bool(failed.codes & KNOWN.model_codes)
