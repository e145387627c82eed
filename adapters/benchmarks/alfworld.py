"""ALFWorld: games by their place under the data root; the games stay where they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.lookup import named
from skillopt_es.adapters.benchmarks.plan import Benchmark, Fields, Found, Source
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.errors import DataError

_KEYS = ("pddl_domain", "grammar", "pddl_problem")


def _read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    items: dict[str, Fields] = {}
    games: list[Path] = []
    broken: list[str] = []
    for name, raw in wanted.items():
        game = _game(raw, folder)
        if game.is_file():
            why = _fault(game)
            broken += [f"{name} ({why})"] if why else []
            items[name] = raw.fields
            games.append(game)
    if broken:
        raise DataError(f"{len(broken)} games cannot be loaded: {named(broken)}", hint="download the games again")
    return Found(items=items, inputs=list(dict.fromkeys(games)))


def _game(raw: RawItem, root: Path) -> Path:
    given = raw.fields.get("gamefile")
    if not isinstance(given, str) or not given:
        raise raw.refusal("`gamefile` is missing", "name the game below the data root")
    game = (root / given).resolve()
    if not game.is_relative_to(root.resolve()):
        raise raw.refusal(f"`gamefile` leads out of the data: {given!r}", "name a file below the data root")
    return game


def _fault(game: Path) -> str:
    try:
        loaded = json.loads(game.read_bytes())
    except ValueError:
        return "not JSON"
    missing = [key for key in _KEYS if key not in loaded] if isinstance(loaded, dict) else [*_KEYS]
    return f"no {', '.join(missing)}" if missing else ""


ALFWORLD = Benchmark(
    name="alfworld",
    about="household tasks in a text world",
    sources=(
        Source(
            what="the text games: json_2.1.1/train, valid_seen and valid_unseen",
            where="https://github.com/alfworld/alfworld/releases",
            licence="MIT",
            get="pip install alfworld && ALFWORLD_DATA=DOWNLOADS/alfworld alfworld-download",
            note="the root that --from names is the one that ALFWORLD_DATA names when you train",
        ),
    ),
    id_folder="alfworld_path_split",
    sizes=(39, 18, 134),
    required=("gamefile",),
    read=_read,
)
