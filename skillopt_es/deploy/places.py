"""Where coding agents look for skills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Scope = Literal["user", "project"]
AGENTS = ("claude", "codex")


def skills_folder(to: str, scope: Scope, *, home: Path, project: Path, environ: Mapping[str, str]) -> Path:
    """The folder of an agent's skills, for its user or for one project; any other word is a folder itself."""
    if to not in AGENTS:
        return Path(to).expanduser()
    if to == "codex":
        return (home if scope == "user" else project) / ".agents" / "skills"
    if scope == "project":
        return project / ".claude" / "skills"
    return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude").expanduser() / "skills"
