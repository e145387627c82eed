"""`doctor` for every backend: a healthy one is ok, and each thing that can be wrong is one sentence with its fix."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.model_server import Answer, Handler, ModelServer
from support.wires import FORMATS, Said

from skillopt_es.sessions.doctor import Examination, examine

KEY = "sk-doctor-0123456789abcdefWXYZ"
READY = Said(text='{"ready": true}')


def examined(folder: Path, model: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """What was found by name: the worst of each, as `status: message | fix`."""
    config = {"model": {"optimizer": "big", "target": "small", "backoff_seconds": 0.01, "attempts": 1, **model}}
    if "backend" in model:
        config["model"]["optimizer_backend"] = model["backend"]
    config["env"] = {"name": "tasks", "data_path": "tasks.jsonl", "split_mode": "field", "grader": "exact"}  # type: ignore[dict-item]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    rows = [{"id": split, "input": split, "expected": "x", "split": split} for split in ("train", "val", "test")]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    what = Examination(
        config=folder / "config.yaml", overrides=(), directory=folder, environ={"TEST_KEY": KEY, **environ}, calls=True
    )

    async def scenario() -> dict[str, str]:
        found: dict[str, str] = {}
        order = ("ok", "warning", "problem")
        async for check in examine(what):
            known = found.get(check.name, "ok").split(":")[0]
            if order.index(check.status) >= order.index(known):
                found[check.name] = f"{check.status}: {check.message} | {check.fix}"
        return found

    return asyncio.run(scenario())


def asked(folder: Path, name: str, handler: Handler, **model: Any) -> dict[str, str]:
    """The same with an endpoint that speaks this format."""
    spoken = FORMATS[name]
    with ModelServer(handler) as server:
        here = {"base_url": spoken.base_url(server.base_url), "api_key_env": "TEST_KEY", **spoken.changes, **model}
        return examined(folder, here, {})


@pytest.mark.parametrize("name", FORMATS)
def test_a_healthy_backend_has_no_problem(name: str, tmp_path: Path) -> None:
    """Key, endpoint, both models and JSON by schema."""
    found = asked(tmp_path, name, lambda _body, _headers: FORMATS[name].answer(READY), thinking=thinking(name))
    for check in ("key", "endpoint", "target", "optimizer", "json"):
        assert found[check].startswith("ok: "), found[check]
    assert "11 tokens in, 5 out" in found["target"]


def thinking(name: str) -> str:
    return "disabled" if name in {"qwen", "minimax"} else "server_default"


def test_thinking_that_is_left_to_the_server_is_a_warning(tmp_path: Path) -> None:
    """Results could not be repeated."""
    found = asked(tmp_path, "qwen", lambda _body, _headers: FORMATS["qwen"].answer(READY), optimizer_thinking="enabled")
    assert found["target"].startswith("warning: model.target_thinking is server_default")
    assert found["optimizer"].startswith("ok")


NOT_FOUND = {"azure-classic": "DeploymentNotFound"}


@pytest.mark.parametrize("name", ["openai", "openai-responses", "azure-classic", "anthropic", "qwen"])
def test_a_wrong_key_and_a_wrong_model_lead_to_their_settings(name: str, tmp_path: Path) -> None:
    """The variable's name, or the role's model; never the key."""
    spoken = FORMATS[name]
    quoted = spoken.refusal(401, "invalid_api_key", f"bad key {KEY}")
    found = asked(tmp_path, name, lambda _body, _headers: quoted)
    assert found["target"].startswith("problem: auth: HTTP 401")
    assert "TEST_KEY" in found["target"]
    assert KEY not in str(found)
    missing = spoken.refusal(404, NOT_FOUND.get(name, "model_not_found"), "there is no such thing")
    found = asked(tmp_path, name, lambda _body, _headers: missing)
    assert "model.target (now 'small')" in found["target"]
    assert "model.optimizer (now 'big')" in found["optimizer"]


WRONG: Mapping[str, tuple[str, Answer, str]] = {
    "api-version": (
        "azure-classic",
        Answer(status=400, error={"code": "BadRequest", "message": "API version not supported"}),
        "change model.target_api_version (or model.api_version) (now '2025-04-01-preview')",
    ),
    "deployment": (
        "azure-classic",
        Answer(status=404, error={"code": "404", "message": "Resource not found"}),
        "model.target_api_version",
    ),
    "region": (
        "minimax",
        Answer(raw=json.dumps({"base_resp": {"status_code": 1004, "status_msg": "login fail"}})),
        "model.target_region (or model.region) is global_en",
    ),
    "balance": (
        "minimax",
        Answer(raw=json.dumps({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}})),
        "top it up",
    ),
    "credit": (
        "anthropic",
        Answer(status=402, raw=json.dumps({"type": "error", "error": {"type": "billing_error", "message": "no"}})),
        "top it up",
    ),
    "page": ("openai", Answer(raw="<html>a router's page</html>"), "base_url"),
    "wrong-path": ("anthropic", Answer(status=404, raw="not found"), "model.target_base_url"),
    "too-long": ("qwen", Answer(status=400, error="maximum context length is 8 tokens"), "accepts too little text"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_only_one_provider_can_get_wrong(what: str, tmp_path: Path) -> None:
    """One sentence with the setting."""
    name, answer, words = WRONG[what]
    found = asked(tmp_path, name, lambda _body, _headers: answer)
    problems = [text for text in found.values() if text.startswith("problem")]
    assert any(words in text for text in problems), problems
    assert all("\n" not in text for text in problems)


@pytest.mark.parametrize(
    ("model", "environ", "check", "words"),
    [
        ({"backend": "anthropic", "api_key_env": "NO_KEY"}, {}, "key", "export NO_KEY="),
        ({"backend": "minimax", "region": "moon"}, {}, "target", "global_en and cn_zh"),
        ({"backend": "azure", "base_url": "https://x.test"}, {}, "target", "allow_hosts"),
        (
            {"backend": "azure", "base_url": "https://x.openai.azure.com"},
            {"PATH": "/nowhere"},
            "target",
            "az login",
        ),
        (
            {"backend": "azure", "azure_openai_endpoint": "x.openai.azure.com"},
            {},
            "target",
            "model.azure_openai_endpoint is x.openai",
        ),
        ({"backend": "qwen"}, {}, "target", "must be like http://host:8000/v1"),
    ],
)
def test_what_can_be_seen_without_a_call(
    model: dict[str, Any], environ: dict[str, str], check: str, words: str, tmp_path: Path
) -> None:
    """Nothing is sent."""
    found = examined(tmp_path, model, environ)
    assert found[check].startswith("problem")
    assert words in found[check]
