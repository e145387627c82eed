"""MiniMax: `model.backend: minimax_chat`. Chat completions with regions, a thinking switch, and errors inside a 200."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from skillopt_es.adapters.models import chat_completions
from skillopt_es.adapters.models.endpoint import open_endpoint, refused, setting
from skillopt_es.adapters.models.errors import ErrorBody, Failure
from skillopt_es.adapters.models.families import check_no_effort, refuse_others
from skillopt_es.adapters.models.http_model import REAL, HttpModel, Outside, identity_of
from skillopt_es.adapters.models.reading import Object, as_object, as_text
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatModel, FailureKind, ModelSettings, provider

REGIONS = {"global_en": "https://api.minimax.io/v1", "cn_zh": "https://api.minimaxi.com/v1"}
_ALWAYS_THINKS = "minimax-m2"
# MiniMax's own table of `base_resp.status_code`.
_KINDS: Mapping[int, FailureKind] = {
    1002: "rate_limit",
    1039: "rate_limit",
    1004: "auth",
    2049: "auth",
    1008: "quota",
    2013: "config",
}
_FILTERED = (1026, 1027)  # the same table: sensitive content in the question, and in the answer


@provider(takes=["thinking", "region"], may_think=True, system="minimax")
def open_model(settings: ModelSettings, environ: Mapping[str, str], outside: Outside = REAL) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for an unknown region or thinking that cannot stop."""
    refuse_others(settings, open_model.takes)
    check_no_effort(settings)
    base_url = settings.base_url.strip() or _region_url(settings)
    settings = evolve(settings, base_url=base_url)
    return HttpModel(
        settings,
        identity=identity_of(settings, "minimax", base_url, thinking=settings.thinking),
        wire=chat_completions.ChatWire(
            model=settings.model,
            token_field=chat_completions.token_field(settings),
            schemas=settings.structured_output != "off",
            stream=settings.stream,
            split_thinking=True,
            odd_error=_error_in,
            extra={"reasoning_split": True, **_thinking(settings)},
        ),
        endpoint=open_endpoint(settings, environ, chat_completions.PATH),
        own_hint=lambda failed, hint: _hint(failed, hint, settings),
        outside=outside,
    )


def _error_in(parsed: Object) -> ErrorBody | None:
    """The error that stands in a 200 beside an answer, by its number."""
    base = as_object(parsed.get("base_resp"))
    number = base.get("status_code")
    if not number:
        return None
    codes = {f"minimax_{number}", *(["content_filter"] if number in _FILTERED else [])}
    kind = _KINDS.get(number) if isinstance(number, int) else None
    return ErrorBody(as_text(base.get("status_msg")), frozenset(codes), kind=kind)


def _hint(failed: Failure, hint: str, settings: ModelSettings) -> str:
    """A key belongs to one region."""
    if failed.closed or failed.kind != "auth" or not settings.api_key_env:
        return hint
    where = f"{setting(settings.role, 'region')} is {settings.region or 'global_en'}"
    return f"{hint}; a key belongs to one region, and {where}"


def _region_url(settings: ModelSettings) -> str:
    name = settings.region.strip().lower().replace("-", "_") or "global_en"
    if name not in REGIONS:
        raise refused(
            settings,
            "region",
            f" is {settings.region!r}, but MiniMax has {' and '.join(REGIONS)}",
            hint="choose the one where your key was made",
        )
    return REGIONS[name]


def _thinking(settings: ModelSettings) -> Mapping[str, Json]:
    if settings.thinking == "server_default":
        return {}
    if settings.thinking == "disabled" and settings.model.lower().startswith(_ALWAYS_THINKS):
        raise refused(
            settings,
            "thinking",
            f" is 'disabled', but {settings.model} cannot stop thinking",
            hint="leave it out, or use MiniMax-M3",
        )
    return {"thinking": {"type": "disabled" if settings.thinking == "disabled" else "adaptive"}}
