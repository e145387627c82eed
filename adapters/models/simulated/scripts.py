"""Tasks on workbooks: how the simulated target tries its script."""

from __future__ import annotations

import json

from skillopt_es.events.values import Json
from skillopt_es.ports import ChatRequest, ToolCall

_FILE = "solution.py"
_TOOLS = frozenset({"write_file", "bash"})
_FENCE = "```python\n"
_PATHS = 'INPUT_PATH, OUTPUT_PATH = "input.xlsx", "output.xlsx"\n'


def next_request(request: ChatRequest, answer: str) -> ToolCall | None:
    """What the target asks its tools for next to give this answer; None without such tools, or when it is done."""
    if not {tool.name for tool in request.tools} >= _TOOLS or not answer.startswith(_FENCE):
        return None
    script = _PATHS + answer.removeprefix(_FENCE).removesuffix("```")
    steps: tuple[tuple[str, dict[str, Json]], ...] = (
        ("write_file", {"path": _FILE, "content": script}),
        ("bash", {"cmd": f"python {_FILE}"}),
    )
    done = sum(len(message.tool_calls) for message in request.messages)
    if done >= len(steps):
        return None
    tool, arguments = steps[done]
    return ToolCall(f"call-{done + 1}", tool, json.dumps(arguments))
