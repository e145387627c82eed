"""Where coding agents look for skills, as their own documentation says."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from attrs import frozen

from skillopt_es.errors import OutputRefused

Scope = Literal["user", "project"]


@frozen
class _Looks:
    """
    Where an agent looks: below the user's home, and below a project.

    `moved_by` is the variable that names another place than the first part of `user`.
    """

    user: str
    project: str
    moved_by: str = ""


_LOOKS: Mapping[str, _Looks] = {
    "claude": _Looks(".claude/skills", ".claude/skills", moved_by="CLAUDE_CONFIG_DIR"),
    "codex": _Looks(".agents/skills", ".agents/skills"),
    "copilot": _Looks(".copilot/skills", ".github/skills", moved_by="COPILOT_HOME"),
    "cursor": _Looks(".cursor/skills", ".cursor/skills"),
    "gemini": _Looks(".gemini/skills", ".gemini/skills"),
    "opencode": _Looks(".config/opencode/skills", ".opencode/skills"),
    "agents": _Looks(".agents/skills", ".agents/skills"),  # which several of them read as well
}
AGENTS = tuple(_LOOKS)


def skills_folder(to: str, scope: Scope, *, home: Path, project: Path, environ: Mapping[str, str]) -> Path:
    """The folder of an agent's skills, for its user or for one project; anything that is a path is a folder itself."""
    looks = _LOOKS.get(to)
    if looks is None:
        return _folder(to, project)
    if scope == "project":
        return project / looks.project
    moved = environ.get(looks.moved_by) if looks.moved_by else None
    return Path(moved).expanduser() / "skills" if moved else home / looks.user


def _folder(to: str, project: Path) -> Path:
    """A folder that is named as one; raises OutputRefused for a mere word, which may be meant as an agent."""
    path = Path(to).expanduser()
    if path.name != to or (project / path).is_dir():
        return path
    close = difflib.get_close_matches(to.casefold().replace("_", "-").split("-")[0], AGENTS, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise OutputRefused(
        f"where {to} looks for skills is not known here",
        hint=f"{meant}known are {', '.join(AGENTS)}; a folder is named by its path, such as ./{to}",
    )
