"""Images in a question, in each wire format; a model that takes none is refused before a run."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from support.chat import question, settings
from support.model_server import ModelServer
from support.pictures import JPEG, page
from support.scripted import ScriptedEnvironment, ScriptedModel, target_reply
from support.wires import FORMATS, Format, Said

from skillopt_es.adapters.models.http_model import REAL
from skillopt_es.errors import ConfigError
from skillopt_es.ports import Image, Message
from skillopt_es.sessions.wiring import check_target

PNG = page(["42"])
SHOWN = (Image("image/png", PNG, "high"), Image("image/jpeg", JPEG))
TALK = (Message("system", "Read."), Message("user", "What is it?", images=SHOWN))
P64, J64 = (base64.b64encode(data).decode() for data in (PNG, JPEG))


def sent(spoken: Format) -> dict[str, Any]:
    """The body that asks about the two images."""

    async def ask(url: str) -> None:
        model = spoken.model(settings(url, api_key_env="KEY"), {"KEY": "sk-0123456789"}, REAL)
        await model.complete(question(messages=TALK))
        await model.aclose()

    with ModelServer(lambda _body, _headers: spoken.answer(Said())) as server:
        asyncio.run(ask(server.base_url))
    body: dict[str, Any] = server.requests[0].body
    return body


def test_chat_completions_has_image_urls() -> None:
    """Each holds its whole image; `auto` is not said."""
    assert sent(FORMATS["openai"])["messages"][-1]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{P64}", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{J64}"}},
    ]


def test_responses_has_input_images() -> None:
    """Text becomes a part of its own kind."""
    assert sent(FORMATS["openai-responses"])["input"][-1]["content"] == [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{P64}", "detail": "high"},
        {"type": "input_image", "image_url": f"data:image/jpeg;base64,{J64}"},
    ]


def test_messages_has_image_blocks() -> None:
    """In base64, without a detail: there is no word for it."""
    assert sent(FORMATS["anthropic"])["messages"][-1]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": P64}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": J64}},
    ]


class Seeing(ScriptedEnvironment):
    """Shows images."""

    requires = frozenset({"text", "images", "image_detail"})


@pytest.mark.parametrize(
    ("name", "missing"), [("openai", ""), ("openai-responses", ""), ("anthropic", "image_detail"), ("", "images")]
)
def test_a_model_that_cannot_take_them_is_refused(name: str, missing: str) -> None:
    """Before anything is asked, with what it lacks."""
    given: Any = ScriptedModel("blind", target_reply)
    if name:
        given = FORMATS[name].model(
            settings("http://127.0.0.1:9/v1", api_key_env="KEY"), {"KEY": "sk-0123456789"}, REAL
        )
    if not missing:
        return check_target(given, Seeing())
    with pytest.raises(ConfigError, match=f"needs .*{missing}"):
        check_target(given, Seeing())
    return None


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_only_a_user_shows_images(role: Any) -> None:
    """So that no wire format has to leave one out."""
    with pytest.raises(ValueError, match="no wire format has images"):
        Message(role, "look", images=SHOWN)
