"""
The layers of a config: the defaults, a file with its `_base_` chain, and `--set` texts, each laid over the last.

`configs/base.yaml` holds all defaults. For every key it is remembered where its value came from.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from attrs import define, evolve, field, fields

from skillopt_es.config.backends import spellings
from skillopt_es.config.datasets import with_own_splits
from skillopt_es.config.dotenv import dotenv_notes, variables_in
from skillopt_es.config.draft import ASKED, DEFAULTS
from skillopt_es.config.files import MOST_BYTES, parsed_value, read_yaml
from skillopt_es.config.original import FLAT, read_layer, translated
from skillopt_es.config.places import is_packaged, packaged
from skillopt_es.config.reader import TRAINING, parse_config, plain_value
from skillopt_es.config.sections import MODEL_KEYS, SECTIONS, RunConfig, Tree
from skillopt_es.config.settling import Given, settled
from skillopt_es.config.table import TABLE
from skillopt_es.config.values import nearest
from skillopt_es.config.variables import ALL
from skillopt_es.config.whereabouts import Whereabouts, with_paths
from skillopt_es.errors import ConfigError, first_of
from skillopt_es.events.plain import read_plain, real_path
from skillopt_es.events.values import ConfigFile, Json, Role, digest_of

_DEMO = "demo"
_LIMIT = "env.max_completion_tokens"
_NO_VARIABLES: Mapping[str, str] = {}


def load_config(
    path: Path | None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = _NO_VARIABLES,
    *,
    asks: Sequence[Role] = TRAINING,
) -> RunConfig:
    """
    The run that a file, its overrides and the environment's variables describe; without a file, the bundled demo.

    Raises ConfigError where a role that it `asks` has no model.
    """
    file = demo_config() if path is None else path
    chain, folder = _chain(file, ()), real_path(file).parent
    config = _loaded(chain, folder, overrides, environ, asks)
    if is_packaged(str(real_path(file))):
        return config
    given = tuple(sorted(key for key, source in config.sources.items() if source == ASKED))
    return evolve(config, file=ConfigFile(real_path(file).name, _digest(file), given))


def _digest(file: Path) -> str:
    try:
        return digest_of(read_plain(file, follow=True, most=MOST_BYTES))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def changed_since(
    config: RunConfig, file: ConfigFile, given: Collection[str], environ: Mapping[str, str] = _NO_VARIABLES
) -> tuple[str, ...] | None:
    """
    The keys that a run's config file gives otherwise by now; None where the file is as it was, or is gone.

    `given` are the keys that were set beside the file. Others may follow from them, as an algorithm's defaults do.
    Raises ConfigError where the file cannot be read any more.
    """
    path = Path(config.folder, file.name)
    if not path.is_file() or _digest(path) == file.digest:
        return None
    beside = {*file.given, *given}
    layer: Tree = {}
    for section, name in (key.split(".", 1) for key in sorted(beside)):
        recorded = cast(Tree, config.resolved.get(section, {}))
        if name in recorded:
            cast(Tree, layer.setdefault(section, {}))[name] = copy.deepcopy(recorded[name])
    now = _loaded([*_chain(path, ()), (ASKED, layer)], real_path(path).parent, (), environ, TRAINING).resolved
    return tuple(
        f"{section}.{name}"
        for section, values in now.items()
        if isinstance(values, dict)
        for name, value in values.items()
        if f"{section}.{name}" not in beside and value != cast(Tree, config.resolved.get(section, {})).get(name)
    )


def config_of(
    tree: Tree,
    folder: Path,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] = _NO_VARIABLES,
    *,
    asks: Sequence[Role] = TRAINING,
) -> RunConfig:
    """The run that a mapping describes, written as a file in `folder` would be; with `_base_` where it has one."""
    chain = _based(folder / "config", "the config", copy.deepcopy(tree), ())
    return _loaded(chain, real_path(folder), overrides, environ, asks)


def _loaded(
    chain: Sequence[tuple[str, Tree]],
    folder: Path,
    overrides: Sequence[str],
    environ: Mapping[str, str],
    asks: Sequence[Role],
) -> RunConfig:
    given = [*chain, *((ASKED, _parse_override(text)) for text in overrides)]
    layers = _Layers()
    for source, layer in (_shipped("base.yaml"), *_defaults_of_algorithm(given), *given):
        layers.add(layer, source)
    return layers.settled(folder, environ, asks)


def limits_answers(config: RunConfig) -> bool:
    """Whether the user has limited the target's answers, to less than the model itself can write."""
    most, writes = config.env.max_completion_tokens, config.target_model.max_output_tokens
    return config.limit_chosen and (not writes or most < writes)


def _shipped(name: str) -> tuple[str, Tree]:
    """A file that comes with this package, as a layer of one's own."""
    return copy.deepcopy(_parsed(name))


@cache  # a resume or an audit of many runs reads the defaults many times, and YAML is slow
def _parsed(name: str) -> tuple[str, Tree]:
    return read_yaml(packaged(name))


def _defaults_of_algorithm(given: Sequence[tuple[str, Tree]]) -> list[tuple[str, Tree]]:
    """The preset of the chosen algorithm's own name, which stands below all that was given; many have none."""
    layers = _Layers()
    for source, layer in given:
        layers.add(copy.deepcopy(layer), source)
    name = cast(Tree, layers.tree.get("train", {})).get("algorithm")
    preset = packaged(f"presets/{name}.yaml")
    known = isinstance(name, str) and _PRESET.fullmatch(name) and preset.is_file()
    return [read_yaml(preset)] if known else []


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


def recorded_config(
    recorded: Tree, folder: Path, overrides: Mapping[str, Json] = EMPTY, *, limit_chosen: bool = False
) -> RunConfig:
    """
    The run that a log has recorded, with settings laid over it; raises ConfigError where a key is missing.

    `limit_chosen` is recorded beside the config: no setting of a later session changes it.
    """
    layers = _Layers()
    layers.add(copy.deepcopy(recorded), "the log")
    for key, value in overrides.items():
        section, _, name = key.partition(".")
        layers.add({section: {name: value}}, ASKED)
    told = {key: source for key, source in layers.sources.items() if source == ASKED}
    models = cast(Tree, recorded.get("model", {}))
    asks = [role for role in TRAINING if models.get(role)]  # the log of an evaluation need not name an optimizer
    config = parse_config(layers.tree, folder=folder, sources=told, asks=asks)
    return evolve(config, limit_chosen=limit_chosen)


# What may change when a run is resumed: how the world is reached and how patiently, never what is decided or asked.
_RESUMABLE = {
    "env": ("executor", "workers", "exec_timeout"),
    "gradient": ("analyst_workers",),
    "optimizer": ("max_completion_tokens", "rewrite_max_completion_tokens"),
    "rollout": ("max_failed_share", "max_failed_share_train", "max_unanswered_share", "crashed"),
    "ray": ("address", "cpus", "resources"),
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
    "patience_seconds",
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
    "agent_isolated",
    "agent_processes",
    "command",
    "url",
)


PLANNED_BY = ("algorithm", "num_epochs", "train_size", "batch_size", "accumulation")
"""The keys of `train` by which all steps are planned when a run starts."""


def resume_overrides(overrides: Sequence[str], run: str, where: str, steps: int) -> Mapping[str, Json]:
    """
    `--set` texts for `resume`, by key; refuses a key that would make another run of it.

    `run` is the run's name, `where` the option that finds it, `steps` what it has done: for what to do instead.
    """
    allowed = [f"{section}.{name}" for section, names in _RESUMABLE.items() for name in names]
    allowed += [f"model.{role}{name}" for role in ("", "optimizer_", "target_") for name in RESUMABLE_MODEL_KEYS]
    found: dict[str, Json] = {}
    for text in overrides:
        for section, values in translated(_parse_override(text), ASKED).tree.items():
            for name, value in cast(Tree, values).items():
                key = f"{section}.{name}"
                if key not in allowed:
                    raise _refused(section, name, _instead(section, name, run, where, steps))
                found[key] = value
    return found


def _refused(section: str, name: str, instead: str) -> ConfigError:
    """Why `resume` does not take a key."""
    known = MODEL_KEYS if section == "model" else [each.name for each in fields(SECTIONS[section])]
    if name not in known and section != "env":  # an environment has keys of its own
        return ConfigError(f"--set {section}.{name}: unknown key", hint=nearest(name, known, section))
    return ConfigError(
        f"--set {section}.{name}: a run that has begun keeps it; only settings that decide nothing can change",
        hint=instead,
    )


def _instead(section: str, name: str, run: str, where: str, steps: int) -> str:
    """What makes another run with another value: from here on, or where all rests on it, from the start."""
    key = f"{section}.{name}"
    if key == "train.num_epochs":
        return f"`skillopt-es continue {run} --set {key}=…{where}` trains on from its best skill, as a new run"
    if key == _LIMIT:
        return f"`skillopt-es fork {run} --set {key}=…{where}` makes another run with it, if no result rests on it yet"
    if section == "env" or (section == "train" and name in PLANNED_BY):
        return (
            "a new run can have another value, and begin with this one's best skill: "
            f"`skillopt-es export {run} SKILL.md{where}`, then "
            f"`skillopt-es run CONFIG --set env.skill_init=SKILL.md --set {key}=…`"
        )
    until = f" --until step {steps}" if steps else ""
    return f"`skillopt-es fork {run}{until} --set {key}=…{where}` makes another run, which continues from there with it"


def any_overrides(overrides: Sequence[str]) -> dict[str, Json]:
    """`--set` texts for a fork, by key; whether a key may change there is not decided here."""
    return {
        f"{section}.{name}": plain_value(section, name, value)
        for text in overrides
        for section, values in translated(_parse_override(text), ASKED).tree.items()
        for name, value in cast(Tree, values).items()
    }


def with_overrides(
    config: RunConfig,
    overrides: Sequence[str],
    environ: Mapping[str, str] = _NO_VARIABLES,
    *,
    asks: Sequence[Role] = TRAINING,
) -> RunConfig:
    """The same run with further `--set` texts laid over it."""
    if not overrides:
        return config
    layers = _Layers(tree=copy.deepcopy(dict(config.resolved)))
    for text in overrides:
        layers.add(_parse_override(text), ASKED)
    changed = layers.settled(Path(config.folder), environ, asks)
    return evolve(changed, limit_chosen=config.limit_chosen or changed.limit_chosen)


@define
class _Layers:
    """What the layers so far add up to, where each key's value came from, and what is to be told about them."""

    tree: Tree = field(factory=dict)
    sources: dict[str, str] = field(factory=dict)
    notices: dict[str, str] = field(factory=dict)
    original: bool = False
    mistakes: list[ConfigError] = field(factory=list)

    def add(self, layer: Tree, source: str) -> None:
        """One more layer over the others."""
        found = read_layer(layer, source)
        self.mistakes += found.mistakes
        self.notices.update(found.notices)
        if source != ASKED:
            self.original = (
                self.original or TABLE.mark in layer or TABLE.mark in cast(Tree, found.tree.get("model", {}))
            )
        for section, values in found.tree.items():
            into = cast(Tree, self.tree.setdefault(section, {}))
            for spelling in (other for key in cast(Tree, values) if section == "model" for other in spellings(key)):
                into.pop(spelling, None)  # an earlier layer's; one of this layer is put in below
            for key, value in cast(Tree, values).items():
                into[key] = _laid_over(into.get(key), value)
                self.sources[f"{section}.{key}"] = source

    def settled(self, folder: Path, environ: Mapping[str, str], asks: Sequence[Role]) -> RunConfig:
        """The typed run; raises the first mistake of all layers, which knows the others."""
        try:
            found = self._read(folder, environ, asks)
        except ConfigError as mistake:
            raise first_of([*self.mistakes, mistake]) from None
        if self.mistakes:
            raise first_of(self.mistakes)
        return found

    def _read(self, folder: Path, environ: Mapping[str, str], asks: Sequence[Role]) -> RunConfig:
        filed = variables_in(Path.cwd(), ALL, environ) if self.original else {}
        whole = settled(Given(self.tree, self.sources, self.original), environ, filed)
        places = Whereabouts(config=folder, working=Path.cwd(), original=self.original)
        tree, notes = with_paths(whole.tree, whole.sources, ASKED, places)
        own = with_own_splits(tree, whole.sources, DEFAULTS, folder)
        config = parse_config(own.tree, folder=folder, sources=own.sources, asks=asks)
        notices = (*self.notices.values(), *whole.notices)
        return evolve(
            config,
            notices=notices,
            notes=(
                *whole.notes,
                *notes,
                *own.notes,
                *dotenv_notes(config, environ, [name for name in whole.used if name in filed]),
            ),
            sources=own.sources,
            released_size=self._has_released_size(config),
            limit_chosen=not is_packaged(own.sources.get(_LIMIT, DEFAULTS)),
        )

    def _has_released_size(self, config: RunConfig) -> bool:
        """Whether how many training items there are is what a file of the original says of the released split."""
        source = self.sources.get("train.train_size", ASKED)
        theirs = self.original and source != ASKED and not is_packaged(source)
        benchmark = TABLE.benchmarks.get(config.env.name)
        return theirs and benchmark is not None and benchmark.train_size == config.train.train_size


def _laid_over(old: Json, new: Json) -> Json:
    """Mappings are merged key by key; everything else takes the other's place."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _laid_over(old.get(key), value) for key, value in new.items()}}


def _chain(file: Path, seen: tuple[Path, ...]) -> list[tuple[str, Tree]]:
    """A file's layers, the base of its bases first."""
    file = real_path(file)
    if file in seen:
        raise ConfigError(f"{file}: _base_ leads back to this file", hint="remove one of the _base_ lines")
    return _based(file, *read_yaml(file), (*seen, file))


def _based(file: Path, source: str, tree: Tree, seen: tuple[Path, ...]) -> list[tuple[str, Tree]]:
    """A layer after those that its `_base_` names."""
    base = tree.pop("_base_", None)
    if base is None:
        return [(source, tree)]
    if not isinstance(base, str):
        raise ConfigError(f"{source}: _base_ is {base!r}, but must be a preset or the path of one YAML file")
    return [*_chain(_base_of(file, base), seen), (source, tree)]


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


_PRESET = re.compile(r"[a-z][a-z0-9-]*")
_BASE_60 = re.compile(r"[0-9]+(:[0-9]+)+")  # YAML reads 2:1:7 as a number of minutes; nobody means that


def _parse_override(text: str) -> Tree:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not ("." in key or key in FLAT):
        said = f"{key}=…" if equals else key  # what follows may be a secret
        raise ConfigError(f"--set {said}: write it as section.key=value, such as train.batch_size=20")
    parsed = value if not value or _BASE_60.fullmatch(value) else parsed_value(value, key)
    section, dot, name = key.partition(".")
    return {section: {name: parsed}} if dot else {key: parsed}
