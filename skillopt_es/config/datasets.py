"""A dataset that has splits of its own is divided by them, where nobody says otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from attrs import frozen

from skillopt_es.config.files import MOST_BYTES
from skillopt_es.config.sections import Tree
from skillopt_es.errors import ConfigError
from skillopt_es.events.plain import read_plain
from skillopt_es.ports import split_words

_SPLITS_OF = "dataset_dict.json"
_TASKS = "tasks"


@frozen
class OwnSplits:
    """The config with the division that a dataset brings, where it was taken from, and what is to be told of it."""

    tree: Tree
    sources: dict[str, str]
    notes: tuple[str, ...] = ()


def with_own_splits(tree: Tree, sources: dict[str, str], usual: str, folder: Path) -> OwnSplits:
    """The config of a run whose data are in `env.data_path`; `usual` is the source of what nobody chose."""
    env = cast(Tree, tree.get("env", {}))
    path = env.get("data_path")
    chosen = [key for key in ("split_mode", "split_ratio") if sources.get(f"env.{key}", usual) != usual]
    if chosen or env.get("name") != _TASKS or not isinstance(path, str) or not path:
        return OwnSplits(tree, sources)
    file = folder / path / _SPLITS_OF
    names = _names_in(file)
    if not names:
        return OwnSplits(tree, sources)
    said = ", ".join(names)
    if not {"train", "val"} <= {*split_words(names).values()}:
        lacks = " and ".join(split for split in ("train", "val") if split not in split_words(names).values())
        note = f"the dataset's own splits ({said}) are mixed and divided again, since none of them is {lacks}"
        return OwnSplits(tree, sources, (note,))
    return OwnSplits(
        {**tree, "env": {**env, "split_mode": "field", "split_field": "split"}},
        {**sources, "env.split_mode": str(file), "env.split_field": str(file)},
        (f"the dataset's own splits are used: {said} (env.split_mode: ratio divides its tasks otherwise)",),
    )


def _names_in(file: Path) -> list[str]:
    """The splits of a dataset as it was saved; none where there is no such file."""
    try:
        said = json.loads(read_plain(file, follow=True, most=MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint="save the dataset again") from error
    names = said.get("splits") if isinstance(said, Mapping) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
