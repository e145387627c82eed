"""
Keys of `model` that few backends read, as a benchmark's own keys are read by it alone.

`configs/backends.yaml` has them with their defaults. A log records those of the backends that its run has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast, get_args

from attrs import frozen

from skillopt_es.config.backends import (
    BACKEND_NAMES,
    CODING_AGENTS,
    KNOWN_BACKENDS,
    OWN_AGENTS,
    STAND_INS,
    Backend,
    kind_of,
    written,
)
from skillopt_es.config.files import read_yaml
from skillopt_es.config.places import packaged
from skillopt_es.config.sections import RunConfig, Tree
from skillopt_es.events.values import Json, Role

FILE = "backends.yaml"
_READERS: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai", "azure_openai"),
    "thinking_switch": ("anthropic", "qwen_chat", "minimax_chat"),
    "own_agents": OWN_AGENTS,
    "agents": (*CODING_AGENTS, *OWN_AGENTS),
}
"""Headings of the file that stand for several backends; any other is the one backend that it names."""


@frozen
class OwnKey:
    """A key's default, and the backends that read it."""

    default: Json
    backends: tuple[str, ...]


@cache
def own_keys() -> Mapping[str, OwnKey]:
    """By name, without a role in front."""
    _, tree = read_yaml(packaged(FILE))
    return {
        key: OwnKey(default, _READERS.get(heading, (heading,)))
        for heading, keys in tree.items()
        for key, default in cast(Tree, keys).items()
    }


def defaults_for(model: Tree, backends: Mapping[Role, Backend]) -> Iterator[tuple[str, Json]]:
    """The keys that these backends read and that nothing has set, with their defaults."""
    kinds = {
        kind_of(BACKEND_NAMES.get(name, name))
        for role, backend in backends.items()
        for name in map(str, (backend.name, written(model, role, backend, "gateway").value))
    }
    for key, own in own_keys().items():
        if key not in model and not kinds.isdisjoint(own.backends):
            yield key, own.default


def agents_missing(config: RunConfig, key: str, value: Json) -> tuple[str, ...]:
    """
    The agents for which a key of `model` is, where no role has one of them; none where a role may read it.

    Of a key that is no agent's the provider itself says that it does not take it (`refuse_others`).
    """
    role = next((role for role in get_args(Role) if key.startswith(f"{role}_")), None)
    own = own_keys().get(key.removeprefix(f"{role}_"))
    if own is None or value == own.default or not {*own.backends} <= {*CODING_AGENTS, *OWN_AGENTS}:
        return ()
    asked = [config.role(each) for each in (config.roles if role is None else (role,))]
    kinds = {kind_of(each.backend) for each in asked}
    # A stand-in stands for any backend, and what an installed package's backend reads is not known here.
    unknown = kinds - {*KNOWN_BACKENDS, *OWN_AGENTS}
    return () if unknown or kinds & {*STAND_INS, *own.backends} else own.backends
