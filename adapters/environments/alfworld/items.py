"""ALFWorld's items: a game file below the data root, or a game in the item itself."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.adapters.environments.alfworld.games import Game, GameText, game_of, game_text
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.splits import plain_items
from skillopt_es.errors import DataError
from skillopt_es.events.values import digest_of

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
ROOT_VARIABLE = "ALFWORLD_DATA"
_OTHER = "other"
_DIGEST = "game_digest"


@frozen
class AlfworldItem:
    """A game and the kind of its task."""

    id: str
    task_type: str
    game: Game


@frozen
class GameReader:
    """Reads items, and the games that they name, from below one folder."""

    root: str
    config_folder: Path

    def rows(self, path: Path, notes: list[str]) -> list[RawItem]:
        """The rows of an item file; a row that names a game file also has that file's digest."""
        return [self._with_digest(raw) for raw in plain_items(path, notes)]

    def item(self, raw: RawItem) -> AlfworldItem:
        """The item of a row; raises DataError for what cannot be played."""
        if "game" in raw.fields:
            game = Game(text=_checked(raw))
            return AlfworldItem(raw.id, _task_type(raw, ""), game)
        file = self._file(raw)
        named = _task_type(raw, file.as_posix())
        return AlfworldItem(raw.id, named, Game(file=file, digest=str(raw.fields[_DIGEST])))

    def _with_digest(self, raw: RawItem) -> RawItem:
        if "game" in raw.fields:
            return raw
        file = self._file(raw)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise raw.refusal(f"its game file {file} cannot be read: {error.strerror}", self._hint()) from None
        try:
            game_of(data)
        except ValueError as error:
            raise raw.refusal(f"{file} is no game that can be played: {error}", "download the games again") from None
        return evolve(raw, fields={**raw.fields, _DIGEST: digest_of(data)})

    def _file(self, raw: RawItem) -> Path:
        named = raw.fields.get("gamefile")
        if not isinstance(named, str) or not named.strip():
            raise raw.refusal("it has neither a `gamefile` nor a `game`", 'write "gamefile": "…/game.tw-pddl"')
        root = self._root()
        file = root / os.path.expandvars(named)
        if not file.resolve().is_relative_to(root.resolve()):
            raise raw.refusal(
                f"`gamefile` {named!r} leads out of {root}", "name files below env.data_root, relative to it"
            )
        return file

    def _root(self) -> Path:
        root = self.root or os.environ.get(ROOT_VARIABLE, "")
        if not root:
            raise DataError(
                "the items name game files, but nothing says which folder these are in",
                hint=f"set env.data_root, or the environment variable {ROOT_VARIABLE}",
            )
        return self.config_folder / Path(root).expanduser()

    def _hint(self) -> str:
        return f"set env.data_root (or {ROOT_VARIABLE}) to the folder that alfworld-download has filled"


def _checked(raw: RawItem) -> GameText:
    try:
        return game_text(raw.fields["game"])
    except ValueError as error:
        what = f"its `game` cannot be played: {error}"
        raise raw.refusal(what, 'write "game": {"task": "…", "pddl_problem": "…"}') from None


def _task_type(raw: RawItem, path: str) -> str:
    """What the row says, else the kind that its path names."""
    named = raw.fields.get("task_type")
    if isinstance(named, str) and named.strip():
        return named.strip()
    return next((kind for kind in TASK_TYPES if kind.removesuffix("_simple") in path), _OTHER)
