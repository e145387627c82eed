"""A config on its way to a whole one: its tree, where each value is from, and what is to be told about it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from skillopt_es.config.backends import Backend, first, own_keys
from skillopt_es.config.places import packaged
from skillopt_es.config.sections import Tree
from skillopt_es.config.shipped import is_shipped
from skillopt_es.config.values import is_blank
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
        return theirs and is_shipped(key, self.model.get(key))

    def leave_out(self, key: str, source: str) -> None:
        """A value that nobody chose and that says nothing to the backend."""
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
