"""ALFWorld: games by their place under the data root; the games stay where they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.id_lists import released_games, released_names
from skillopt_es.adapters.benchmarks.plan import Divided, Fields, Found
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError

_KEYS = ("pddl_domain", "grammar", "pddl_problem")
_UNSEEN = "json_2.1.1/valid_unseen"
_UNSEEN_GAMES = 134  # ALFWorld's own valid_unseen; a download that broke off has fewer
_NEVER_PLAYED = ("movable", "Sliced")  # the package leaves these tasks out


def divided(folder: Path) -> Divided:
    """The released split: listed games to train and validate on, and all games of unknown rooms in their order."""
    games = sorted(
        game.relative_to(folder).as_posix()
        for game in (folder / _UNSEEN).glob("*/*/game.tw-pddl")
        if not any(word in game.parts[-3] for word in _NEVER_PLAYED) and _solvable(game)
    )
    if len(games) != _UNSEEN_GAMES:
        raise DataError(
            f"the released split tests on all {_UNSEEN_GAMES} games in {_UNSEEN}, and {len(games)} are there",
            hint="download the games anew, or name a checkout of the original with --ids",
        )
    return released_games({**released_names("alfworld"), "test": games})


def _solvable(game: Path) -> bool:
    """Whether a game says that it can be won; one that is broken is told when it is read."""
    try:
        loaded = json.loads(game.read_bytes())
    except ValueError:
        return True
    return not isinstance(loaded, dict) or loaded.get("solvable") is not False


def read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    """What a folder of downloads holds of the wanted items."""
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
        raise raw.refusal(f"`gamefile` points outside of the data: {given!r}", "name a file below the data root")
    return game


def _fault(game: Path) -> str:
    try:
        loaded = json.loads(game.read_bytes())
    except ValueError:
        return "not JSON"
    missing = [key for key in _KEYS if key not in loaded] if isinstance(loaded, dict) else [*_KEYS]
    return f"no {', '.join(missing)}" if missing else ""
