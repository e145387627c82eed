"""The checks that any adapter can run, run on ours and on some that are wrong."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping

import pytest
from attrs import evolve
from support.chat import settings
from support.wires import FORMATS, Said

from skillopt_es.adapters.models import simulated
from skillopt_es.errors import ConfigError
from skillopt_es.ports import ALONE, ChatModel, ChatReply, ChatRequest, Course, ModelSettings
from skillopt_es.testing.models import MODEL_CHECKS, ModelCase

CASES: Mapping[str, ModelCase] = {
    "simulated": ModelCase(open=simulated.open_model, settings=evolve(settings(""), role="optimizer")),
    **{
        name: ModelCase(
            open=spoken.open,  # type: ignore[arg-type]  # time and chance have their defaults
            settings=evolve(settings("http://127.0.0.1:9" + spoken.root, api_key_env="K"), **spoken.changes),
            environ={"K": "sk-conformance-of-ours-0123456789"},
            answers=lambda text, spoken=spoken: json.dumps(spoken.writes(Said(text=text))).encode(),  # type: ignore[misc]
            base_path=spoken.root,
        )
        for name, spoken in FORMATS.items()
    },
}


@pytest.mark.parametrize("check", MODEL_CHECKS)
@pytest.mark.parametrize("name", CASES)
def test_our_adapters_keep_to_it(name: str, check: str) -> None:
    """All of them, all of it."""
    MODEL_CHECKS[check](CASES[name])


class Wrong:
    """An adapter with every mistake that the checks look for."""

    opened = 0

    def __init__(self, given: ModelSettings, environ: Mapping[str, str]) -> None:
        Wrong.opened += 1
        os.environ["WRONG_ADAPTER"] = given.model
        self.identity = f"wrong {Wrong.opened} {dict(environ)}"
        self.loop: asyncio.AbstractEventLoop | None = None
        self.left: list[asyncio.Task[None]] = []

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """Leaves a task behind, belongs to one loop, and makes up numbers."""
        self.loop = self.loop or asyncio.get_running_loop()
        assert self.loop is asyncio.get_running_loop(), "another loop"
        self.left.append(asyncio.create_task(asyncio.sleep(60)))
        await asyncio.sleep(0)
        return ChatReply(text="4", finish="done", latency_ms=-1)  # type: ignore[arg-type]

    async def aclose(self) -> None:
        """Only once."""
        self.identity = self.identity[:-1]
        assert not getattr(self, "closed", False), "closed already"
        self.closed = True


def open_wrong(given: ModelSettings, environ: Mapping[str, str]) -> ChatModel:
    """For any settings."""
    if given.api_key_env == "NO_SUCH_VARIABLE":
        raise ConfigError("there is no key")
    return Wrong(given, environ)


@pytest.mark.parametrize("check", list(MODEL_CHECKS)[:8])
def test_a_wrong_adapter_is_told_so(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check finds its own mistake."""
    monkeypatch.delenv("WRONG_ADAPTER", raising=False)
    monkeypatch.setenv("KEEP", "1")
    try:
        with pytest.raises(AssertionError):
            MODEL_CHECKS[check](ModelCase(open=open_wrong, settings=settings(""), environ={"K": "sk-0123456789"}))
    finally:
        os.environ.pop("WRONG_ADAPTER", None)
