"""Where the relative paths of a config start: at the config, at the working folder, or where there is something."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

from attrs import frozen

from skillopt_es.config.places import packaged
from skillopt_es.config.sections import Tree
from skillopt_es.events.plain import real_path
from skillopt_es.events.values import Json

KEYS = ("skill_init", "split_dir", "data_path", "data_root", "data_dirs", "docs_dirs", "grader_files")
"""The keys of `env` that are paths."""
_LISTS = ("data_dirs", "docs_dirs", "grader_files")


@frozen
class Whereabouts:
    """The folder of the config, the working folder, and whether the config is one of the original's."""

    config: Path
    working: Path
    original: bool

    def of_config(self, path: str) -> bool:
        """Whether there is something at this path, seen from the config."""
        return (self.config / path).exists()

    def of_working(self, path: str) -> bool:
        """Whether there is something at this path, seen from the working folder."""
        return (self.working / path).exists()

    def from_config(self, path: str) -> str:
        """The path of something in the working folder, as the config would have to say it."""
        there = self.working / path
        if self.config.is_relative_to(packaged().resolve()):
            return str(there)  # the package may be elsewhere tomorrow
        return os.path.relpath(there, self.config)


@frozen
class Found:
    """The section `env` with paths that all start at the config, and what is to be told about them."""

    env: Tree
    notes: tuple[str, ...]


def settled_paths(env: Tree, sources: Mapping[str, str], asked: str, places: Whereabouts) -> Found:
    """Paths of the command line start at the working folder, those of the original's files where they exist."""
    found = dict(env)
    working: list[str] = []
    if places.config == places.working:
        return Found(found, ())

    def placed(key: str, value: str) -> str:
        value = value.strip()
        source = sources.get(f"env.{key}", "")
        elsewhere = not places.of_working(value) and places.of_config(value)
        if not value.strip() or Path(value).is_absolute() or elsewhere:
            return value
        if source != asked:
            if not places.original:
                return value
            working.append(value)
        return places.from_config(value)

    for key in KEYS:
        if key in found:
            found[key] = _each(key, found[key], partial(placed, key))
    note = f"these paths start at the working folder, as in the original: {', '.join(working)}"
    return Found(found, (note,) if working else ())


def _each(key: str, value: Json, placed: Callable[[str], str]) -> Json:
    """A path; where a key takes several, a list of them or a text with commas between them."""
    if isinstance(value, list):
        return [placed(part) if isinstance(part, str) else part for part in value]
    if key in _LISTS and isinstance(value, str):
        return ",".join(placed(part.strip()) for part in value.split(","))
    return placed(value) if isinstance(value, str) else value


def asked_from_here(asked: Mapping[str, Json], config: Path) -> dict[str, Json]:
    """Settings of the command line, by key, for a config in this folder: their paths start at the working folder."""
    env = {key.removeprefix("env."): value for key, value in asked.items() if key.startswith("env.")}
    places = Whereabouts(config=real_path(config), working=Path.cwd(), original=False)
    found = settled_paths(env, {f"env.{key}": "--set" for key in env}, "--set", places).env
    return {**asked, **{f"env.{key}": value for key, value in found.items()}}


def with_paths(tree: Tree, sources: Mapping[str, str], asked: str, places: Whereabouts) -> tuple[Tree, tuple[str, ...]]:
    """The whole config with its paths settled, and what is to be told."""
    found = settled_paths(cast(Tree, tree.get("env", {})), sources, asked, places)
    return {**tree, "env": found.env}, found.notes
