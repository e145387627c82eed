"""Coding agents on a PATH of their own: real processes that behave like the real command lines."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from skillopt_es.adapters.harnesses.agent import Agent
from skillopt_es.adapters.harnesses.claude_code import ClaudeCode
from skillopt_es.adapters.harnesses.codex import Codex
from skillopt_es.adapters.harnesses.copilot import Copilot
from skillopt_es.adapters.harnesses.cursor import Cursor
from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.ports import AgentSettings, ModelSettings
from support.chat import SETTINGS
from support.ready import PATIENCE

AGENTS: Mapping[str, type[Agent]] = {"codex": Codex, "claude_code": ClaudeCode, "cursor": Cursor, "copilot": Copilot}
OPTIMIZERS = ("codex", "claude_code", "copilot")
PROGRAM = Path(__file__).parent / "agent_program.py"
AGENT_SETTINGS = AgentSettings(command="", access="read", network=False, env=(), processes=4)


@frozen
class InstalledAgent:
    """An agent on PATH, how it is to behave, and what its runs were given."""

    name: str
    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """The environment of whoever runs skillopt-es."""
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "sk-of-somebody-else",
        }

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What each run was given, in the order in which they began."""
        return [json.loads(file.read_text()) for file in sorted(self.folder.glob("run-*.json"))]

    @property
    def gone(self) -> bool:
        """Whether nothing lives that a run has started; who runs outside of our process space has no number here."""
        return all_gone(self.folder / "held")

    def behaves(self, **scenario: object) -> None:
        """From now on it is like this."""
        (self.folder / "scenario.json").write_text(json.dumps({"folder": str(self.folder), **scenario}))

    def settings(self, **changes: object) -> ModelSettings:
        """Settings of a role that is this agent; `agent_…` are those of the agent."""
        own = {key.removeprefix("agent_"): changes.pop(key) for key in list(changes) if key.startswith("agent_")}
        base = evolve(SETTINGS, backend=self.name, base_url="", backoff_seconds=0.01, backoff_cap_seconds=0.01)
        return evolve(base, agent=evolve(AGENT_SETTINGS, **own), **{"timeout_seconds": 20, **changes})

    def opened(self, environ: Mapping[str, str] | None = None, **changes: object) -> Harness:
        """The agent as a model."""
        given = self.environ if environ is None else environ
        return Harness(AGENTS[self.name](), self.settings(**changes), given, grace=0.2)


def installed(name: str, folder: Path, **scenario: object) -> InstalledAgent:
    """Puts an agent on PATH."""
    (folder / "bin").mkdir(parents=True)
    (folder / "home").mkdir()
    program = AGENTS[name]().program
    words = [sys.executable, "-SE", str(PROGRAM), program, str(folder / "scenario.json")]
    file = folder / "bin" / program
    file.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    file.chmod(0o755)
    agent = InstalledAgent(name, folder)
    agent.behaves(**scenario)
    return agent


def all_gone(held: Path) -> bool:
    """Whether no process is left that holds a file's lock; one that was killed takes a moment to die."""
    until = time.monotonic() + PATIENCE
    with held.open() as file:
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            else:
                return True
    return False
