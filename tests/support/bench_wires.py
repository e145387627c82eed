"""One short answer in each wire format, for benchmarks: `--handler support.bench_wires:anthropic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.model_server import Answer, Handler
from support.wires import FORMATS, Said


def _handler(name: str, *, stream: bool = False) -> Handler:
    ready = FORMATS[name].answer(Said(text="<answer>Paris</answer>"), stream=stream)

    def handler(_body: Any, _headers: Mapping[str, str]) -> Answer:
        return ready

    return handler


openai = _handler("openai")
openai_streamed = _handler("openai", stream=True)
responses = _handler("openai-responses")
azure = _handler("azure-classic")
anthropic = _handler("anthropic")
anthropic_streamed = _handler("anthropic", stream=True)
qwen = _handler("qwen")
minimax = _handler("minimax")
