"""
`configs/original.yaml` as frozen values: what becomes of each name of the original.

Its file says what each field means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import attrs
import cattrs
import yaml
from attrs import field, frozen
from cattrs.gen import make_dict_structure_fn

from skillopt_es.config.places import packaged
from skillopt_es.events.values import Role

Texts = tuple[str, ...]


@frozen(kw_only=True)
class Key:
    """What becomes of a key of its config."""

    flat: str = ""
    of: Literal["", "benchmark"] = ""
    moved: str = ""
    alias: str = ""
    deprecated: str = ""
    ignored: str = ""
    secret: str = ""
    what: str = ""
    instead: str = ""
    passes: tuple[Any, ...] = ()
    shipped: tuple[Any, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether a section here has the key under the same name."""
        return attrs.evolve(self, shipped=()) == Key()


@frozen(kw_only=True)
class Setting:
    """What a key of `model` with the name of a backend is here."""

    here: str
    words: str = ""
    trained: bool = False
    shipped: tuple[Any, ...] = ()
    variables: Texts | None = None
    role_variables: Texts | None = None


@frozen(kw_only=True)
class Family:
    """The keys that begin with one name."""

    keys: Mapping[str, Setting]
    backend: str = ""
    variables: Texts = ()
    role_variables: Texts = ()
    shipped_for_roles: bool = False


@frozen(kw_only=True)
class Words:
    """How values are translated."""

    words: Mapping[str, Any] = field(factory=dict)
    others: Any = None
    read: Literal["", "number", "lower"] = ""


@frozen(kw_only=True)
class Facts:
    """What a name of a backend means."""

    here: str = ""
    there: str = ""
    families: Texts = ()
    model: str = ""
    address: str = ""
    ignores: Texts = ()
    for_targets: bool = False
    chat: bool = False
    always_thinks: str = ""


@frozen(kw_only=True)
class Benchmark:
    """What its files and its trainer take for granted of a benchmark."""

    answers_only: bool = False
    train_size: int | None = None
    variables: Mapping[str, str] = field(factory=dict)
    never_shipped: bool = False


@frozen(kw_only=True)
class Table:
    """The whole file."""

    keys: Mapping[str, Mapping[str, Key]]
    families: Mapping[str, Family]
    words: Mapping[str, Words]
    backends: Mapping[str, Facts]
    any_model: Texts
    mark: str
    benchmarks: Mapping[str, Benchmark]
    unused_variables: Mapping[str, str]
    values: Mapping[str, Mapping[str, Texts]]


FILE = "original.yaml"
_SHORT: tuple[tuple[type, str], ...] = ((Key, "of"), (Setting, "here"), (Facts, "here"))
"""Which field a value is that stands alone."""


def _read() -> Table:
    # Every command reads it, and the C library does so in a twentieth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    converter = cattrs.Converter(detailed_validation=False, forbid_extra_keys=True)
    for kind, short in _SHORT:
        converter.register_structure_hook(kind, _either(converter, kind, short))
    text = packaged(FILE).read_text(encoding="utf-8")
    return converter.structure(yaml.load(text, loader), Table)  # noqa: S506 - both loaders are safe ones


def _either(converter: cattrs.Converter, kind: type, short: str) -> Callable[[Any, type], Any]:
    whole: Callable[[Any, type], Any] = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True)
    return lambda value, _: whole(value if isinstance(value, dict) else {} if value is None else {short: value}, kind)


TABLE = _read()
ROLES: tuple[Role, ...] = ("optimizer", "target")
"""The roles that every config has, and that the original knows."""


@frozen
class OwnName:
    """A key of `model` with the name of a backend: whose name, the role in front of it, and what it is here."""

    family: str
    role: Role | None
    name: str
    setting: Setting

    @property
    def variables(self) -> Texts:
        """The environment variables that stand for it; the first that is set counts."""
        family, own = TABLE.families[self.family], self.setting
        if self.role is None:
            forms = family.variables if own.variables is None else own.variables
        else:
            forms = family.role_variables if own.role_variables is None else own.role_variables
        name = self.name.upper().removesuffix("_ENV")
        words = {"ROLE": (self.role or "").upper(), "KEY": name, "NAME": f"{self.family.upper()}_{name}"}
        return tuple(form.format_map(words) for form in forms)

    @property
    def shipped(self) -> tuple[Any, ...]:
        """What its files say of it, in all of their states."""
        counts = self.role is None or TABLE.families[self.family].shipped_for_roles
        return self.setting.shipped if counts else ()


def _own_names() -> Iterator[tuple[str, OwnName]]:
    roles: tuple[Role | None, ...] = (None, *ROLES)
    for role in roles:
        for prefix, family in TABLE.families.items():
            for name, setting in family.keys.items():
                key = f"{prefix}_{name}"
                yield f"{role}_{key}" if role else key, OwnName(prefix, role, name, setting)


OWN_NAMES: Mapping[str, OwnName] = dict(_own_names())
"""By key of `model`, those without a role in front first."""

VARIABLES: Mapping[str, Texts] = {key: own.variables for key, own in OWN_NAMES.items() if own.variables}
"""By key of `model`: the variables that stand for it."""

SHIPPED: Mapping[str, tuple[Any, ...]] = {
    **{key: fate.shipped for key, fate in TABLE.keys["model"].items() if fate.shipped},
    **{key: own.shipped for key, own in OWN_NAMES.items() if own.shipped},
}
"""By key of `model`: what its files say, whoever uses them. Nobody chose that."""


def other_words(key: str) -> Mapping[str, str]:
    """What else the values of a key may be called there, and what they are called here."""
    return {word: ours for ours, words in TABLE.values[key].items() for word in words}
