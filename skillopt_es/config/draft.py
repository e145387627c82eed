"""A config on its way to a whole one: its tree, where each value is from, and what is to be told about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast
from urllib.parse import urlsplit

from attrs import define, field, frozen

from skillopt_es.config.backends import (
    MODELS_ALONE,
    Backend,
    backend_of,
    first,
    is_own_agent,
    own_keys,
    role_backend,
    written,
)
from skillopt_es.config.places import packaged
from skillopt_es.config.sections import SHARED_ROLE_KEYS, RunConfig, Tree
from skillopt_es.config.table import OWN_NAMES, SHIPPED
from skillopt_es.config.values import HOLDS_SECRETS, is_blank, may_hold_a_secret, same, shown
from skillopt_es.config.variables import FROM_VARIABLE, Variable
from skillopt_es.events.values import Json, Role

ASKED = "--set"
DEFAULTS = str(packaged("base.yaml"))
_PRESETS = str(packaged("presets"))


@define
class Draft:
    """What is known so far; `model` is a part of `tree`."""

    tree: Tree
    model: Tree
    sources: dict[str, str]
    original: bool
    variables: Mapping[str, Variable]
    used: dict[str, None] = field(factory=dict)
    left_out: dict[str, list[str]] = field(factory=dict)
    notices: list[str] = field(factory=list)
    notes: list[str] = field(factory=list)

    def put(self, key: str, value: Json, source: str) -> None:
        """A setting of `model`, as if a file had it."""
        self.model[key] = value
        self.sources[f"model.{key}"] = source

    def chosen(self, key: str) -> bool:
        """Whether somebody chose a value for this key of `model`: no default of ours is a choice."""
        source = self.sources.get(f"model.{key}")
        if key.endswith("api_key_env") and source is not None:
            return source != DEFAULTS  # an empty one says that there is none
        return not is_blank(self.model.get(key)) and source != DEFAULTS

    def came_along(self, key: str) -> bool:
        """Whether nobody chose this value: it came with the original's files, or a preset that repeats them."""
        source = self.sources.get(f"model.{key}", ASKED)
        theirs = source.startswith(_PRESETS) or (self.original and source != ASKED)
        return theirs and any(same(self.model.get(key), value) for value in SHIPPED.get(key, ()))

    def leave_out(self, key: str, source: str) -> None:
        """A value that nobody chose and that the backend ignores."""
        names = self.left_out.setdefault(source, [])
        if key not in names:
            names.append(key)

    def from_variable(self, keys: list[str]) -> bool:
        """Takes the first of these keys that the environment has; whether there was one."""
        for key in keys:
            if key in self.variables:
                variable = self.variables[key]
                self.put(key, variable.value, variable.source)
                self.used[variable.name] = None
                return True
        return False

    def in_a_file(self, role: Role, backend: Backend, key: str) -> bool:
        """Whether a file or the command line has the setting under one of the backend's own names."""
        own = first(self.model, own_keys(role, backend, key))
        return own is not None and not self.sources.get(f"model.{own.key}", "").startswith(FROM_VARIABLE)

    def take(self, key: str, name: str, environ: Mapping[str, str]) -> None:
        """A variable of the environment as a setting, if it says anything."""
        value = environ.get(name, "").strip()
        if value:
            variable = Variable(name, value)
            self.put(key, value, variable.source)
            self.used[name] = None


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


def label_of_the_target(config: RunConfig, role: Role) -> str:
    """The label that gives the target its backend and leaves this role on `openai_chat`; empty where there is none."""
    model = cast(Tree, config.resolved.get("model", {}))
    label, own = str(model.get("backend") or "").strip(), str(model.get(f"{role}_backend") or "").strip().lower()
    left = role != "target" and own in ("", "openai_chat") and role_backend(label, "", role) == "openai_chat" != label
    return label if left else ""


def place_of(config: RunConfig, role: Role, setting: str) -> tuple[str, str]:
    """The file in which a role's setting stands, to begin an error with, and its key where that is the original's."""
    key = f"model.{written_as(config, role, setting)}"
    return config.place(key), key if key.removeprefix("model.") in OWN_NAMES else ""


def heeds(config: RunConfig, role: Role, setting: str) -> bool:
    """Whether a setting says anything to a role; an agent that asks no model of the run has no use for a model's."""
    own = config.role(role)
    if not is_own_agent(own.backend) or own.gateway:
        return True
    # A key for both roles is a provider's; one of its own is sent to an address.
    shared_key = setting == "api_key_env" and written_as(config, role, setting) == setting
    return setting not in MODELS_ALONE and not shared_key


def origins(config: RunConfig, role: Role) -> Iterator[Origin]:
    """Each setting of a role that is no default, with the place it is from."""
    own = config.role(role)
    for setting in ("backend", "model", *(key for key in SHARED_ROLE_KEYS if key != "backend")):
        if not heeds(config, role, setting):
            continue
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
    if setting in ("base_url", "url"):
        return _host_of(str(value)) if may_hold_a_secret(str(value)) else str(value)
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)  # as a config would say it
    return str(value) if isinstance(value, str) else shown(setting, value)


def _host_of(address: str) -> str:
    """Where an address leads, without what may be a secret."""
    found = urlsplit(address)
    if not found.hostname:
        return "not shown"
    return f"{found.scheme}://…@{found.hostname}" if "@" in found.netloc else f"{found.scheme}://{found.hostname}/…"
