"""What a user can do about an agent that did not answer, in terms of their own config."""

from __future__ import annotations

from skillopt_es.adapters.harnesses.agent import Agent
from skillopt_es.adapters.models.endpoint import setting
from skillopt_es.adapters.models.errors import Failure
from skillopt_es.ports import FailureKind, ModelSettings


def hint_for(failed: Failure, agent: Agent, settings: ModelSettings) -> str:
    """The next step after this failure; empty when there is nothing sensible to say."""
    role = settings.role
    by_kind: dict[FailureKind, str] = {
        "auth": _auth_hint(agent, settings),
        "config": _config_hint(failed, agent, settings),
        "quota": "the account has no credit left: top it up",
        "rate_limit": f"lower {setting(role, 'agent_processes')}, or set model.requests_per_minute",
        "timeout": f"{setting(role, 'timeout_seconds')} is {settings.timeout_seconds:g}",
        "transport": f"does {agent.program} reach its model? try it by hand",
        "invalid_reply": f"is {agent.program} the real one, and new enough? `{agent.install}` installs the newest",
    }
    return by_kind.get(failed.kind, "")


def _auth_hint(agent: Agent, settings: ModelSettings) -> str:
    if settings.api_key_env:
        return f"check the key in the environment variable {settings.api_key_env}"
    return f"{agent.sign_in}, or name the variable that holds a key in {setting(settings.role, 'api_key_env')}"


def _config_hint(failed: Failure, agent: Agent, settings: ModelSettings) -> str:
    where = setting(settings.role, "agent_access")
    if "root/sudo" in failed.message:
        return (
            f"set {where} to edit, run as another user, or, inside a sandbox of your own, export IS_SANDBOX=1 and "
            f"name it in model.agent_env"
        )
    if "option" in failed.message or "argument" in failed.message:
        return f"this version of {agent.program} is too old or too new: `{agent.install}` installs the newest"
    return f"check model.{settings.role} (now {settings.model!r}) with {agent.program} by hand"
