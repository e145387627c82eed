"""
RunConfig: everything a run was told, read from YAML into frozen values; every error names its key.

`configs/base.yaml` holds all defaults; a file may name a `_base_` to build on; `--set section.key=value` comes last.
`resolved` is the plain mapping that RunStarted records and from which the same RunConfig is read back.
"""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

import attrs
import cattrs
import yaml
from attrs import field, frozen

from skillopt_es.errors import ConfigError
from skillopt_es.events.codec import clean_text
from skillopt_es.events.values import GateMetric, Json, Role
from skillopt_es.skill.schedule import Scheduler

Tree = dict[str, Json]


def _limits(*, low: float | None = None, high: float | None = None) -> dict[str, object]:
    return {"low": low, "high": high}


@frozen(kw_only=True)
class RoleConfig:
    """One role's model."""

    backend: str
    model: str
    base_url: str
    api_key_env: str
    temperature: float | None = field(metadata=_limits(low=0, high=5))
    reasoning_effort: str
    timeout_seconds: float = field(metadata=_limits(low=0.001))
    attempts: int = field(metadata=_limits(low=1, high=100))
    backoff_seconds: float = field(metadata=_limits(low=0))
    backoff_cap_seconds: float = field(metadata=_limits(low=0))
    concurrency: int = field(metadata=_limits(low=1))
    requests_per_minute: int = field(metadata=_limits(low=0))
    tokens_per_minute: int = field(metadata=_limits(low=0))
    token_field: Literal["max_completion_tokens", "max_tokens"]
    structured_output: Literal["auto", "on", "off"]
    extra_body: Mapping[str, Json]
    extra_headers: Mapping[str, str]


@frozen(kw_only=True)
class TrainConfig:
    """How long and over what."""

    num_epochs: int = field(metadata=_limits(low=1))
    train_size: int = field(metadata=_limits(low=0))
    batch_size: int = field(metadata=_limits(low=1))
    accumulation: int = field(metadata=_limits(low=1))
    seed: int


@frozen(kw_only=True)
class GradientConfig:
    """How trajectories become patches."""

    minibatch_size: int = field(metadata=_limits(low=1))
    merge_batch_size: int = field(metadata=_limits(low=2))
    analyst_workers: int = field(metadata=_limits(low=1))
    failure_only: bool
    max_trajectory_chars: int = field(metadata=_limits(low=200))


@frozen(kw_only=True)
class OptimizerConfig:
    """How patches become a candidate, and what happens at an epoch's end."""

    learning_rate: int = field(metadata=_limits(low=0))
    min_learning_rate: int = field(metadata=_limits(low=0))
    lr_scheduler: Scheduler
    max_completion_tokens: int = field(metadata=_limits(low=1))
    use_slow_update: bool
    slow_update_samples: int = field(metadata=_limits(low=1))
    slow_update_gate_with_selection: bool
    use_meta_skill: bool


@frozen(kw_only=True)
class RolloutConfig:
    """What an evaluation must have measured to count."""

    max_failed_share: float = field(metadata=_limits(low=0, high=1))
    max_failed_share_train: float = field(metadata=_limits(low=0, high=1))


@frozen(kw_only=True)
class EvaluationConfig:
    """How a candidate is judged."""

    use_gate: bool
    gate_metric: GateMetric
    gate_mixed_weight: float = field(metadata=_limits(low=0, high=1))
    sel_env_num: int = field(metadata=_limits(low=0))
    test_env_num: int = field(metadata=_limits(low=0))
    eval_test: bool


@frozen(kw_only=True)
class EnvConfig:
    """Which tasks, and where they come from; `options` are the environment's own keys."""

    name: str
    skill_init: str
    workers: int = field(metadata=_limits(low=1))
    exec_timeout: float = field(metadata=_limits(low=0.001))
    max_completion_tokens: int = field(metadata=_limits(low=1))
    split_mode: Literal["ratio", "split_dir", "field", "file"]
    split_ratio: str
    split_seed: int
    split_field: str
    split_dir: str
    data_path: str
    limit: int = field(metadata=_limits(low=0))
    options: Mapping[str, Json]


@frozen(kw_only=True)
class RunConfig:
    """A whole run; `folder` is where the config file lies, to which relative paths belong."""

    optimizer_model: RoleConfig
    target_model: RoleConfig
    train: TrainConfig
    gradient: GradientConfig
    optimizer: OptimizerConfig
    rollout: RolloutConfig
    evaluation: EvaluationConfig
    env: EnvConfig
    folder: str
    resolved: Mapping[str, Json]

    def path(self, value: str) -> Path:
        """A path of the config, seen from the config file's folder."""
        return Path(self.folder, value).resolve()

    def role(self, role: Role) -> RoleConfig:
        """One role's model settings."""
        return self.optimizer_model if role == "optimizer" else self.target_model


_SECTIONS: Mapping[str, type] = {
    "train": TrainConfig,
    "gradient": GradientConfig,
    "optimizer": OptimizerConfig,
    "rollout": RolloutConfig,
    "evaluation": EvaluationConfig,
    "env": EnvConfig,
}
for _section in (RoleConfig, *_SECTIONS.values()):
    attrs.resolve_types(_section)  # from here on every attribute's type is a type, not its source text

_SHARED_ROLE_KEYS = tuple(a.name for a in attrs.fields(RoleConfig) if a.name != "model")
_MODEL_KEYS = (
    "optimizer",
    "target",
    *_SHARED_ROLE_KEYS,
    *(f"{role}_{key}" for role in ("optimizer", "target") for key in _SHARED_ROLE_KEYS),
)
_SECRET_KEY = re.compile(r"(api_key|token|secret|password)$")
_SECRET_HEADER = re.compile(r"authorization|api[-_]?key|token|secret|password|cookie", re.IGNORECASE)
_HOLDS_SECRETS = re.compile(r"(api_key_env|extra_headers|extra_body)$")


# --- reading files -------------------------------------------------------------------------------------------------


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The run that a file and its overrides describe; without a file, of the bundled demo."""
    file = Path(str(resources.files("skillopt_es.configs") / "demo" / "demo.yaml")) if path is None else path
    layers = [_read_yaml(_base_file()), *_chain(file, ())]
    sources: dict[str, str] = {}
    tree: Tree = {}
    for source, layer in layers:
        _merge(tree, layer, source, sources)
    for text in overrides:
        _merge(tree, _parse_override(text), "--set", sources)
    return parse_config(tree, folder=file.resolve().parent, sources=sources)


def with_overrides(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The same run with further `--set` texts laid over it."""
    if not overrides:
        return config
    tree = copy.deepcopy(dict(config.resolved))
    sources: dict[str, str] = {}
    for text in overrides:
        _merge(tree, _parse_override(text), "--set", sources)
    return parse_config(tree, folder=config.folder, sources=sources)


def _base_file() -> Path:
    return Path(str(resources.files("skillopt_es.configs") / "base.yaml"))


def _chain(file: Path, seen: tuple[Path, ...]) -> list[tuple[str, Tree]]:
    """A file's layers, the base of its bases first."""
    file = file.resolve()
    if file in seen:
        raise ConfigError(f"{file}: _base_ leads back to this file", hint="remove one of the _base_ lines")
    source, tree = _read_yaml(file)
    base = tree.pop("_base_", None)
    if base is None:
        return [(source, tree)]
    if not isinstance(base, str):
        raise ConfigError(f"{file}: _base_ is {base!r}, but must be the path of one YAML file")
    return [*_chain(file.parent / base, (*seen, file)), (source, tree)]


def _read_yaml(file: Path) -> tuple[str, Tree]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such config file", hint="`skillopt-es init DIR` writes one") from None
    except IsADirectoryError:
        raise ConfigError(f"{file} is a folder", hint=f"name the YAML file in it, such as {file}/config.yaml") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{file}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None
    if tree is None:
        tree = {}
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise ConfigError(f"{file}: a config is a mapping of sections ({', '.join(['model', *_SECTIONS])})")
    _require_plain(tree, "", str(file))
    return str(file), cast(Tree, tree)


def _require_plain(value: object, key: str, source: str) -> None:
    """YAML also knows dates, bytes, infinities and keys of any type; a config is recorded as JSON."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise ConfigError(
                    f"{source}: {key} has the key {name!r}, but keys must be text", hint="put it in quotes"
                )
            _require_plain(inner, f"{key}.{name}" if key else name, source)
    elif isinstance(value, list):
        for inner in value:
            _require_plain(inner, key, source)
    elif not (value is None or isinstance(value, str | int | float)) or not _is_json(value):
        raise ConfigError(
            f"{source}: {key} is {_shown(key, cast(Json, value))}, but must be text, a number, true, false or null",
            hint="put it in quotes" if not isinstance(value, str | float) else "",
        )


def _is_json(value: str | int | float | None) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, str) or value.isascii() or clean_text(value) == value


def _parse_override(text: str) -> Tree:
    key, equals, value = text.partition("=")
    if not equals or "." not in key:
        raise ConfigError(f"--set {text}: write it as section.key=value, such as train.batch_size=20")
    try:
        parsed: Json = yaml.safe_load(value) if value else ""
    except yaml.YAMLError:
        parsed = value
    _require_plain(parsed, key.strip(), "--set")
    section, _, name = key.strip().partition(".")
    return {section: {name: parsed}}


def _merge(tree: Tree, layer: Tree, source: str, sources: dict[str, str]) -> None:
    for section, values in layer.items():
        if section not in ("model", *_SECTIONS):
            raise ConfigError(f"{source}: unknown section {section}", hint=_nearest(section, ("model", *_SECTIONS)))
        if values is None:
            continue
        if not isinstance(values, dict):
            raise ConfigError(f"{source}: {section} is {values!r}, but must be a mapping of keys")
        into = cast(Tree, tree.setdefault(section, {}))
        for key, value in values.items():
            old = into.get(key)
            mergeable = isinstance(old, dict) and isinstance(value, dict)
            into[key] = {**cast(Tree, old), **cast(Tree, value)} if mergeable else value
            sources[f"{section}.{key}"] = source


# --- from a mapping to typed values --------------------------------------------------------------------------------


def parse_config(tree: Tree, *, folder: Path | str, sources: Mapping[str, str] | None = None) -> RunConfig:
    """The typed run of a whole mapping, such as the one a log has recorded."""
    reader = _Reader(sources or {})
    model = cast(Tree, tree.get("model", {}))
    sections: dict[str, Any] = {
        name: reader.section(name, cls, cast(Tree, tree.get(name, {}))) for name, cls in _SECTIONS.items()
    }
    config = RunConfig(
        optimizer_model=reader.role(model, "optimizer"),
        target_model=reader.role(model, "target"),
        folder=str(folder),
        resolved={**tree},
        **sections,
    )
    _check_together(config, reader)
    return config


def _check_together(config: RunConfig, reader: _Reader) -> None:
    optimizer = config.optimizer
    if optimizer.min_learning_rate > optimizer.learning_rate:
        allowed = f"at most learning_rate ({optimizer.learning_rate})"
        raise reader.error("optimizer.min_learning_rate", optimizer.min_learning_rate, allowed)
    roles: tuple[Role, ...] = ("optimizer", "target")
    for role in roles:
        if not config.role(role).model:
            raise reader.error(f"model.{role}", "", "the name of a model")


C = TypeVar("C")


class _Reader:
    """Turns raw sections into typed ones and knows which file each key came from."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources

    def error(self, key: str, value: Json, allowed: str, hint: str = "") -> ConfigError:
        source = self._sources.get(key)
        place = f"{source}: " if source else ""
        return ConfigError(f"{place}{key} is {_shown(key, value)}, but must be {allowed}", hint=hint)

    def section(self, name: str, cls: type[C], raw: Tree) -> C:
        names = [a.name for a in attrs.fields(cls)]  # type: ignore[arg-type]  # every section is an attrs class
        values: dict[str, object] = {}
        options: Tree = {}
        for key, value in raw.items():
            if key in names and key != "options":
                values[key] = self._value(f"{name}.{key}", cls, key, value)
            elif cls is EnvConfig:
                options[key] = value
            else:
                raise self._unknown(f"{name}.{key}", names)
        if cls is EnvConfig:
            values["options"] = options
        missing = [key for key in names if key not in values]
        if missing:
            raise ConfigError(f"{name}.{missing[0]} is missing")
        return cls(**values)

    def role(self, model: Tree, role: Role) -> RoleConfig:
        for key in model:
            if key not in _MODEL_KEYS:
                raise self._unknown(f"model.{key}", _MODEL_KEYS)
            self._refuse_secrets(f"model.{key}", model[key])
        values: dict[str, object] = {"model": self._text(f"model.{role}", model.get(role, ""))}
        for key in _SHARED_ROLE_KEYS:
            own = f"{role}_{key}"
            name = own if model.get(own) is not None else key
            values[key] = self._value(f"model.{name}", RoleConfig, key, model.get(name))
        return RoleConfig(**values)  # type: ignore[arg-type]  # each value was read with its field's type

    def _refuse_secrets(self, key: str, value: Json) -> None:
        """A config is recorded in the log, so a key must not be in it."""
        place = f"{self._sources[key]}: " if key in self._sources else ""
        if key.endswith("api_key_env") and isinstance(value, str) and _looks_like_a_key(value):
            raise ConfigError(
                f"{place}{key} does not look like the name of an environment variable",
                hint="export the key (`export MY_KEY=…`) and write api_key_env: MY_KEY; a key itself is never config",
            )
        inside = value if isinstance(value, dict) and key.endswith(("extra_headers", "extra_body")) else {}
        for name, content in inside.items():
            pattern = _SECRET_HEADER if key.endswith("extra_headers") else _SECRET_KEY
            if isinstance(content, str) and pattern.search(str(name)):
                raise ConfigError(
                    f"{place}{key}.{name}: a secret does not belong into a config",
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
        if _SECRET_KEY.search(name):
            return ConfigError(
                f"{place}{key}: a secret does not belong into a config",
                hint="name the environment variable that holds it: model.api_key_env",
            )
        return ConfigError(f"{place}unknown key {key}", hint=_nearest(name, names, section))

    def _value(self, key: str, cls: type, name: str, value: Json) -> object:
        attribute = attrs.fields_dict(cls)[name]
        if value is False and _literals(attribute.type) and "off" in _literals(attribute.type):
            value = "off"  # YAML reads a bare off as false
        try:
            parsed: Any = _CONVERTER.structure(value, cast("type[Any]", attribute.type))
        except (cattrs.errors.CattrsError, ValueError, TypeError):
            quotes = attribute.type is str and isinstance(value, int | float)  # YAML reads 2:1:7 as a number
            raise self.error(key, value, _describe(attribute), "put it in quotes" if quotes else "") from None
        low, high = attribute.metadata.get("low"), attribute.metadata.get("high")
        if parsed is not None and ((low is not None and parsed < low) or (high is not None and parsed > high)):
            raise self.error(key, value, _describe(attribute))
        return parsed


def _looks_like_a_key(text: str) -> bool:
    """Whether this cannot be an environment variable's name, or reads like something generated."""
    if not text or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        return bool(text)
    mixed = any(map(str.islower, text)) and (any(map(str.isupper, text)) or "_" not in text)
    return len(text) >= 20 and mixed and any(map(str.isdigit, text))


def _shown(key: str, value: Json) -> str:
    hidden = _SECRET_KEY.search(key) or _HOLDS_SECRETS.search(key)
    return "a value that is not shown" if hidden else repr(value)


def _nearest(name: str, names: Sequence[str], section: str = "") -> str:
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    prefix = f"{section}." if section else ""
    if close:
        return f"did you mean {prefix}{close[0]}?"
    return f"known: {', '.join(sorted(names))}"


def _literals(kind: object) -> tuple[object, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _describe(attribute: attrs.Attribute[object]) -> str:
    """What a key allows, in words."""
    kind = attribute.type
    low, high = attribute.metadata.get("low"), attribute.metadata.get("high")
    if _literals(kind):
        words = "one of " + ", ".join(str(value) for value in _literals(kind))
    elif kind == float | None:
        words = "a number or null"
    elif _is_mapping(kind):
        words = "a mapping of texts (in quotes)" if get_args(kind)[1] is str else "a mapping"
    else:
        words = _WORDS[cast(type, kind)]
    if low is not None and high is not None:
        return f"{words} from {low:g} to {high:g}"
    return words if low is None else f"{words} of at least {low:g}"


def _exact(kind: type, *others: type) -> Callable[[object, object], object]:
    def structure(value: object, _: object) -> object:
        if type(value) is kind:
            return value
        if type(value) in others:
            return kind(value)
        raise ValueError(f"not {kind.__name__}")

    return structure


def _optional_float(value: object, _: object) -> float | None:
    if value is None:
        return None
    if type(value) in (int, float):
        return float(cast(float, value))
    raise ValueError("not a number")


def _mapping(value: object, kind: object) -> object:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ValueError("not a mapping")
    if get_args(kind)[1] is str and not all(isinstance(inner, str) for inner in value.values()):
        raise ValueError("not texts")
    return value


def _is_mapping(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin is abc.Mapping


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook(int, _exact(int))
    converter.register_structure_hook(float, _exact(float, int))
    converter.register_structure_hook(str, _exact(str))
    converter.register_structure_hook(bool, _exact(bool))
    converter.register_structure_hook_func(lambda kind: kind == float | None, _optional_float)
    converter.register_structure_hook_func(_is_mapping, _mapping)
    return converter


_CONVERTER = _make_converter()
