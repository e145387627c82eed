"""A provider of somebody else: one module and an entry point, and whoever asks knows what is special about it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from support.chat import question, settings
from support.model_server import Answer, ModelServer
from support.scripted import config

from skillopt_es.adapters.models import openai
from skillopt_es.errors import ConfigError
from skillopt_es.ports import CallFailed, ChatModel
from skillopt_es.sessions.wiring import open_model, provider_of

MODULE = '''
"""Mist: chat completions that report their errors as fog."""

from skillopt_es.adapters.models import chat_completions
from skillopt_es.adapters.models.endpoint import open_endpoint
from skillopt_es.adapters.models.errors import ErrorBody
from skillopt_es.adapters.models.families import refuse_others
from skillopt_es.adapters.models.http_model import HttpModel, identity_of
from skillopt_es.ports import provider

KINDS = {"sun": "quota", "wind": "rate_limit"}


def error_in(parsed):
    fog = parsed.get("fog")
    return None if fog is None else ErrorBody(fog["says"], kind=KINDS.get(fog["because of"]))


@provider(takes=["thinking"], may_think=True, system="mist.ai")
def open_model(settings, environ):
    refuse_others(settings, open_model.takes)
    return HttpModel(
        settings,
        identity=identity_of(settings, "mist", settings.base_url),
        wire=chat_completions.ChatWire(model=settings.model, odd_error=error_in),
        endpoint=open_endpoint(settings, environ, chat_completions.PATH),
        own_hint=lambda failed, hint: "wait for evening" if failed.kind == "quota" else hint,
    )
'''


@pytest.fixture
def mist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that brings a provider, and room for a config."""
    package = tmp_path / "site"
    (package / "mist-1.dist-info").mkdir(parents=True)
    (package / "mist-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mist\nVersion: 1\n")
    (package / "mist-1.dist-info" / "entry_points.txt").write_text("[skillopt_es.models]\nmist = mist:open_model\n")
    (package / "mist.py").write_text(MODULE)
    monkeypatch.syspath_prepend(package)
    monkeypatch.delitem(sys.modules, "mist", raising=False)
    return tmp_path / "project"


async def asked(model: ChatModel) -> None:
    """Asks it once."""
    try:
        await model.complete(question())
    finally:
        await model.aclose()


@pytest.mark.parametrize(
    ("fog", "kind", "hint"),
    [("sun", "quota", "wait for evening"), ("dust", "server", ""), ("wind", "rate_limit", "")],
)
def test_a_provider_brings_its_own_errors_and_hints(mist: Path, fog: str, kind: str, hint: str) -> None:
    """They stand in a 200, where no other provider puts them."""
    raw = json.dumps({"choices": [{"message": {"content": "4"}}], "fog": {"because of": fog, "says": "none today"}})
    with ModelServer(lambda _body, _headers: Answer(raw=raw)) as server:
        chosen = [f"model.{key}" for key in ("backend=mist", f"base_url={server.base_url}", "attempts=1")]
        model = open_model(config(mist, [*chosen, "model.patience_seconds=0"]), "target", {})
        with pytest.raises(CallFailed, match="none today") as caught:
            asyncio.run(asked(model))
    assert caught.value.kind == kind
    assert caught.value.hint.startswith(hint)


def test_what_a_provider_says_of_itself_is_known_everywhere(mist: Path) -> None:
    """To traces, to `doctor`, and to those whose backend has no such setting."""
    mists = provider_of("mist")
    assert mists is not None
    assert (mists.system, mists.may_think, mists.agent) == ("mist.ai", True, False)
    with pytest.raises(ConfigError, match="it is for anthropic, minimax_chat, mist and qwen_chat"):
        openai.open_model(settings("http://127.0.0.1:9/v1", thinking="enabled"), {})


def test_a_backend_that_is_not_installed_has_nothing_special() -> None:
    """As of a run that was made elsewhere; nor has one that is a bare function."""
    assert provider_of("mist") is None
    assert provider_of("handoff") is None
