"""From a raw mapping to a typed RunConfig; every error names its key, where it came from, and what is allowed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
import cattrs

from skillopt_es.config.backends import KNOWN_BACKENDS, OWN_KEYS, backend_of, is_own_agent, kind_of, written
from skillopt_es.config.own_keys import agents_missing, own_keys
from skillopt_es.config.places import is_packaged
from skillopt_es.config.sections import (
    MODEL_KEYS,
    SECTIONS,
    SHARED_ROLE_KEYS,
    EnvConfig,
    PricesConfig,
    RoleConfig,
    RunConfig,
    Tree,
)
from skillopt_es.config.values import (
    CONVERTER,
    SECRET_HEADER,
    SECRET_KEY,
    described,
    literals,
    looks_like_a_key,
    nearest,
    shown,
)
from skillopt_es.errors import ConfigError, first_of
from skillopt_es.events.values import DRAWS_ONCE, Json, Role
from skillopt_es.projections.prices import UNIT

TRAINING: tuple[Role, ...] = ("optimizer", "target")
"""The roles that training asks; an evaluation asks the target alone."""


def parse_config(
    tree: Tree, *, folder: Path | str, sources: Mapping[str, str] | None = None, asks: Sequence[Role] = TRAINING
) -> RunConfig:
    """The typed run of a whole mapping, such as the one a log has recorded; each role that it `asks` has a model."""
    reader = _Reader(sources or {})
    model = cast(Tree, tree.get("model", {}))
    sections: dict[str, Any] = {
        name: reader.section(name, cls, cast(Tree, tree.get(name, {}))) for name, cls in SECTIONS.items()
    }
    roles: dict[str, Any] = {f"{role}_model": reader.role(model, role) for role in _ROLES}
    if reader.mistakes:
        raise first_of(reader.mistakes)
    config = RunConfig(folder=str(folder), resolved={**tree}, **roles, **sections)
    mistakes = [*_mistakes_together(config, reader, asks)]
    if mistakes:
        raise first_of(mistakes)
    return config


def _mistakes_together(config: RunConfig, reader: _Reader, asks: Sequence[Role]) -> Iterator[ConfigError]:
    """What is wrong with keys that are right by themselves."""
    optimizer = config.optimizer
    if optimizer.min_learning_rate > optimizer.learning_rate:
        allowed = f"at most learning_rate ({optimizer.learning_rate})"
        yield reader.error("optimizer.min_learning_rate", optimizer.min_learning_rate, allowed)
    if optimizer.skill_aware_consolidate_threshold >= optimizer.skill_aware_max_notes:
        allowed = f"below skill_aware_max_notes ({optimizer.skill_aware_max_notes}); 0 never consolidates"
        threshold = optimizer.skill_aware_consolidate_threshold
        yield reader.error("optimizer.skill_aware_consolidate_threshold", threshold, allowed)
    evaluation = config.evaluation
    if config.follows("stale_scores") and evaluation.gate_rule not in DRAWS_ONCE:
        allowed = "strict where skillopt.follow names stale_scores: a skill that was not measured has no repeats"
        yield reader.error("evaluation.gate_rule", evaluation.gate_rule, allowed)
    prices = reader.source("prices.models") or reader.source("prices.unit")
    yield from _raised(lambda: check_prices(config.prices, prices))
    yield from _agents(config, reader)
    yield from _without_agent(config, reader)
    unnamed = [role for role in asks if not config.role(role).model]
    if unnamed:
        hint = f"write {' and '.join(f'{role}: NAME' for role in unnamed)} under model"
        given = " ".join(f"--set model.{role}=NAME" for role in unnamed)
        hint = f"{hint}, or give `{given}`"
        unknown = [role for role in unnamed if config.role(role).backend not in KNOWN_BACKENDS]
        if unknown:  # a misspelt agent of the user's own has no model either
            backend = config.role(unknown[0]).backend
            hint += (
                f"; skillopt-es brings no backend called {backend!r}, and an agent of your own, which needs no model's "
                f"name, is python:FILE:FUNCTION, command or http"
            )
        yield reader.error(f"model.{unnamed[0]}", "", "the name of a model", hint)
    else:
        yield from _raised(lambda: check_priced(config))
    yield from _lengths(config, reader)


def _raised(check: Callable[[], None]) -> Iterator[ConfigError]:
    """What a check raises, if it does."""
    try:
        check()
    except ConfigError as mistake:
        yield mistake


def _agents(config: RunConfig, reader: _Reader) -> Iterator[ConfigError]:
    """An agent of the user's own needs what it is reached by."""
    for role in config.roles:
        own = config.role(role)
        for key, owner, example in (("command", "command", '["node", "agent.js"]'), ("url", "http", "http://…")):
            value, name = getattr(own, key), f"model.{role}_{key}"
            if kind_of(own.backend) == owner and not value:
                hint = f"write {role}_{key}: {example}"
                yield reader.error(name, value, f"set where {role}_backend is {owner}", hint)
        if isinstance(own.command, str):
            try:
                shlex.split(own.command)
            except ValueError as error:
                yield reader.error(f"model.{role}_command", own.command, f"a command as for a shell ({error})")


def _without_agent(config: RunConfig, reader: _Reader) -> Iterator[ConfigError]:
    """A key that somebody set for an agent which no role has."""
    for key, value in cast(Tree, config.resolved.get("model", {})).items():
        source = reader.source(f"model.{key}")
        missing = agents_missing(config, key, value) if source and not is_packaged(source) else ()
        if missing:
            have = ", ".join(f"{role}: {config.role(role).backend}" for role in config.roles)
            allowed = f"left out: it is for the backend {' or '.join(missing)}, and the backends here are {have}"
            yield reader.error(f"model.{key}", value, allowed)


def _lengths(config: RunConfig, reader: _Reader) -> Iterator[ConfigError]:
    """An answer that is asked for must be one that the model can give: it is never cut behind the user's back."""
    asked = {
        "optimizer": ("optimizer.max_completion_tokens", config.optimizer.max_completion_tokens),
        "target": ("env.max_completion_tokens", config.env.max_completion_tokens),
    }
    for role, (key, tokens) in asked.items():
        most = config.role(cast(Role, role)).max_output_tokens
        if most and tokens > most:
            yield reader.error(
                key, tokens, f"at most {most}, as model.{role}_max_output_tokens (or model.max_output_tokens) says"
            )


_ROLES: tuple[Role, ...] = ("optimizer", "target", "judge")
C = TypeVar("C")


class _Reader:
    """Turns raw sections into typed ones, knows which file each key came from, and keeps what is wrong with them."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.mistakes: list[ConfigError] = []

    def source(self, key: str) -> str:
        """Where a key's value came from; empty when that is not known."""
        return self._sources.get(key, "")

    def error(self, key: str, value: Json, allowed: str, hint: str = "") -> ConfigError:
        source = self.source(key)
        place = f"{source}: " if source and not is_packaged(source) else ""
        return ConfigError(f"{place}{key} is {shown(key, value)}, but must be {allowed}", hint=hint)

    def section(self, name: str, cls: type[C], raw: Tree) -> C | None:
        """A section; None where something in it is wrong."""
        names = [a.name for a in attrs.fields(cls)]  # type: ignore[arg-type]  # every section is an attrs class
        before = len(self.mistakes)
        values: dict[str, object] = {}
        options: Tree = {}
        for key, value in raw.items():
            if key in names and key != "options":
                values[key] = self._read(partial(self._value, f"{name}.{key}", cls, key, value))
            elif cls is EnvConfig:
                options[key] = value
            else:
                self.mistakes.append(self._unknown(f"{name}.{key}", names))
        if cls is EnvConfig:
            values["options"] = options
        self.mistakes += [ConfigError(f"{name}.{key} is missing") for key in names if key not in values]
        return cls(**values) if len(self.mistakes) == before else None

    def role(self, model: Tree, role: Role) -> RoleConfig | None:
        """What a role says of its model; None where something of that is wrong."""
        before = len(self.mistakes)
        for key in model:
            if key not in MODEL_KEYS and key not in OWN_KEYS:
                self.mistakes.append(self._unknown(f"model.{key}", (*MODEL_KEYS, *OWN_KEYS)))
            else:
                self._read(partial(self._refuse_secrets, f"model.{key}", model[key]))
        backend = backend_of(model, role)
        values: dict[str, object] = {"backend": self._read(partial(self._text, f"model.{backend.key}", backend.name))}
        place = written(model, role, backend, "model")
        values["model"] = self._read(partial(self._text, f"model.{place.key}", place.value))
        for key in SHARED_ROLE_KEYS:
            if key != "backend":
                values[key] = self._read(partial(self._of_role, model, role, key))
        if len(self.mistakes) > before:
            return None
        return RoleConfig(**values)  # type: ignore[arg-type]  # each value was read with its field's type

    def _of_role(self, model: Tree, role: Role, key: str) -> object:
        place = written(model, role, backend_of(model, role), key)
        if place.key not in model and key in own_keys():
            return self._value(f"model.{key}", RoleConfig, key, own_keys()[key].default)
        if place.key not in model:
            raise ConfigError(f"model.{place.key} is missing")
        return self._value(f"model.{place.key}", RoleConfig, key, place.value)

    def _read(self, read: Callable[[], object]) -> object:
        """What is read; None, and a mistake more, where it cannot be."""
        try:
            return read()
        except ConfigError as mistake:
            self.mistakes.append(mistake)
            return None

    def _refuse_secrets(self, key: str, value: Json) -> None:
        """A config is recorded in the log, so a key must not be in it."""
        place = f"{self._sources[key]}: " if key in self._sources else ""
        names = value.split(",") if key.endswith(("api_key_env", "agent_env")) and isinstance(value, str) else []
        if any(looks_like_a_key(name.strip()) for name in names):
            name = key.removeprefix("model.")
            raise ConfigError(
                f"{place}{key} does not look like the name of an environment variable",
                hint=f"export the key (`export MY_KEY=…`) and write {name}: MY_KEY; a config never holds the key",
            )
        inside = value if isinstance(value, dict) and key.endswith(("extra_headers", "extra_body")) else {}
        for name, content in inside.items():
            pattern = SECRET_HEADER if key.endswith("extra_headers") else SECRET_KEY
            if isinstance(content, str) and pattern.search(str(name)):
                raise ConfigError(
                    f"{place}{key}.{name}: a secret does not belong in a config",
                    hint="name the environment variable that holds it: model.api_key_env",
                )

    def _text(self, key: str, value: Json) -> str:
        if not isinstance(value, str):
            raise self.error(key, value, "text")
        return value

    def _unknown(self, key: str, names: Sequence[str]) -> ConfigError:
        section, _, name = key.partition(".")
        source = self._sources.get(key)
        place = f"{source}: " if source else ""
        if SECRET_KEY.search(name):
            return ConfigError(
                f"{place}{key}: a secret does not belong in a config",
                hint="name the environment variable that holds it: model.api_key_env",
            )
        return ConfigError(f"{place}unknown key {key}", hint=nearest(name, names, section))

    def _value(self, key: str, cls: type, name: str, value: Json) -> object:
        attribute = attrs.fields_dict(cls)[name]
        given, value = value, _plain_word(attribute, value)
        try:
            parsed: Any = CONVERTER.structure(value, cast("type[Any]", attribute.type))
        except (cattrs.errors.CattrsError, ValueError, TypeError):
            quotes = attribute.type is str and isinstance(value, int | float)  # YAML reads 2:1:7 as a number
            raise self.error(key, given, described(attribute), "put it in quotes" if quotes else "") from None
        low, high = attribute.metadata.get("low"), attribute.metadata.get("high")
        if parsed is not None and ((low is not None and parsed < low) or (high is not None and parsed > high)):
            raise self.error(key, given, described(attribute))
        return parsed


def _without_role(name: str) -> str:
    role, _, rest = name.partition("_")
    return rest if role in ("optimizer", "target", "judge") else name


def plain_value(section: str, name: str, value: Json) -> Json:
    """A key's value as it is recorded: a word as a word, also where YAML reads it as true or false."""
    cls = RoleConfig if section == "model" else SECTIONS.get(section)
    known = {} if cls is None else attrs.fields_dict(cls)
    attribute = known.get(_without_role(name) if section == "model" else name)
    return value if attribute is None else _plain_word(attribute, value)


def _plain_word(attribute: attrs.Attribute[object], value: Json) -> Json:
    """A word of a short list in its plain form: in any case, with spaces, by another name, or as YAML reads it."""
    words = literals(attribute.type)
    aliases: Mapping[str, str] = attribute.metadata.get("aliases", {})
    if not words or isinstance(value, float | list | dict):
        return value
    if isinstance(value, bool):  # YAML reads a bare on as true, and a bare off as false
        switch = "on" if value else "off"
        return aliases.get(str(value).lower(), aliases.get(switch, switch if switch in words else value))
    word = "" if value is None else str(value).strip().lower()
    return aliases.get(word, value if isinstance(value, int) else word)


_UNIT = re.compile(rf"[A-Z]{{3}} {UNIT}")
_KEYS = ("input", "output", "cached_input")
# No model is priced outside of these, so a number outside is one per token or per thousand.
_LEAST, _MOST = 0.001, 10_000


def check_prices(prices: PricesConfig, source: str) -> None:
    """Raises ConfigError for a missing unit, an unknown key, or a number that cannot be a price per million tokens."""
    place = f"{source}: " if source else ""
    if (prices.models or prices.unit) and not _UNIT.fullmatch(prices.unit):
        raise ConfigError(
            f"{place}prices.unit is {prices.unit!r}, but must be three capital letters and `{UNIT}`",
            hint=f'write unit: "USD {UNIT}", and the prices per million tokens',
        )
    for model, row in prices.models.items():
        _check_model(f"{place}prices.models.{model}", row)


def _check_model(name: str, row: Json) -> None:
    if not isinstance(row, dict):
        raise ConfigError(f"{name} is {row!r}, but must be a mapping", hint="such as {input: 0.40, output: 1.60}")
    for key, value in row.items():
        if key not in _KEYS:
            raise ConfigError(f"{name}.{key}: unknown key", hint=nearest(key, _KEYS))
        if value is None and key == "cached_input":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name}.{key} is {value!r}, but must be a number")
        if value and not _LEAST <= value <= _MOST:
            raise ConfigError(
                f"{name}.{key} is {value!r}, which cannot be a price {UNIT} (0, or {_LEAST:g} to {_MOST:g})",
                hint="multiply a price per thousand tokens by 1000, or one per token by 1000000",
            )
    for key in ("input", "output"):
        if key not in row:
            raise ConfigError(f"{name}.{key} is missing", hint="write 0 for what costs nothing")


def check_priced(config: RunConfig) -> None:
    """Raises ConfigError when there is a limit of money and a model without a price."""
    if config.budget.max_cost is None:
        return
    place = config.place("budget.max_cost")
    for role in map(config.role, config.roles):
        if is_own_agent(role.backend) and not role.gateway:
            continue  # no price would help: nobody sees what it spends, which is said where models are opened
        if role.model not in config.prices.models:
            raise ConfigError(
                f"{place}budget.max_cost needs the price of every model, and {role.model} has none",
                hint=f'set prices.unit: "USD {UNIT}" and prices.models.{role.model}: {{input: …, output: …}}',
            )
