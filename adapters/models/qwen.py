"""
Qwen and its like on vLLM or SGLang: `model.backend: qwen_chat`.

Chat completions, with a switch for thinking in the chat template and thoughts that may stand in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.adapters.models import chat_completions
from skillopt_es.adapters.models.endpoint import open_endpoint, refused
from skillopt_es.adapters.models.families import check_no_effort, refuse_others
from skillopt_es.adapters.models.http_model import REAL, HttpModel, Outside, identity_of
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatModel, ModelSettings, provider


@provider(takes=["thinking"], may_think=True, system="qwen")
def open_model(settings: ModelSettings, environ: Mapping[str, str], outside: Outside = REAL) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for what such a server cannot do."""
    refuse_others(settings, open_model.takes)
    check_no_effort(settings)
    return HttpModel(
        settings,
        identity=identity_of(settings, "qwen", settings.base_url, thinking=settings.thinking),
        wire=chat_completions.ChatWire(
            model=settings.model,
            token_field=chat_completions.token_field(settings, chat_completions.LEGACY),
            schemas=settings.structured_output != "off",
            stream=settings.stream,
            split_thinking=True,
            extra=_thinking(settings),
        ),
        endpoint=open_endpoint(settings, environ, chat_completions.PATH),
        outside=outside,
    )


def _thinking(settings: ModelSettings) -> Mapping[str, Json]:
    if settings.thinking == "server_default":
        return {}
    if settings.thinking == "adaptive":
        raise refused(
            settings,
            "thinking",
            " is 'adaptive', but a chat template only thinks or does not",
            hint="set it to enabled, disabled or server_default",
        )
    return {"chat_template_kwargs": {"enable_thinking": settings.thinking == "enabled"}}
