"""
A loopback endpoint for the real command lines: it reads the skill with the agent's own tool, then answers by it.

It speaks what they speak: Responses (Codex), Messages (Claude Code), Chat Completions (Copilot), all as event streams.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from support.agent_program import scripted

Json = dict[str, Any]
_PLACE = re.compile(r"in (\S+/SKILL\.md)")
_DEED = re.compile(r"First (read|ask|enter) (\S+)\.")


def _next(prompt: str, results: Sequence[str]) -> tuple[str, str]:
    """
    What a model would do: ("read", path) first, ("answer", text) when it has read.

    A task may say what comes first: to `read` a file, to `ask` for a skill by name, to read what is in a folder from
    within (`enter`).
    """
    deeds = _DEED.findall(prompt)
    if len(results) < len(deeds):
        what, text = deeds[len(results)]
        return str(what), str(text)
    place = _PLACE.search(prompt)
    if place is not None and not results:
        return "read", place[1]
    return "answer", scripted(prompt, "\n".join(results))


def _stream(events: Sequence[Json]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def responses(body: Json) -> bytes:
    """The Responses API, with Codex's shell tool."""
    said = [part["text"] for item in body["input"] for part in item.get("content") or [] if "text" in part]
    results = [str(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]
    what, text = _next("\n".join(said), results)
    if what != "answer":
        command = {"cmd": "cat SKILL.md", "workdir": text} if what == "enter" else {"cmd": f"cat {text}"}
        item: Json = {
            "type": "function_call",
            "id": f"f{len(results)}",
            "call_id": f"c{len(results)}",
            "name": "exec_command",
            "arguments": json.dumps(command),
        }
    else:
        item = {"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": text}]}
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 55,
    }
    return _stream(
        [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
        ]
    )


def messages(body: Json) -> bytes:
    """The Messages API, with Claude Code's Read tool."""
    parts = [part for each in body["messages"] for part in each["content"] if isinstance(part, dict)]
    prompt = "\n".join(part["text"] for part in parts if part.get("type") == "text")
    results = [json.dumps(part["content"]) for part in parts if part.get("type") == "tool_result"]
    what, text = _next(prompt, results)
    if what != "answer":
        asks = what == "ask"
        # Two calls of one name would be one to Claude Code.
        block: Json = {"type": "tool_use", "id": f"t{len(results)}", "name": "Skill" if asks else "Read", "input": {}}
        wanted = {"skill": text} if asks else {"file_path": text}
        delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(wanted)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 30, "cache_read_input_tokens": 20, "output_tokens": 1},
    }
    stop = "end_turn" if what == "answer" else "tool_use"
    return _stream(
        [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
    )


def chat(body: Json) -> bytes:
    """Chat Completions, with Copilot's view tool."""
    prompt = "\n".join(str(each["content"]) for each in body["messages"] if each["role"] == "user")
    results = [str(each["content"]) for each in body["messages"] if each["role"] == "tool"]
    what, text = _next(prompt, results)
    if what != "answer":
        asks = what == "ask"
        call = {"name": "skill" if asks else "view", "arguments": json.dumps({"skill" if asks else "path": text})}
        delta: Json = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"c{len(results)}", "type": "function", "function": call}],
        }
    else:
        delta = {"role": "assistant", "content": text}
    head = {"id": "x", "object": "chat.completion.chunk", "model": body["model"]}
    finish = "stop" if what == "answer" else "tool_calls"
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"content": None, **delta}, "finish_reason": finish}
        return json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {
            **head,
            "choices": [{"index": 0, "delta": {}, "finish_reason": finish}],
            "usage": usage,
        },
    ]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"


WIRES: dict[str, Callable[[Json], bytes]] = {
    "/responses": responses,
    "/messages": messages,
    "/chat/completions": chat,
}


class AgentEndpoint:
    """The endpoint; `with AgentEndpoint() as endpoint:` gives it a port; `keys` and `bodies` are what was sent."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.bodies: list[str] = []
        keys, bodies = self.keys, self.bodies

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words: object) -> None:
                """Says nothing."""

            def do_POST(self) -> None:
                """Answers any of the wires."""
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                wire = next((make for end, make in WIRES.items() if self.path.split("?")[0].endswith(end)), None)
                keys.append(self.headers.get("authorization") or self.headers.get("x-api-key") or "")
                bodies.append(raw.decode())
                body = b"{}" if wire is None else wire(json.loads(raw))
                self.send_response(404 if wire is None else 200)
                self.send_header("content-type", "application/json" if body[:1] == b"{" else "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
