"""OpenAI, and every server that speaks its chat completions or responses: `model.backend: openai`."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.adapters.models import chat_completions, responses
from skillopt_es.adapters.models.endpoint import open_endpoint
from skillopt_es.adapters.models.families import check_openai, refuse_others
from skillopt_es.adapters.models.http_model import REAL, HttpModel, Outside, identity_of
from skillopt_es.adapters.models.known import KNOWN
from skillopt_es.adapters.models.reading import Wire
from skillopt_es.ports import ChatModel, ModelSettings, provider


@provider(takes=["protocol"])
def open_model(settings: ModelSettings, environ: Mapping[str, str], outside: Outside = REAL) -> ChatModel:
    """A model that is ready to be asked; raises ConfigError for an unusable URL, key variable or extra field."""
    refuse_others(settings, open_model.takes)
    check_openai(settings)
    wire, path, api = wire_for(settings)
    return HttpModel(
        settings,
        identity=identity_of(settings, api, settings.base_url),
        wire=wire,
        endpoint=open_endpoint(settings, environ, path),
        outside=outside,
    )


def wire_for(settings: ModelSettings) -> tuple[Wire, str, str]:
    """The wire format that the settings ask for, its path under the base URL, and its name."""
    schemas = settings.structured_output != "off"
    if uses_responses(settings):
        wire = responses.ResponsesWire(model=settings.model, schemas=schemas, stream=settings.stream)
        return wire, responses.PATH, "openai-responses"
    chat = chat_completions.ChatWire(
        model=settings.model,
        token_field=chat_completions.token_field(settings),
        schemas=schemas,
        stream=settings.stream,
    )
    return chat, chat_completions.PATH, "openai"


def uses_responses(settings: ModelSettings) -> bool:
    """Whether this model is asked through the responses endpoint."""
    if settings.protocol != "auto":
        return settings.protocol == "responses"
    name = settings.model.lower()
    return any(name == known or name.startswith(f"{known}-") for known in KNOWN.responses_only)
