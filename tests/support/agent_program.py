"""
An executable that behaves like the command line of a coding agent: its options, its event stream, its bad days.

    python -SE agent_program.py codex SCENARIO.json exec --json …

It refuses options that the real one does not have, reads the skill where the real one looks for it, and writes what it
was given into the scenario's folder. Streams are those of codex-cli 0.169, Claude Code 2.1, Copilot CLI 1.0 and the
documentation of cursor-agent. It needs nothing but the standard library, so that it starts quickly.
"""

# pathlib takes longer to import than all the rest of a run
# ruff: noqa: PTH109, PTH112, PTH118, PTH123, PTH208
from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

# option -> whether a value follows
OPTIONS = {
    "codex": {
        "--json": 0, "--ephemeral": 0, "--ignore-user-config": 0, "--ignore-rules": 0, "--skip-git-repo-check": 0,
        "--color": 1, "--cd": 1, "--sandbox": 1, "-c": 1, "--model": 1, "--output-schema": 1, "-": 0,
    },
    "claude": {
        "-p": 0, "--output-format": 1, "--verbose": 0, "--no-session-persistence": 0, "--setting-sources": 1,
        "--strict-mcp-config": 0, "--permission-mode": 1, "--tools": 1, "--allowedTools": 1, "--disallowedTools": 1,
        "--model": 1, "--effort": 1, "--json-schema": 1,
    },
    "cursor-agent": {
        "-p": 0, "--output-format": 1, "--trust": 0, "--workspace": 1, "--sandbox": 1, "--mode": 1, "--force": 0,
        "--model": 1,
    },
    "copilot": {
        "--output-format": 1, "--stream": 1, "--no-color": 0, "--log-level": 1, "-C": 1, "--disallow-temp-dir": 0,
        "--disable-builtin-mcps": 0, "--no-custom-instructions": 0, "--no-auto-update": 0, "--no-ask-user": 0,
        "--usage-output-file": 1, "--available-tools": 1, "--excluded-tools": 1, "--allow-tool": 1,
        "--allow-all-tools": 0, "--allow-all-urls": 0, "--model": 1, "--reasoning-effort": 1,
    },
}  # fmt: skip
UNKNOWN = {"codex": "error: unexpected argument '{}' found", "copilot": "error: unknown option '{}'"}
SKILLS = {"codex": ".agents", "claude": ".claude", "cursor-agent": ".cursor", "copilot": ".github"}
VERSIONS = {
    "codex": "codex-cli 0.169.0",
    "claude": "2.1.197 (Claude Code)",
    "cursor-agent": "2026.08.11-ab12cd3",
    "copilot": "GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.",
}
SIGN_IN = {"codex": ["login", "status"], "claude": ["auth", "status"], "cursor-agent": ["status"]}


def say(*events: object) -> None:
    for event in events:
        sys.stdout.write((event if isinstance(event, str) else json.dumps(event)) + "\n")
    sys.stdout.flush()


class Codex:
    def begin(self) -> None:
        say({"type": "thread.started", "thread_id": "thread-1"}, {"type": "turn.started"})

    def item(self, **item: object) -> None:
        say({"type": "item.completed", "item": {"id": "item_0", **item}})

    def read(self, path: str, text: str) -> None:
        self.item(type="command_execution", command=f"/bin/bash -lc 'cat {path}'", aggregated_output=text, exit_code=0,
                  status="completed")  # fmt: skip

    def note(self, text: str) -> None:
        self.item(type="agent_message", text=text)

    def answer(self, text: str) -> None:
        self.note(text)
        self.end()

    def end(self) -> None:
        say({"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7,
                                                 "reasoning_output_tokens": 3}})  # fmt: skip

    def fail(self, message: str, status: int | None) -> int:
        say({"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}})
        return 1

    def signed_out(self) -> int:
        return self.fail("Missing environment variable: `CODEX_API_KEY`.", None)


class Claude:
    def begin(self) -> None:
        say({"type": "system", "subtype": "init", "session_id": "session-1", "model": "claude-big", "tools": ["Read"]})

    def block(self, author: str, block: dict[str, object]) -> None:
        say({"type": author, "message": {"role": author, "content": [block]}, "session_id": "session-1"})

    def read(self, path: str, text: str) -> None:
        self.block("assistant", {"type": "tool_use", "id": "tu1", "name": "Read", "input": {"file_path": path}})
        self.block("user", {"type": "tool_result", "tool_use_id": "tu1", "content": text})

    def note(self, text: str) -> None:
        self.block("assistant", {"type": "text", "text": text})

    def result(self, **more: object) -> None:
        usage = {
            "input_tokens": 55,
            "cache_read_input_tokens": 40,
            "cache_creation_input_tokens": 5,
            "output_tokens": 7,
        }
        say(
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "session_id": "session-1",
                "usage": usage,
                **more,
            }
        )

    def answer(self, text: str) -> None:
        if "--json-schema" in ARGUMENTS:
            self.result(result="done", structured_output=json.loads(text))
        else:
            self.note(text)
            self.result(result=text)

    def end(self) -> None:
        self.result(result="")

    def fail(self, message: str, status: int | None) -> int:
        self.note(message)
        self.result(is_error=True, result=message, api_error_status=status)
        return 1

    def signed_out(self) -> int:
        return self.fail("Not logged in · Please run /login", None)


class Cursor:
    def begin(self) -> None:
        say({"type": "system", "subtype": "init", "session_id": "session-1", "model": "Composer"})

    def read(self, path: str, text: str) -> None:
        call = {"readToolCall": {"args": {"path": path}}}
        done = {"readToolCall": {"args": {"path": path}, "result": {"success": {"content": text}}}}
        say({"type": "tool_call", "subtype": "started", "call_id": "c1", "tool_call": call},
            {"type": "tool_call", "subtype": "completed", "call_id": "c1", "tool_call": done})  # fmt: skip

    def note(self, text: str) -> None:
        say({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}})

    def result(self, **more: object) -> None:
        say({"type": "result", "subtype": "success", "is_error": False, "session_id": "session-1", **more})

    def answer(self, text: str) -> None:
        self.note(text)
        self.result(result=text)

    def end(self) -> None:
        self.result(result="")

    def fail(self, message: str, status: int | None) -> int:
        print(message, file=sys.stderr)
        return 1

    def signed_out(self) -> int:
        return self.fail("Error: Authentication required. Please run 'agent login' first, or set CURSOR_API_KEY.", None)


class Copilot:
    def event(self, kind: str, **data: object) -> None:
        say({"type": kind, "data": data, "id": "x", "timestamp": "2026-01-01T00:00:00Z"})

    def begin(self) -> None:
        self.event("session.tools_updated", model="gpt-big")
        self.event("assistant.turn_start", turnId="0")

    def read(self, path: str, text: str) -> None:
        self.event("assistant.message", content="", model="gpt-big", toolRequests=[{"toolCallId": "c1"}])
        self.event("tool.execution_start", toolCallId="c1", toolName="view", arguments={"path": path})
        self.event("tool.execution_complete", toolCallId="c1", success=True, result={"content": text})

    def note(self, text: str) -> None:
        self.event("assistant.message", content=text, model="gpt-big", toolRequests=[])

    def answer(self, text: str) -> None:
        self.note(text)
        self.end()

    def end(self) -> None:
        metrics = {"gpt-big": {"usage": {"inputTokens": 100, "outputTokens": 7, "cacheReadTokens": 40}}}
        with open(value_of("--usage-output-file"), "w") as file:
            json.dump({"modelMetrics": metrics}, file)
        say({"type": "result", "sessionId": "session-1", "exitCode": 0, "usage": {"premiumRequests": 1}})

    def fail(self, message: str, status: int | None) -> int:
        self.event("session.error", errorType="query", statusCode=status, message=message)
        say({"type": "result", "sessionId": "session-1", "exitCode": 1, "usage": {}})
        return 1

    def signed_out(self) -> int:
        print("Error: No authentication information found.\n\nTo authenticate, run '/login'.", file=sys.stderr)
        return 1


Agent = Codex | Claude | Cursor | Copilot
KINDS = {"codex": Codex, "claude": Claude, "cursor-agent": Cursor, "copilot": Copilot}


def value_of(option: str) -> str:
    return ARGUMENTS[ARGUMENTS.index(option) + 1]


def check_options() -> None:
    arguments = ARGUMENTS[1:] if KIND == "codex" else ARGUMENTS
    if KIND == "codex" and ARGUMENTS[:1] != ["exec"]:
        sys.exit("error: unrecognized subcommand")
    known, refused = OPTIONS[KIND], SCENARIO.get("refuses")
    at = 0
    while at < len(arguments):
        option = arguments[at]
        if option not in known or option == refused:
            print(UNKNOWN.get(KIND, "error: unknown option '{}'").format(option), file=sys.stderr)
            sys.exit(2 if KIND == "codex" else 1)
        at += 1 + known[option]
    if KIND == "claude" and value_of("--permission-mode") == "bypassPermissions" and not os.environ.get("IS_SANDBOX"):
        sys.exit("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")


def record(prompt: str) -> None:
    """What the test wants to know of this run."""
    files = sorted(os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names)
    seen = {"argv": ARGUMENTS, "env": dict(os.environ), "cwd": os.getcwd(), "prompt": prompt, "files": files,
            "pid": os.getpid(), "schema": None}  # fmt: skip
    if "--output-schema" in ARGUMENTS:
        with open(value_of("--output-schema")) as file:
            seen["schema"] = json.load(file)
    seen["peeked"] = {path: peek(path) for path in SCENARIO.get("peeks", ())}
    path = os.path.join(SCENARIO["folder"], f"run-{time.time_ns()}-{os.getpid()}.json")
    with open(path, "w") as file:
        json.dump(seen, file)


def peek(path: str) -> str:
    """What it finds where it has no business: a file's beginning, or the names in a folder."""
    path = path.replace("PARENT", str(os.getppid()))
    try:
        if os.path.isdir(path):
            return " ".join(os.listdir(path))
        with open(path, "rb") as file:
            return file.read(200).decode("latin-1")
    except OSError:
        return ""


def skill() -> tuple[str, str]:
    """The trained skill, found as an agent finds it."""
    root = os.path.join(SKILLS[KIND], "skills")
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        path = os.path.join(root, name, "SKILL.md")
        with open(path) as file:
            return path, file.read()
    return "", ""


def scripted(prompt: str, text: str) -> str:
    """What the scripted target says: it is right about the kinds that the skill knows and does not spoil."""
    kind = re.search(r"kind: (\w+)", prompt)
    known = kind and f"know {kind[1]}" in text and f"spoil {kind[1]}" not in text
    return "right" if known else "wrong"


def child(seconds: int) -> None:
    """A process that an agent leaves behind, with the agent's pipes in its hands."""
    words = [sys.executable, "-SE", "-c", f"import time; time.sleep({seconds})"]
    process = subprocess.Popen(words, pass_fds=[HELD.fileno()])
    with open(os.path.join(SCENARIO["folder"], "child"), "w") as file:
        file.write(str(process.pid))


def sleeps(agent: Agent) -> None:
    """Nothing comes any more."""
    time.sleep(900)


def asks_again_for_ever(agent: Agent) -> None:
    """Its provider refuses each request, and it reports each repeated one, as Claude Code does; `tries` of ten."""
    for attempt in range(1, 1 + SCENARIO.get("tries", 10)):
        say({"type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": 10, "retry_delay_ms": 50.5,
             "error_status": SCENARIO.get("status"), "error": SCENARIO["message"]})  # fmt: skip
        time.sleep(0.05)
    time.sleep(900)


def works_on_for_ever(agent: Agent) -> None:
    """It does things, has a child, and does not want to be ended."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    agent.read("x", "y")
    child(900)
    time.sleep(900)


def floods(agent: Agent) -> None:
    """Output without end."""
    line = json.dumps({"type": "noise", "text": "x" * 65_000})
    while True:
        say(line)


def is_killed(agent: Agent) -> None:
    """Somebody else ends it."""
    agent.read("x", "y")
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(agent: Agent) -> int:
    """A fault of its own, after a word that looks like an answer."""
    agent.note("the answer is near")
    print("Traceback\nerror: something broke inside", file=sys.stderr)
    return 3


# The days on which there is no proper answer, after a proper beginning; what they return is the exit code.
BAD_DAYS = {
    "silent": lambda agent: agent.end(),
    "hang": sleeps,
    "asks_again": asks_again_for_ever,
    "stubborn": works_on_for_ever,
    "flood": floods,
    "killed": is_killed,
    "crashed": crashes,
    "cut": lambda agent: agent.note("the answer is near"),
    "fails": lambda agent: agent.fail(SCENARIO["message"], SCENARIO.get("status")),
}


def good_day(agent: Agent, mode: str, prompt: str) -> None:
    """It reads the skill and answers, with or without oddities."""
    path, text = skill()
    if path and not SCENARIO.get("quiet"):
        agent.read(path, text)
    if mode == "garbage":
        sys.stdout.buffer.write(b'\xff\xfe not json {\n[1, 2]\n\n{"type": 7}\n{"cut": \n')
        agent.note("on my way")
    if mode == "leaves_child":
        child(900)
    agent.answer(SCENARIO.get("answer") or scripted(prompt, text))
    if mode == "slow_to_leave":
        time.sleep(900)


def main() -> int:
    """One run."""
    mode = SCENARIO.get("mode", "works")
    if ARGUMENTS[:1] == ["--version"]:
        print(VERSIONS[KIND])
        return 0
    if SIGN_IN.get(KIND) == ARGUMENTS:
        print("Not logged in" if mode == "signed_out" else "Logged in", file=sys.stderr)
        return 1 if mode == "signed_out" else 0
    check_options()
    prompt = sys.stdin.read()
    record(prompt)
    if mode == "prose":
        print("Hello! I am not an agent.")
        return 0
    if mode == "empty_once":
        mode = "works" if "ended without an answer" in prompt else "silent"
    agent = KINDS[KIND]()
    if mode == "signed_out":
        return agent.signed_out()
    agent.begin()
    if mode in BAD_DAYS:
        return BAD_DAYS[mode](agent) or 0
    good_day(agent, mode, prompt)
    return 0


if __name__ == "__main__":
    KIND, ARGUMENTS = sys.argv[1], sys.argv[3:]
    with open(sys.argv[2]) as _file:
        SCENARIO = json.load(_file)
    HELD = open(os.path.join(SCENARIO["folder"], "held"), "w")  # noqa: SIM115 -- for as long as this and its child live
    fcntl.flock(HELD, fcntl.LOCK_SH)
    sys.exit(main())
