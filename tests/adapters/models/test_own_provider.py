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
from skillopt_es.sessions.opening import open_model, provider_of

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


def failure_of_mist(project: Path, answer: Answer) -> CallFailed:
    """What becomes of a call that is answered so."""
    with ModelServer(lambda _body, _headers: answer) as server:
        chosen = [f"model.{key}" for key in ("backend=mist", f"base_url={server.base_url}", "attempts=1")]
        model = open_model(config(project, [*chosen, "model.patience_seconds=0"]), "target", {})
        with pytest.raises(CallFailed) as caught:
            asyncio.run(asked(model))
    return caught.value


@pytest.mark.parametrize(
    ("fog", "kind", "hint"),
    [("sun", "quota", "wait for evening"), ("dust", "server", ""), ("wind", "rate_limit", "")],
)
def test_a_provider_brings_its_own_errors_and_hints(mist: Path, fog: str, kind: str, hint: str) -> None:
    """They stand in a 200, where no other provider puts them."""
    raw = json.dumps({"choices": [{"message": {"content": "4"}}], "fog": {"because of": fog, "says": "none today"}})
    caught = failure_of_mist(mist, Answer(raw=raw))
    assert "none today" in caught.message
    assert caught.kind == kind
    assert caught.hint.startswith(hint)


@pytest.mark.parametrize(
    ("status", "fog", "kind", "hint"),
    [
        (400, "sun", "quota", "wait for evening"),
        (403, "wind", "rate_limit", ""),
        (400, "dust", "config", "check model.target"),
        (503, "dust", "server", ""),
    ],
)
def test_a_provider_reads_its_errors_at_every_status(mist: Path, status: int, fog: str, kind: str, hint: str) -> None:
    """What it leaves open is said by the status."""
    caught = failure_of_mist(
        mist, Answer(status=status, raw=json.dumps({"fog": {"because of": fog, "says": "none today"}}))
    )
    assert (caught.kind, caught.status) == (kind, status)
    assert caught.message.startswith(f"HTTP {status}: none today")
    assert caught.hint.startswith(hint)


@pytest.mark.parametrize("status", [200, 401])
def test_an_error_that_everybody_understands_comes_before_a_provider_s_own(mist: Path, status: int) -> None:
    """Whatever the status is."""
    known = {"code": "invalid_api_key", "type": "invalid_api_key", "message": "who are you"}
    raw = json.dumps({"error": known, "fog": {"because of": "sun", "says": "none today"}})
    caught = failure_of_mist(mist, Answer(status=status, raw=raw))
    assert (caught.kind, caught.message) == ("auth", "HTTP 401: who are you (invalid_api_key)")


def test_an_error_that_not_even_its_provider_reads_is_quoted(mist: Path) -> None:
    """One of a gateway in front of it, for example."""
    caught = failure_of_mist(mist, Answer(status=400, raw='{"fault": "no route"}'))
    assert (caught.kind, caught.message) == ("config", 'HTTP 400: {"fault": "no route"}')


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
