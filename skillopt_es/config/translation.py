"""One layer of a config in the original's words, as one in ours: flat names, retired keys, keys that are not built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
from attrs import frozen

from skillopt_es.config.backends import OWN_KEYS
from skillopt_es.config.original import ALIASES, FATES, FLAT, MOVED, ElsewhereNamed, Secret
from skillopt_es.config.sections import MODEL_KEYS, SECTIONS, Tree
from skillopt_es.config.values import nearest, shown
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Json

KNOWN: Mapping[str, tuple[str, ...]] = {
    "model": (*MODEL_KEYS, *OWN_KEYS),
    **{name: tuple(a.name for a in attrs.fields(cls) if a.name != "options") for name, cls in SECTIONS.items()},
}


@frozen
class Translated:
    """A layer by sections, and what the user has to be told about it, by key."""

    tree: Tree
    notices: Mapping[str, str]


def translated(layer: Tree, source: str) -> Translated:
    """The layer with every key at its place here; raises ConfigError for a key that asks for what there is not."""
    tree: Tree = {}
    notices: dict[str, str] = {}
    for section, values in _by_section(layer, source).items():
        kept: Tree = {}
        for name, value in values.items():
            key = f"{section}.{name}"
            if name in KNOWN[section] or key not in FATES:
                kept[name] = value
            elif value is not None and value != "":
                notice = _judged(key, value, source)
                notices.update({key: notice} if notice else {})
        tree[section] = kept
    return Translated(tree, notices)


def _by_section(layer: Tree, source: str) -> dict[str, Tree]:
    """Flat keys at their nested places; a key that a layer has in both forms counts in its nested one."""
    nested: dict[str, Tree] = {}
    flat: list[tuple[str, Json]] = []
    for name, value in layer.items():
        if name in KNOWN and not (name in FLAT and isinstance(value, str)):
            if value is not None and not isinstance(value, dict):
                raise ConfigError(f"{source}: {name} is {value!r}, but must be a mapping of keys")
            nested[name] = {**cast(Tree, value or {})}
        elif name in FLAT:
            flat.append((FLAT[name], value))
        else:
            raise _unknown(name, value, source)
    for key, value in flat:
        section, _, leaf = key.partition(".")
        nested.setdefault(section, {}).setdefault(leaf, value)
    for key, moved in (*MOVED.items(), *ALIASES.items()):
        (section, _, leaf), (new_section, _, new_leaf) = key.partition("."), moved.partition(".")
        if leaf in nested.get(section, {}):
            nested.setdefault(new_section, {}).setdefault(new_leaf, nested[section].pop(leaf))
    return nested


def _unknown(name: str, value: Json, source: str) -> ConfigError:
    if isinstance(value, dict):
        return ConfigError(f"{source}: unknown section {name}", hint=nearest(name, tuple(KNOWN)))
    known = (*KNOWN, *FLAT)
    hint = nearest(name, known)
    if hint.startswith("known:"):
        hint = f"a key belongs to a section: {', '.join(KNOWN)}"
    return ConfigError(f"{source}: unknown key {name}", hint=hint)


def _judged(key: str, value: Json, source: str) -> str:
    """What to tell about a key of the original that is dropped; "" for nothing, an error where dropping would lie."""
    match FATES[key]:
        case Secret(variable):
            raise ConfigError(
                f"{source}: {key}: a secret does not belong in a config",
                hint=f"export it (`export {variable}=…`) and write model.api_key_env: {variable}",
            )
        case ElsewhereNamed(what, instead, harmless):
            if any(type(value) is type(other) and value == other for other in harmless):
                return ""
            raise ConfigError(
                f"{source}: {key} is {shown(key, value)}, but {what} cannot be chosen here", hint=f"instead: {instead}"
            )
        case retired:
            return f"{source}: {key} is ignored: {retired.why}"
