"""ALFWorld's items: a game file below the data root, or a game in the item itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.adapters.environments.alfworld.games import Game, GameText, game_of, game_text
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.splits import plain_items
from skillopt_es.adapters.environments.text import named, shorten
from skillopt_es.errors import DataError
from skillopt_es.events.plain import read_plain
from skillopt_es.events.values import Json, digest_of

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
_REFERENCE = "game_reference"
_INSIDE = "traj_data"


@frozen
class AlfworldItem:
    """A game, the kind of its task, and what analysts may be told of how it can be solved."""

    id: str
    task_type: str
    game: Game
    reference: str = ""


@frozen
class GameReader:
    """Reads items, and the games that they name, from below one folder; with their references where these are shown."""

    root: str
    config_folder: Path
    references: bool = False

    def rows(self, path: Path, notes: list[str]) -> list[RawItem]:
        """The rows of an item file; a row that names a game file also has that file's digest."""
        read = [self._with_digest(raw) for raw in plain_items(path, notes)]
        if not self.references:
            return read
        read = [self._with_reference(raw) for raw in read]
        without = [raw.id for raw in read if not raw.fields[_REFERENCE]]
        if without:
            notes.append(f"{len(without)} games have no {FILE} beside them, so no reference: {named(without)}")
        return read

    def item(self, raw: RawItem) -> AlfworldItem:
        """The item of a row; raises DataError for what cannot be played."""
        if "game" in raw.fields:
            named, game = _task_type(raw, ""), Game(text=_checked(raw))
        else:
            file = self._file(raw)
            named, game = _task_type(raw, file.as_posix()), Game(file=file, digest=str(raw.fields[_DIGEST]))
        reference = str(raw.fields[_REFERENCE]) if self.references else ""
        return AlfworldItem(raw.id, named, game, reference)

    def _with_digest(self, raw: RawItem) -> RawItem:
        if "game" in raw.fields:
            return raw
        file = self._file(raw)
        try:
            data = read_plain(file, follow=True)
        except OSError as error:
            raise raw.refusal(f"its game file {file} cannot be read: {error.strerror}", self._hint()) from None
        try:
            game_of(data)
        except ValueError as error:
            raise raw.refusal(f"{file} is no game that can be played: {error}", "download the games again") from None
        return evolve(raw, fields={**raw.fields, _DIGEST: digest_of(data)})

    def _with_reference(self, raw: RawItem) -> RawItem:
        """The row with the text of its reference, which its split's digest then covers."""
        try:
            if "game" in raw.fields:
                text = reference_text(raw.fields[_INSIDE]) if _INSIDE in raw.fields else ""
            else:
                text = reference_beside(self._file(raw), self._root())
        except ValueError as error:
            hint = "download the games again, or set env.show_reference: false"
            raise raw.refusal(f"its reference cannot be used: {error}", hint) from None
        return evolve(raw, fields={**raw.fields, _REFERENCE: text})

    def _file(self, raw: RawItem) -> Path:
        named = raw.fields.get("gamefile")
        if not isinstance(named, str) or not named.strip():
            raise raw.refusal("it has neither a `gamefile` nor a `game`", 'write "gamefile": "…/game.tw-pddl"')
        root = self._root()
        file = root / os.path.expandvars(named)
        if not file.resolve().is_relative_to(root.resolve()):
            raise raw.refusal(
                f"`gamefile` {named!r} points outside of {root}", "name files below env.data_root, relative to it"
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


FILE = "traj_data.json"
_MOST_TASKS = 3  # the original's three numbers: up to three descriptions, twelve steps, 600 characters of the scene
_MOST_STEPS = 12  # see `_MOST_TASKS`
_MOST_SCENE = 600  # see `_MOST_TASKS`


def reference_beside(game_file: Path, root: Path) -> str:
    """The reference of a game file; empty when none lies beside it; raises ValueError for one that cannot be read."""
    file = game_file.parent / FILE
    if not file.is_file():
        return ""
    if not file.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{FILE} is a link that points outside of {root}")
    try:
        given: Json = json.loads(read_plain(file, follow=True))
    except OSError as error:
        raise ValueError(f"{FILE} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ValueError(f"{FILE} is not JSON") from None
    return reference_text(given)


def reference_text(trajectory: Json) -> str:
    """An ALFRED trajectory as analysts may read it; what it does not hold is left out."""
    if not isinstance(trajectory, Mapping):
        raise ValueError(f"{FILE} is not an object")
    notes = _under(trajectory, "turk_annotations", "anns")
    tasks = dict.fromkeys(text for note in notes for text in _texts(note, "task_desc"))
    steps = dict.fromkeys(text for note in notes for text in _texts(note, "high_descs"))
    plan = [_action(step) for step in _under(trajectory, "plan", "high_pddl")]
    parts = [
        ("Task type", _texts(trajectory, "task_type")),
        ("In people's words", [*tasks][:_MOST_TASKS]),
        ("Their steps", [*steps][:_MOST_STEPS]),
        ("Objects", [*_pairs(trajectory.get("pddl_params"))]),
        ("Plan", [f"{number}. {each}" for number, each in enumerate(filter(None, plan), start=1)]),
        ("Scene", [shorten(text, _MOST_SCENE) for text in ["; ".join(_scene(trajectory))] if text]),
    ]
    return "\n".join(
        line for title, lines in parts if lines for line in (f"{title}:", *(f"  {each}" for each in lines))
    )


def _under(value: Json, *keys: str) -> list[Json]:
    """The list that these keys lead to; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else []


def _texts(value: Json, key: str) -> list[str]:
    """The texts under a key, be it one or a list, that are not blank."""
    found = value.get(key) if isinstance(value, Mapping) else None
    each = found if isinstance(found, list) else [found]
    return [text.strip() for text in each if isinstance(text, str) and text.strip()]


def _action(step: Json) -> str:
    """`PickupObject(mug)`; empty for what is no step."""
    action = step.get("discrete_action") if isinstance(step, Mapping) else None
    names = _texts(action, "action")
    return f"{names[0]}({', '.join(_texts(action, 'args'))})" if names else ""


def _pairs(value: Json | None) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{key}: {each}" for key, each in sorted(value.items()) if each not in ("", None))


def _scene(trajectory: Mapping[str, Json]) -> Iterator[str]:
    scene = trajectory.get("scene")
    for key in ("floor_plan", "scene_num", "dirty_and_empty"):
        if isinstance(scene, Mapping) and isinstance(scene.get(key), str | int):
            yield f"{key}: {scene[key]}"
