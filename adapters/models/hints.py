"""What a user can do about a failed call, in terms of their own config."""

from __future__ import annotations

from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.models.errors import MODEL_CODES, Failure
from skillopt_es.ports import FailureKind, ModelSettings

_FIELD_HINTS = {
    "max_completion_tokens": "set model.token_field to the field that the message names",
    "max_tokens": "set model.token_field to the field that the message names",
    "response_format": "set model.structured_output: off",
    "output_config.format": "set model.structured_output: off",
    "text.format": "set model.structured_output: off",
    "json_schema": "set model.structured_output: off",
    "reasoning_effort": "see model.reasoning_effort: this model may not take it",
    "effort": "see model.reasoning_effort: this model may not take it",
    "thinking": "see model.thinking: this model may not take it",
    "enable_thinking": "see model.thinking: this model may not take it",
    "max_output_tokens": "lower env.max_completion_tokens or optimizer.max_completion_tokens",
    "temperature": "see model.temperature: this model may not take it",
}
_SIGN_IN = {
    "azure_cli": "run `az login` with an account of this tenant",
    "managed_identity": "check model.managed_identity_client_id and the identity of this machine",
    "workload_identity": "check AZURE_CLIENT_ID, AZURE_TENANT_ID and the federated token",
    "service_principal": "check AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
}


def hint_for(failed: Failure, settings: ModelSettings) -> str:
    """The next step after this failure; empty when there is nothing sensible to say."""
    role = settings.role
    if failed.closed:
        return f"give it time, or raise {setting(role, 'patience_seconds')}"
    by_kind: dict[FailureKind, str] = {
        "auth": _auth_hint(settings),
        "config": _config_hint(failed, settings),
        "quota": "the account has no credit left: top it up",
        "rate_limit": f"lower {setting(role, 'concurrency')}, or set model.requests_per_minute",
        "timeout": f"{setting(role, 'timeout_seconds')} is {settings.timeout_seconds:g}",
        "invalid_reply": _reply_hint(failed, settings),
        "transport": f"is the endpoint up? {setting(role, 'base_url')} is {settings.base_url}",
    }
    return by_kind.get(failed.kind, "")


def _reply_hint(failed: Failure, settings: ModelSettings) -> str:
    too_long = "max_reply_bytes" in failed.message
    return f"{setting(settings.role, 'max_reply_bytes')} is {settings.max_reply_bytes}" if too_long else ""


def _auth_hint(settings: ModelSettings) -> str:
    if settings.auth_mode in _SIGN_IN:
        return f"{_SIGN_IN[settings.auth_mode]}; it needs the role Cognitive Services OpenAI User on the resource"
    if not settings.api_key_env:
        return f"name the environment variable that holds the key in {setting(settings.role, 'api_key_env')}"
    where = f"; a key is of one region, and {setting(settings.role, 'region')} is {settings.region or 'global_en'}"
    key = f"check the key in the environment variable {settings.api_key_env}"
    return key + where if settings.backend == "minimax_chat" else key


def _config_hint(failed: Failure, settings: ModelSettings) -> str:
    if settings.backend == "azure_openai" and "api version" in failed.message.lower().replace("-", " "):
        return f"change {setting(settings.role, 'api_version')} (now {settings.api_version!r})"
    if failed.status == 404 or failed.codes & MODEL_CODES:
        where = setting(settings.role, "base_url")
        if settings.backend == "azure_openai":
            where = f"{setting(settings.role, 'api_version')} (now {settings.api_version!r}), {where}"
        return f"check model.{settings.role} (now {settings.model!r}) and {where} (now {settings.base_url})"
    if failed.status is not None and 300 <= failed.status < 400:
        return f"redirects are not followed: write the final address into {setting(settings.role, 'base_url')}"
    complaint = f"{failed.param} {failed.message}"
    named = next((hint for name, hint in _FIELD_HINTS.items() if name in complaint), "")
    where = setting(settings.role, "base_url")
    return named or f"check model.{settings.role} (now {settings.model!r}) and {where} (now {settings.base_url})"
