"""What of a run's settings may be shown to others."""

from __future__ import annotations

from skillopt_es.runs.run_settings import shareable


def test_what_could_hold_a_secret_stays_here() -> None:
    """Keys, headers and bodies are left out, of addresses the host remains."""
    settings = {
        "model.base_url": "https://me:geheim@api.example.com:8443/v1?key=geheim",
        "model.target_base_url": "http://localhost:8000/v1",
        "model.api_key_env": "GEHEIM",
        "model.optimizer_api_key_env": "GEHEIM",
        "model.extra_headers": {"x-team": "geheim"},
        "model.target_extra_body": {"token": "geheim"},
        "model.agent_env": "GEHEIM",
        "model.agent_command": "/home/geheim/bin/agent",
        "model.managed_identity_client_id": "geheim",
        "env.search_token": "geheim",
        "azure_openai_endpoint": "https://geheim:geheim@x.openai.azure.com/",
        "train.batch_size": 12,
    }
    assert shareable(settings) == {
        "azure_openai_endpoint": "x.openai.azure.com",
        "model.base_url": "api.example.com",
        "model.target_base_url": "localhost",
        "train.batch_size": 12,
    }
