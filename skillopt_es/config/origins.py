"""Where each setting of a role was written, for whoever asks why it is what it is; never what a secret is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from attrs import frozen

from skillopt_es.config.backends import backend_of, family_of, written
from skillopt_es.config.draft import DEFAULTS
from skillopt_es.config.sections import SHARED_ROLE_KEYS, RunConfig, Tree
from skillopt_es.config.values import HOLDS_SECRETS, is_blank, may_hold_a_secret, shown
from skillopt_es.config.variables import FROM_VARIABLE
from skillopt_es.events.values import Json, Role


@frozen
class Origin:
    """A setting, what it is as far as that may be shown, the key that says so, and where that key stands."""

    setting: str
    value: str
    key: str
    source: str

    @property
    def where(self) -> str:
        """The place and, where it has another name there, the key."""
        variable = self.source.startswith(FROM_VARIABLE)
        return self.source if variable else f"{self.key}, {self.source}"


def written_as(config: RunConfig, role: Role, setting: str) -> str:
    """The key of `model` that says what a role's setting is."""
    model = cast(Tree, config.resolved.get("model", {}))
    backend = backend_of(model, role)
    return backend.key if setting == "backend" else written(model, role, backend, setting).key


def place_of(config: RunConfig, role: Role, setting: str) -> tuple[str, str]:
    """The file in which a role's setting stands, to begin an error with, and its key where that is the original's."""
    key = f"model.{written_as(config, role, setting)}"
    return config.place(key), key if family_of(key.removeprefix("model.")) else ""


def origins(config: RunConfig, role: Role) -> Iterator[Origin]:
    """Each setting of a role that is no default, with the place it is from."""
    own = config.role(role)
    for setting in ("backend", "model", *(key for key in SHARED_ROLE_KEYS if key != "backend")):
        key = written_as(config, role, setting)
        source = config.sources.get(f"model.{key}", "")
        value = getattr(own, setting)
        if source and source != DEFAULTS and not is_blank(value):
            yield Origin(setting, _shown(setting, value), f"model.{key}", source)


def _shown(setting: str, value: Json) -> str:
    if setting == "api_key_env":
        return f"the variable {value}" if value else "none"
    if HOLDS_SECRETS.search(setting):
        return "not shown"
    if setting == "base_url":
        return _host_of(str(value)) if may_hold_a_secret(str(value)) else str(value)
    return str(value) if isinstance(value, str) else shown(setting, value)


def _host_of(address: str) -> str:
    """Where an address leads, without what may be a secret."""
    found = urlsplit(address)
    if not found.hostname:
        return "not shown"
    return f"{found.scheme}://…@{found.hostname}" if "@" in found.netloc else f"{found.scheme}://{found.hostname}/…"
