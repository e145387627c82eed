"""A sweep as it is written: settings and seeds, how many runs at once, and the limits that they share."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar, cast
from urllib.parse import urlsplit

from attrs import fields, frozen

from skillopt_es.config import RunConfig, load_config
from skillopt_es.config.files import read_yaml
from skillopt_es.config.values import nearest
from skillopt_es.errors import ConfigError
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import Json, digest_of
from skillopt_es.projections.prices import prices_in
from skillopt_es.sessions.commons import Limits, endpoint_of
from skillopt_es.sessions.opening import provider_of

Scored = Literal["test", "validation"]
T = TypeVar("T")

# A slip in an axis makes millions of settings, which would be loaded one by one before anybody sees it.
_MOST_RUNS = 10_000
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80  # file systems take 255 bytes, and a seed and numbers follow
_ANY = "any"
_OUTSIDE_A_RUN = ("budget", "prices")  # they decide nothing, and may change while a sweep goes on


@frozen(kw_only=True)
class PlannedRun:
    """One training: a setting with a seed. `digest` is that of its whole config, as far as it decides anything."""

    name: str
    setting: str
    seed: int
    config: str
    overrides: tuple[str, ...]
    digest: str
    endpoints: tuple[str, ...]


@frozen(kw_only=True)
class RayJobs:
    """That runs are jobs of a Ray cluster: its dashboard's address, what a run takes, and the nodes' Python."""

    address: str
    cpus: float
    resources: Mapping[str, float]
    python: str


@frozen(kw_only=True)
class SweepPlan:
    """A whole sweep; runs stand in the order in which they are begun: seed by seed, so that settings can be paired."""

    file: Path
    runs: tuple[PlannedRun, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    score: Scored
    at_once: int
    finish_early: bool
    limits: Mapping[str, Limits]
    ray: RayJobs | None = None


_KEYS = ("config", "axes", "settings", "seeds", "at_once", "score", "finish_early", "limits", "ray")
_RAY_KEYS = ("address", "cpus", "resources", "python")
_SETTING_KEYS = ("name", "config", "set")
_ONE_SEED: Json = []


@frozen
class _Setting:
    name: str
    config: str
    values: Mapping[str, Json]


def read_plan(file: Path) -> SweepPlan:
    """The sweep that a file describes, with every config in it read; raises ConfigError for one that cannot run."""
    source, tree = read_yaml(file)
    for key in tree:
        if key not in _KEYS:
            raise ConfigError(f"{source}: unknown key {key}", hint=nearest(key, _KEYS))
    read = _Reader(source, tree)
    settings = _settings(read)
    seeds = _seeds(read)
    score: Scored = read.word("score", "test", ("test", "validation"))
    loaded = list(_loaded(file, settings, seeds, score))
    runs = tuple(run for run, _ in loaded)
    if len({run.name for run in runs}) < len(runs):
        raise ConfigError(
            f"{source}: two settings have the same name", hint="give each entry of `settings` a `name` of its own"
        )
    return SweepPlan(
        file=file,
        runs=runs,
        settings=tuple(each.name for each in settings),
        seeds=tuple(dict.fromkeys(run.seed for run in runs)),
        score=score,
        at_once=read.number("at_once", min(2, os.cpu_count() or 1)),
        finish_early=read.switch("finish_early", default=False),
        limits=_limits(read, [config for _, config in loaded]),
        ray=_ray(read) if "ray" in tree else None,
    )


@frozen
class _Reader:
    """Single values of the file; what does not fit is named with the file and its key."""

    source: str
    tree: Mapping[str, Json]

    def error(self, key: str, must: str, hint: str = "") -> ConfigError:
        return ConfigError(f"{self.source}: {key} must be {must}", hint=hint)

    def number(self, key: str, usual: int) -> int:
        value = self.tree.get(key, usual)
        if type(value) is not int or value < 1:
            raise self.error(key, "a whole number, at least 1")
        return value

    def switch(self, key: str, *, default: bool) -> bool:
        value = self.tree.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, "true or false")
        return value

    def word(self, key: str, usual: T, words: Sequence[T]) -> T:
        value = self.tree.get(key, cast(Json, usual))
        if value not in words:
            raise self.error(key, " or ".join(map(str, words)))
        return cast(T, value)

    def mapping(self, key: str, value: Json) -> Mapping[str, Json]:
        if not isinstance(value, dict):
            raise self.error(key, "a mapping")
        return value

    def listed(self, key: str, value: Json, what: str) -> list[Json]:
        if not isinstance(value, list) or not value:
            raise self.error(key, f"a list of {what}")
        return value


# --- settings and seeds ----------------------------------------------------------------------------------------------


def _settings(read: _Reader) -> list[_Setting]:
    base = read.tree.get("config", "")
    if not isinstance(base, str):
        raise read.error("config", "the path of a config file")
    if "axes" in read.tree and "settings" in read.tree:
        raise ConfigError(
            f"{read.source}: it has both axes and settings",
            hint="axes make every combination of their values; settings are a list of your own: keep one of them",
        )
    if "settings" in read.tree:
        rows = read.listed("settings", read.tree["settings"], "settings")
        return [_listed(read, row, number, base) for number, row in enumerate(rows, start=1)]
    return _combined(read, base)


def _listed(read: _Reader, row: Json, number: int, base: str) -> _Setting:
    place = f"settings, entry {number},"
    given = read.mapping(place, row)
    for key in given:
        if key not in _SETTING_KEYS:
            raise ConfigError(f"{read.source}: {place} has the unknown key {key}", hint=nearest(key, _SETTING_KEYS))
    config, name = given.get("config", base), given.get("name")
    values = read.mapping(f"{place} set", given.get("set", {}))
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise read.error(f"{place} name", "text")
    if not isinstance(config, str):
        raise read.error(f"{place} config", "the path of a config file")
    _require_config(read, config)
    return _Setting(name or _described(values) or Path(config).stem, config, values)


def _require_config(read: _Reader, config: str) -> None:
    if not config:
        raise ConfigError(f"{read.source}: it names no config", hint="write `config: config.yaml`, seen from this file")


def _combined(read: _Reader, base: str) -> list[_Setting]:
    _require_config(read, base)
    axes = read.mapping("axes", read.tree.get("axes", {}))
    values = [read.listed(f"axes.{key}", axis, "values") for key, axis in axes.items()]
    count = 1
    for axis in values:
        count *= len(axis)
    if count > _MOST_RUNS:
        raise ConfigError(f"{read.source}: axes make {count:,} settings, and {_MOST_RUNS:,} is the most")
    found = []
    for combination in itertools.product(*values):
        chosen = dict(zip(axes, combination, strict=True))
        found.append(_Setting(_described(chosen) or Path(base).stem, base, chosen))
    return found


def _described(values: Mapping[str, Json]) -> str:
    """A setting in words: its keys without their sections, and their values."""
    return ", ".join(f"{key.rpartition('.')[2]}={_word(value)}" for key, value in values.items())


def _word(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seeds(read: _Reader) -> list[int]:
    """The seeds that are listed, or so many from 1 on; none: each config has its own."""
    given = read.tree.get("seeds", _ONE_SEED)
    if type(given) is int:
        if not 1 <= given <= _MOST_RUNS:
            raise read.error("seeds", f"a list of seeds, or how many of them (1 to {_MOST_RUNS:,})")
        return list(range(1, given + 1))
    if not isinstance(given, list) or any(type(seed) is not int for seed in given):
        raise read.error("seeds", "a list of whole numbers, or how many of them")
    if len(set(map(str, given))) < len(given):
        raise ConfigError(f"{read.source}: seeds has one of them twice", hint="the same seed makes the same run")
    return cast(list[int], given)


def _loaded(
    file: Path, settings: Sequence[_Setting], seeds: Sequence[int], score: Scored
) -> Iterator[tuple[PlannedRun, RunConfig]]:
    """Every run with its config, seed by seed."""
    names = _names([each.name for each in settings])
    if len(settings) * max(1, len(seeds)) > _MOST_RUNS:
        raise ConfigError(f"{file}: it has {len(settings) * len(seeds):,} runs, and {_MOST_RUNS:,} is the most")
    own: list[int | None] = [None]  # as each config says
    for seed in seeds or own:
        for setting in settings:
            yield _run(file, setting, names[setting.name], seed, score)


def _names(settings: Sequence[str]) -> dict[str, str]:
    """What the folders of each setting's runs begin with: its name, as far as a folder can be called so."""
    found: dict[str, str] = {}
    for number, setting in enumerate(settings, start=1):
        name = _NOT_IN_A_NAME.sub("-", setting.replace("=", "-").replace(", ", ".")).strip("-.")
        usable = name and len(name) <= _LONGEST_NAME and name[0].isalnum() and name not in found.values()
        found[setting] = name if usable else f"setting-{number}"
    return found


def _run(file: Path, setting: _Setting, name: str, seed: int | None, score: Scored) -> tuple[PlannedRun, RunConfig]:
    path = real_path(file.parent / setting.config)
    values = dict(setting.values) if seed is None else {**setting.values, "train.seed": seed}
    overrides = tuple(f"{key}={json.dumps(value)}" for key, value in values.items())
    try:
        config = load_config(path, overrides, os.environ)
    except SkillOptError as error:
        raise ConfigError(f"{file}: in the setting {setting.name}: {error.message}", hint=error.hint) from error
    if score == "test" and not config.evaluation.eval_test:
        raise ConfigError(
            f"{file}: score is test, but in the setting {setting.name} no skill is tested (evaluation.eval_test)",
            hint="set evaluation.eval_test: true in its config, or score: validation in the sweep",
        )
    run = PlannedRun(
        name=f"{name}-seed-{config.train.seed}",
        setting=setting.name,
        seed=config.train.seed,
        config=str(path),
        overrides=overrides,
        digest=deciding_digest(config.resolved),
        endpoints=tuple(dict.fromkeys(endpoint_of(config, role) for role in config.roles)),
    )
    return run, config


def deciding_digest(resolved: Mapping[str, Json]) -> str:
    """The digest of a config, as it is resolved or recorded, without what may change while a run goes on."""
    decides = {key: value for key, value in resolved.items() if key not in _OUTSIDE_A_RUN}
    return digest_of(json.dumps(decides, sort_keys=True).encode())


# --- a cluster -------------------------------------------------------------------------------------------------------


def _ray(read: _Reader) -> RayJobs:
    given = read.mapping("ray", read.tree["ray"])
    for key in given:
        if key not in _RAY_KEYS:
            raise ConfigError(f"{read.source}: unknown key ray.{key}", hint=nearest(key, _RAY_KEYS))
    address, python = given.get("address", ""), given.get("python", sys.executable)
    if not isinstance(address, str) or urlsplit(address).scheme not in ("http", "https"):
        raise read.error(
            "ray.address", "the address of the cluster's dashboard, such as http://10.0.0.1:8265",
            "`ray start --head` tells it; jobs are handed over there",
        )  # fmt: skip
    if not isinstance(python, str) or not python:
        raise read.error("ray.python", "the Python of the nodes that has skillopt-es")
    amounts = {"cpus": given.get("cpus", 1), **read.mapping("ray.resources", given.get("resources", {}))}
    for name, amount in amounts.items():
        if type(amount) not in (int, float) or cast(float, amount) < 0:
            raise read.error("ray.cpus" if name == "cpus" else f"ray.resources.{name}", "a number, at least 0")
    cpus, *_ = numbers = [float(cast(float, amount)) for amount in amounts.values()]
    resources = dict(zip([*amounts][1:], numbers[1:], strict=True))
    return RayJobs(address=address.rstrip("/"), cpus=cpus, resources=resources, python=python)


# --- limits ----------------------------------------------------------------------------------------------------------


def _limits(read: _Reader, configs: Sequence[RunConfig]) -> dict[str, Limits]:
    """The limits of each endpoint that the runs use; `any` stands for those that are not named."""
    given = read.mapping("limits", read.tree.get("limits", {}))
    used = list(dict.fromkeys(endpoint_of(config, role) for config in configs for role in config.roles))
    known = {name: _limit(read, name, read.mapping(f"limits.{name}", row)) for name, row in given.items()}
    strangers = [name for name in known if name not in (*used, _ANY)]
    if strangers:
        raise ConfigError(
            f"{read.source}: limits names {strangers[0]}, which none of the runs uses",
            hint=f"they use {', '.join(used)}; `{_ANY}` stands for each that is not named",
        )
    found = {name: known.get(name, known.get(_ANY, Limits())) for name in used}
    for name, limit in found.items():
        if limit.max_cost is not None:
            _require_prices(read, name, configs)
        if limit.max_cost is not None or limit.max_tokens is not None:
            _require_bounded(read, name, configs)
    return {name: limit for name, limit in found.items() if limit != Limits()}


def _limit(read: _Reader, name: str, row: Mapping[str, Json]) -> Limits:
    known = [each.name for each in fields(Limits)]
    for key, value in row.items():
        place = f"limits.{name}.{key}"
        if key not in known:
            raise ConfigError(f"{read.source}: unknown key {place}", hint=nearest(key, known))
        kinds = (int, float) if key == "max_cost" else (int,)
        if type(value) not in kinds or cast(float, value) <= 0:
            raise read.error(place, "a number above 0" if key == "max_cost" else "a whole number above 0")
    return Limits(**row)  # type: ignore[arg-type]  # each was looked at above


def _require_prices(read: _Reader, name: str, configs: Sequence[RunConfig]) -> None:
    for config in configs:
        prices = prices_in(config.resolved).by_role
        for role in config.roles:
            if endpoint_of(config, role) == name and role not in prices:
                raise ConfigError(
                    f"{read.source}: limits.{name}.max_cost needs the price of every model, and "
                    f"{config.role(role).model} has none",
                    hint=f"set prices.unit and prices.models.{config.role(role).model} in the config",
                )


def _require_bounded(read: _Reader, name: str, configs: Sequence[RunConfig]) -> None:
    for config in configs:
        for role in config.roles:
            provider = provider_of(config.role(role).backend)
            if endpoint_of(config, role) == name and provider is not None and provider.agent:
                raise ConfigError(
                    f"{read.source}: limits.{name} has max_tokens or max_cost, which cannot be kept: the {role} is a "
                    f"coding agent ({config.role(role).backend}), which asks its model as often as it likes",
                    hint="max_calls (questions to the agent) and requests_per_minute work for it",
                )
