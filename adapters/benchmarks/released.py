"""The released ids that are part of this software: facts, as `data/` of the original SkillOpt (MIT) lists them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources

from skillopt_es.adapters.benchmarks.plan import SPLITS, Divided
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.events.values import Split

_WHERE = "the released list"


def released_names(benchmark: str) -> Mapping[Split, Sequence[str]]:
    """What the list of a benchmark holds, by split."""
    file = resources.files(__package__) / "released" / f"{benchmark}.json"
    lists = json.loads(file.read_text(encoding="utf-8"))
    return {split: [str(name) for name in lists[split]] for split in SPLITS if split in lists}


def released_ids(benchmark: str) -> Divided:
    """The released split of a benchmark whose list holds ids."""
    return {
        split: [RawItem(id=name, fields={"id": name}, where=_WHERE) for name in names]
        for split, names in released_names(benchmark).items()
    }


def released_games(paths: Mapping[Split, Sequence[str]]) -> Divided:
    """The split of games at these paths: numbered in their order, the type of the task as the path says it."""
    return {
        split: [_game(f"{split}:{number:04}", path) for number, path in enumerate(paths[split])] for split in SPLITS
    }


def _game(name: str, path: str) -> RawItem:
    kind = path.split("/")[2].partition("-")[0]
    return RawItem(id=name, fields={"id": name, "gamefile": path, "task_type": kind}, where=_WHERE)
