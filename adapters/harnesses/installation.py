"""Whether an agent can be used as it is configured, and where it is installed; found out once, at opening."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.harnesses.agent import Agent
from skillopt_es.adapters.models.endpoint import refused, setting
from skillopt_es.errors import ConfigError
from skillopt_es.ports import AgentSettings, ModelSettings


def own_settings(agent: Agent, settings: ModelSettings) -> AgentSettings:
    """The agent's settings; raises ConfigError for what it cannot work with."""
    assert settings.agent is not None
    url = settings.base_url.strip()
    if url and not url.startswith(("http://", "https://")):
        raise refused(settings, "base_url", f" must be like http://host:8000/v1, not {url!r}")
    if settings.agent.thinking_tokens is not None and agent.name != "claude_code":
        raise refused(
            settings,
            "agent_thinking_tokens",
            f" is {settings.agent.thinking_tokens}, but only claude_code has such a limit",
        )
    refusal = agent.refusal(settings.role, settings)
    if refusal:
        raise ConfigError(refusal)
    return settings.agent


def command_of(agent: Agent, settings: ModelSettings, own: AgentSettings, environ: Mapping[str, str]) -> str:
    """The executable, found once; an agent that is not installed is a mistake of the config."""
    name = os.path.expanduser(own.command or agent.program)  # noqa: PTH111 - a bare name must stay one
    found = shutil.which(name, path=environ.get("PATH"))
    if found is None:
        where = setting(settings.role, "agent_command")
        raise ConfigError(
            f"{agent.name} is not installed: there is no executable {name}",
            hint=f"`{agent.install}`, or name the executable in {where}",
        )
    # Absolute, because the agent does not start in this process's folder.
    return str(Path(found).absolute())
