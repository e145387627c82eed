"""
The layers of a config: the defaults, a file with its `_base_` chain, and `--set` texts, each laid over the last.

`configs/base.yaml` holds all defaults. For every key it is remembered where its value came from.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import yaml
from attrs import define, evolve, field

from skillopt_es.config.backends import spellings
from skillopt_es.config.once import GivenTwice, load_once
from skillopt_es.config.original import FLAT
from skillopt_es.config.places import packaged
from skillopt_es.config.reader import parse_config, plain_value
from skillopt_es.config.sections import SECTIONS, RunConfig, Tree
from skillopt_es.config.translation import translated
from skillopt_es.config.values import shown
from skillopt_es.errors import ConfigError
from skillopt_es.events.codec import clean_text
from skillopt_es.events.values import Json

_DEMO = "demo"


def load_config(path: Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The run that a file and its overrides describe; without a file, of the bundled demo."""
    file = demo_config() if path is None else path
    layers = _Layers()
    for source, layer in (_read_yaml(packaged("base.yaml")), *_chain(file, ())):
        layers.add(layer, source)
    for text in overrides:
        layers.add(_parse_override(text), "--set")
    return layers.parsed(file.resolve().parent)


def demos() -> tuple[str, ...]:
    """The names of the bundled demos, the first of which needs no name."""
    others = sorted(file.stem for file in packaged("demo").glob("*.yaml") if file.stem != _DEMO)
    return (_DEMO, *others)


def demo_config(name: str = _DEMO) -> Path:
    """The file of a bundled demo; raises ConfigError for a name that none has."""
    if name not in demos():
        raise ConfigError(f"there is no demo {name!r}", hint=f"demos: {', '.join(demos())}")
    return packaged(f"demo/{name}.yaml")


EMPTY: Mapping[str, Json] = {}

_OLDER_LOGS: Tree = {"evaluation": {"gate_noise": "items"}, "optimizer": {"close_gaps": False}}
"""What ran where a log does not have the key yet: where that is another thing than today's default."""


def recorded_config(recorded: Tree, folder: Path, overrides: Mapping[str, Json] = EMPTY) -> RunConfig:
    """The run that a log has recorded; a key that is newer than the log has the value that keeps what was then."""
    layers = _Layers()
    older, log = ("older logs", _OLDER_LOGS), ("the log", copy.deepcopy(recorded))
    for source, layer in (_read_yaml(packaged("base.yaml")), older, log):
        layers.add(layer, source)
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        layers.add({section: {name: value}}, "--set")
    told = {key: source for key, source in layers.sources.items() if source == "--set"}
    return parse_config(layers.tree, folder=folder, sources=told)


# What may change when a run is resumed: how the world is reached and how patiently, never what is decided or asked.
_RESUMABLE = {
    "env": ("workers", "exec_timeout", "max_completion_tokens"),
    "gradient": ("analyst_workers",),
    "optimizer": ("max_completion_tokens", "rewrite_max_completion_tokens"),
    "rollout": ("max_failed_share", "max_failed_share_train"),
    "prices": ("unit", "models"),
    "budget": ("max_cost", "max_tokens", "max_calls", "max_minutes"),
}
RESUMABLE_MODEL_KEYS = (
    "base_url",
    "api_key_env",
    "timeout_seconds",
    "attempts",
    "backoff_seconds",
    "backoff_cap_seconds",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "deadline_seconds",
    "stream",
    "max_output_tokens",
    "auth_mode",
    "ad_scope",
    "managed_identity_client_id",
    "allow_hosts",
    "agent_answers",
    "agent_command",
    "agent_env",
    "agent_processes",
)


def resume_overrides(overrides: Sequence[str]) -> Mapping[str, Json]:
    """`--set` texts for `resume`, by key; refuses a key that would make another run of it."""
    allowed = [f"{section}.{name}" for section, names in _RESUMABLE.items() for name in names]
    allowed += [f"model.{role}{name}" for role in ("", "optimizer_", "target_") for name in RESUMABLE_MODEL_KEYS]
    found: dict[str, Json] = {}
    for text in overrides:
        for section, values in translated(_parse_override(text), "--set").tree.items():
            for name, value in cast(Tree, values).items():
                key = f"{section}.{name}"
                if key not in allowed:
                    raise ConfigError(
                        f"--set {key}: a run that has begun keeps it; only what never decides anything can change",
                        hint=f"these can: {', '.join(allowed[: len(allowed) - 2 * len(RESUMABLE_MODEL_KEYS)])}",
                    )
                found[key] = value
    return found


def any_overrides(overrides: Sequence[str]) -> dict[str, Json]:
    """`--set` texts for a fork, by key; whether a key may change there is not decided here."""
    return {
        f"{section}.{name}": plain_value(section, name, value)
        for text in overrides
        for section, values in translated(_parse_override(text), "--set").tree.items()
        for name, value in cast(Tree, values).items()
    }


def with_overrides(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The same run with further `--set` texts laid over it."""
    if not overrides:
        return config
    layers = _Layers(tree=copy.deepcopy(dict(config.resolved)))
    for text in overrides:
        layers.add(_parse_override(text), "--set")
    return layers.parsed(config.folder)


@define
class _Layers:
    """What the layers so far add up to, where each key's value came from, and what is to be told about them."""

    tree: Tree = field(factory=dict)
    sources: dict[str, str] = field(factory=dict)
    notices: dict[str, str] = field(factory=dict)

    def add(self, layer: Tree, source: str) -> None:
        """One more layer over the others."""
        found = translated(layer, source)
        self.notices.update(found.notices)
        for section, values in found.tree.items():
            into = cast(Tree, self.tree.setdefault(section, {}))
            for spelling in (other for key in cast(Tree, values) if section == "model" for other in spellings(key)):
                into.pop(spelling, None)  # an earlier layer's; one of this layer is put in below
            for key, value in cast(Tree, values).items():
                into[key] = _laid_over(into.get(key), value)
                self.sources[f"{section}.{key}"] = source

    def parsed(self, folder: Path | str) -> RunConfig:
        """The typed run."""
        config = parse_config(self.tree, folder=folder, sources=self.sources)
        return evolve(config, notices=tuple(self.notices.values()), sources=self.sources)


def _laid_over(old: Json, new: Json) -> Json:
    """Mappings are merged key by key; everything else takes the other's place."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _laid_over(old.get(key), value) for key, value in new.items()}}


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
        raise ConfigError(f"{file}: _base_ is {base!r}, but must be a preset or the path of one YAML file")
    return [*_chain(_base_of(file, base), (*seen, file)), (source, tree)]


def _base_of(file: Path, base: str) -> Path:
    """A bare word names a preset, anything else a file beside the one that says so."""
    if not _PRESET.fullmatch(base):
        return file.parent / base
    preset = packaged(f"presets/{base}.yaml")
    if not preset.is_file():
        raise ConfigError(
            f"{file}: _base_ is {base!r}, but there is no such preset",
            hint=f"presets: {', '.join(presets())}; a file is named with its ending, such as {base}.yaml",
        )
    return preset


def presets() -> tuple[str, ...]:
    """The names that `_base_` knows everywhere."""
    return tuple(sorted(file.stem for file in packaged("presets").glob("*.yaml")))


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
        tree = load_once(text)
        _require_plain(tree, "", str(file))
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply, or within itself") from None
    except GivenTwice as twice:
        raise ConfigError(
            f"{file}, line {twice.line}: {twice.key} is there already, in line {twice.first}",
            hint="keep one of them: what stands below one would silently replace what stands below the other",
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{file}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None
    if tree is None:
        tree = {}
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise ConfigError(f"{file}: a config is a mapping of sections ({', '.join(['model', *SECTIONS])})")
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
            f"{source}: {key} is {shown(key, cast(Json, value))}, but must be text, a number, true, false or null",
            hint="put it in quotes" if not isinstance(value, str | float) else "",
        )


def _is_json(value: str | int | float | None) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, str) or value.isascii() or clean_text(value) == value


_PRESET = re.compile(r"[a-z][a-z0-9-]*")
_BASE_60 = re.compile(r"[0-9]+(:[0-9]+)+")  # YAML reads 2:1:7 as a number of minutes; nobody means that


def _parse_override(text: str) -> Tree:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not ("." in key or key in FLAT):
        said = f"{key}=…" if equals else key  # what follows may be a secret
        raise ConfigError(f"--set {said}: write it as section.key=value, such as train.batch_size=20")
    try:
        parsed: Json = yaml.safe_load(value) if value and not _BASE_60.fullmatch(value) else value
    except yaml.YAMLError:
        parsed = value
    _require_plain(parsed, key, "--set")
    section, dot, name = key.partition(".")
    return {section: {name: parsed}} if dot else {key: parsed}
