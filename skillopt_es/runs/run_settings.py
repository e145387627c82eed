"""The settings of a run as its log has them, flat and by name, and the part of them that may be shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from skillopt_es.config.values import HOLDS_SECRETS, SECRET_KEY
from skillopt_es.events.catalog import Recorded, RunForked, RunResumed, RunStarted, RunSteered, names_of
from skillopt_es.events.values import Json

Settings = Mapping[str, Json]

_ADDRESS = re.compile(r"(base_url|endpoint|url)$")
_OURS_ALONE = re.compile(r"(agent_env|agent_command|exec_path|allow_hosts|managed_identity_client_id)$")


SETTING_TYPES = names_of((RunStarted, RunForked, RunResumed, RunSteered))
"""The events that say what was in force."""


def settings_in(records: Iterable[Recorded]) -> Settings:
    """What was in force at the end of these events: the first one's settings, and what resuming and forking changed."""
    found: dict[str, Json] = {}
    for recorded in records:
        event = recorded.event
        if isinstance(event, RunStarted):
            found.update(_flat(event.config))
        elif isinstance(event, RunResumed | RunForked):
            found.update((setting.key, setting.value) for setting in event.overrides)
        elif isinstance(event, RunSteered):
            found.update((setting.key, setting.value) for setting in event.settings)
    return found


def _flat(config: Mapping[str, Json]) -> Iterable[tuple[str, Json]]:
    """Each key of a section; what stands outside of one (as in an imported run) has its own name."""
    for section, values in config.items():
        if isinstance(values, dict):
            yield from ((f"{section}.{key}", value) for key, value in values.items())
        else:
            yield section, values


def shareable(settings: Settings) -> Settings:
    """Without what could hold a secret or is nobody else's: of addresses only the host, of commands nothing."""
    found: dict[str, Json] = {}
    for key, value in sorted(settings.items()):
        if SECRET_KEY.search(key) or HOLDS_SECRETS.search(key) or _OURS_ALONE.search(key):
            continue
        found[key] = (urlsplit(str(value)).hostname or "") if _ADDRESS.search(key) else value
    return found


def text_of(settings: Settings, key: str) -> str:
    """A setting that is a text; empty when a log does not have it."""
    value = settings.get(key)
    return value if isinstance(value, str) else ""


def backend_of(settings: Settings, role: str) -> str:
    """Which kind of model a role has."""
    return text_of(settings, f"model.{role}_backend") or text_of(settings, "model.backend")


def model_of(settings: Settings, role: str) -> str:
    """The name of a role's model."""
    return text_of(settings, f"model.{role}")
