"""What models and environments say of themselves beyond their ports: what one needs, can do and tells analysts."""

from __future__ import annotations

from skillopt_es.errors import ConfigError
from skillopt_es.ports import ChatModel, Environment

_LEAST = frozenset({"text"})


def provided(model: ChatModel) -> frozenset[str]:
    """What a model can do: text, messages, tools, images, image_detail; an adapter that does not say can do text."""
    found: frozenset[str] = getattr(model, "provides", _LEAST)
    return found


def required(environment: Environment) -> frozenset[str]:
    """What an environment needs of the target; one that does not say needs text."""
    found: frozenset[str] = getattr(environment, "requires", _LEAST)
    return found


def guide_of(environment: Environment) -> str:
    """What an environment tells analysts of its tasks; one that does not say tells nothing."""
    found: str = getattr(environment, "guide", "")
    return found


def check_target(model: ChatModel, environment: Environment) -> None:
    """Raises ConfigError when the target cannot do what the environment needs."""
    missing = sorted(required(environment) - provided(model))
    if missing:
        raise ConfigError(
            f"env.name is {environment.name!r}, which needs {' and '.join(missing)}, "
            f"but the target model ({model.identity}) does not offer that",
            hint="choose another model.target_backend, or another env.name",
        )
