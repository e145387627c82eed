"""The original's flat config and our sections: the same keys under two names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import cast

from skillopt_es.config.backends import OWN_KEYS, facts_of, role_backend
from skillopt_es.config.original import MOVED, READ, RENAMED
from skillopt_es.events.values import Json

_MORE = (
    *(f"model.{name}" for name in OWN_KEYS),
    *(f"env.{name}" for name in ("max_turns", "max_steps", "data_root", "mode")),
)
# By our name; the original's keys are their last part but for those that it has under other names.
_FLAT = {
    **{key: key.partition(".")[2] for key in (*READ, *_MORE)},
    **{here: there.partition(".")[2] for there, here in MOVED.items()},
    **{nested: flat for flat, nested in RENAMED.items()},
}
_NESTED = {flat: nested for nested, flat in _FLAT.items()}
_SECTIONS = ("model", "train", "gradient", "optimizer", "rollout", "evaluation", "env", "skillopt")
_OTHERS = "imported"
"""Where an imported config keeps keys that have no place in our sections."""
_SECRET = re.compile(r"(api_?key|token|secret|password|credential)$", re.IGNORECASE)
HIDDEN = "(a secret, not imported)"


def _backends(flat: Mapping[str, Json]) -> dict[str, Json]:
    """Both roles' backends, which our configs may leave to one label for both."""
    label = flat.get("model_backend")
    found: dict[str, Json] = {}
    for role in ("optimizer", "target"):
        own = flat.get(f"{role}_backend")
        if isinstance(label, str) and isinstance(own, str | None):
            backend = own or role_backend(label, "", role)
            found[f"{role}_backend"] = facts_of(backend).there or backend
    return found


def flat_config(config: Mapping[str, Json]) -> dict[str, Json]:
    """Our sections as the original's flat keys; a key that it does not have keeps its section before a dot."""
    flat: dict[str, Json] = {}
    for section, values in config.items():
        for name, value in cast("dict[str, Json]", values).items():
            key = name if section == _OTHERS else _FLAT.get(f"{section}.{name}", f"{section}.{name}")
            flat[key] = value
    return {**flat, **_backends(flat)}


def followed(flat: Mapping[str, Json]) -> Collection[str]:
    """The decisions that a config of ours left to SkillOpt's rules."""
    said = flat.get("skillopt.follow")
    return [rule for rule in said if isinstance(rule, str)] if isinstance(said, list) else ()


def nested_config(flat: Mapping[str, Json]) -> dict[str, Json]:
    """The original's flat keys as our sections, without the keys to anything."""
    sections: dict[str, dict[str, Json]] = {}
    for key, value in flat.items():
        section, _, name = _NESTED.get(key, key).partition(".")
        if section not in _SECTIONS or not name:
            section, name = _OTHERS, key
        hidden = _SECRET.search(key) is not None and isinstance(value, str) and value != ""
        sections.setdefault(section, {})[name] = HIDDEN if hidden else value
    return cast("dict[str, Json]", sections)
