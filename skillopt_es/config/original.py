"""
The original's own config: its flat names, and what becomes of each of its keys that no section here has.

A key that a section knows is read there. Who builds one of the others adds it to its section and clears its line in
`configs/original.yaml`; a test names what is left over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
from attrs import frozen

from skillopt_es.config.sections import MODEL_KEYS, SECTIONS, Tree
from skillopt_es.config.table import OWN_NAMES, TABLE, Key
from skillopt_es.config.values import nearest, same, shown
from skillopt_es.errors import ConfigError, first_of
from skillopt_es.events.values import Json

_KEYS: Mapping[str, Key] = {
    f"{section}.{name}": key for section, keys in TABLE.keys.items() for name, key in keys.items()
}
FATES: Mapping[str, Key] = {key: own for key, own in _KEYS.items() if own.what or own.secret or own.ignored}
"""Keys that have no effect here, or ask for what there is not."""
MOVED: Mapping[str, str] = {key: own.moved for key, own in _KEYS.items() if own.moved}
"""Keys that have another name here, or stand in another section."""
ALIASES: Mapping[str, str] = {key: own.alias for key, own in _KEYS.items() if own.alias}
"""Further names that the original has for a key."""
DEPRECATED: Mapping[str, str] = {key: own.deprecated for key, own in _KEYS.items() if own.deprecated}
"""Names that still count, with a warning that says the right one."""
READ: tuple[str, ...] = tuple(key for key, own in _KEYS.items() if own.is_read)
"""Keys that a section here has under the same name."""
RENAMED: Mapping[str, str] = {own.flat: key for key, own in _KEYS.items() if own.flat}
"""By its flat name: the key whose last part is another."""
FLAT: Mapping[str, str] = {
    **{name: f"model.{name}" for name in OWN_NAMES},
    **{key.partition(".")[2]: key for key, own in _KEYS.items() if not (own.flat or own.deprecated)},
    **RENAMED,
}

KNOWN: Mapping[str, tuple[str, ...]] = {
    "model": (*MODEL_KEYS, *OWN_NAMES),
    **{name: tuple(a.name for a in attrs.fields(cls) if a.name != "options") for name, cls in SECTIONS.items()},
}


@frozen
class Translated:
    """A layer by sections, what the user has to be told about it, by key, and what is wrong with it."""

    tree: Tree
    notices: Mapping[str, str]
    mistakes: tuple[ConfigError, ...] = ()


def translated(layer: Tree, source: str) -> Translated:
    """The layer with every key at its place here; raises ConfigError for a key that asks for what there is not."""
    found = read_layer(layer, source)
    if found.mistakes:
        raise first_of(found.mistakes)
    return found


def read_layer(layer: Tree, source: str) -> Translated:
    """The same without the keys that ask for what there is not: these are its mistakes."""
    tree: Tree = {}
    notices: dict[str, str] = {}
    mistakes: list[ConfigError] = []
    nested = _by_section(layer, source, mistakes)
    for key, right in DEPRECATED.items():
        if _moved(nested, key, right):
            notices[key] = f"{source}: {key} is deprecated and counts as {right}, which is its name"
    for section, values in nested.items():
        kept: Tree = {}
        for name, value in values.items():
            key = f"{section}.{name}"
            if name in KNOWN[section] or key not in FATES:
                kept[name] = value
            elif value is not None and value != "":
                try:
                    notice = _judged(key, value, source)
                except ConfigError as mistake:
                    mistakes.append(mistake)
                else:
                    notices.update({key: notice} if notice else {})
        tree[section] = kept
    return Translated(tree, notices, tuple(mistakes))


def _by_section(layer: Tree, source: str, mistakes: list[ConfigError]) -> dict[str, Tree]:
    """Flat keys at their nested places; a key that a layer has in both forms counts in its nested one."""
    nested: dict[str, Tree] = {}
    flat: list[tuple[str, Json]] = []
    for name, value in layer.items():
        # `env` is a section here and, flat, the name of a benchmark.
        if name in KNOWN and not (name in FLAT and isinstance(value, str)):
            if value is not None and not isinstance(value, dict):
                mistakes.append(ConfigError(f"{source}: {name} is {value!r}, but must be a mapping of keys"))
                continue
            nested[name] = {**cast(Tree, value or {})}
        elif name in FLAT:
            flat.append((FLAT[name], value))
        else:
            mistakes.append(_unknown(name, value, source))
    for key, value in flat:
        section, _, leaf = key.partition(".")
        nested.setdefault(section, {}).setdefault(leaf, value)
    for key, right in (*MOVED.items(), *ALIASES.items()):
        _moved(nested, key, right)
    return nested


def _moved(nested: dict[str, Tree], key: str, right: str) -> bool:
    """Whether the key was there; what it says counts as the right key's, unless that is there, too."""
    (section, _, leaf), (new_section, _, new_leaf) = key.partition("."), right.partition(".")
    if leaf not in nested.get(section, {}):
        return False
    nested.setdefault(new_section, {}).setdefault(new_leaf, nested[section].pop(leaf))
    return True


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
    fate = FATES[key]
    if fate.ignored:
        return f"{source}: {key} is ignored: {fate.ignored}"
    if fate.secret:
        raise ConfigError(
            f"{source}: {key}: a secret does not belong in a config",
            hint=f"export it (`export {fate.secret}=…`) and write model.api_key_env: {fate.secret}",
        )
    if any(same(value, harmless) for harmless in fate.passes):
        return ""
    raise ConfigError(
        f"{source}: {key} is {shown(key, value)}, but {fate.what} cannot be chosen here",
        hint=f"instead: {fate.instead}",
    )
