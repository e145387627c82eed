"""A model's settings and a question, for tests that only care about one part of them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from skillopt_es.adapters.models import openai
from skillopt_es.adapters.models.http_model import HttpModel, Outside
from skillopt_es.ports import ChatRequest, Message, ModelSettings

SETTINGS = ModelSettings(
    role="target",
    backend="openai",
    model="small",
    base_url="http://127.0.0.1:9/v1",
    api_key_env="",
    timeout_seconds=5,
    concurrency=8,
    requests_per_minute=0,
    tokens_per_minute=0,
    attempts=4,
    backoff_seconds=1,
    backoff_cap_seconds=30,
    token_field="auto",
    structured_output="auto",
    extra_body={},
    extra_headers={},
    protocol="auto",
    stream=False,
    deadline_seconds=3600,
    max_output_tokens=0,
    unsupported_fields="error",
    thinking="server_default",
    region="",
    api_version="",
    auth_mode="auto",
    ad_scope="",
    managed_identity_client_id="",
    allow_hosts="",
    temperature=None,
    reasoning_effort="",
    seed=7,
)
QUESTION = ChatRequest(
    slot="rollout/e1/s1/b0/item-1",
    stage="rollout",
    messages=(Message("system", "Answer briefly."), Message("user", "2+2?")),
    max_tokens=64,
)


def settings(base_url: str, **changes: object) -> ModelSettings:
    """Settings for an endpoint."""
    return evolve(SETTINGS, base_url=base_url, **changes)


def question(number: int = 1, **changes: object) -> ChatRequest:
    """The question of one item."""
    return evolve(QUESTION, slot=f"rollout/e1/s1/b0/item-{number}", **changes)


def open_chat(given: ModelSettings, environ: Mapping[str, str], **outside: object) -> HttpModel:
    """An OpenAI-compatible model under a test's own clock."""
    model = openai.open_model(given, environ, Outside(**outside))  # type: ignore[arg-type]
    assert isinstance(model, HttpModel)
    return model
