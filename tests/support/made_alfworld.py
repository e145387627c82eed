"""
Made ALFWorld games: small households of our own with tasks of all six types, the same on every machine.

    python tests/support/made_alfworld.py configs/demo/alfworld/items.jsonl   the demo's items, with their games in them
    python tests/support/made_alfworld.py --games FOLDER                game files below FOLDER, and split folders

A game file needs TextWorld's domain and grammar, which the installed alfworld package has; items need nothing.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

COUNTS = {"train": 4, "val": 2, "test": 2}  # items of each task type
_TREATMENTS = {
    "pick_clean_then_place_in_recep": ("clean", "isClean", ("Mug", "Plate", "Apple", "Potato")),
    "pick_heat_then_place_in_recep": ("hot", "isHot", ("Mug", "Apple", "Potato", "Bread")),
    "pick_cool_then_place_in_recep": ("cool", "isCool", ("Mug", "Apple", "Potato", "Bread")),
}
TYPES = ("pick_and_place_simple", "look_at_obj_in_light", *_TREATMENTS, "pick_two_obj_and_place")
_OPENABLE = ("Fridge", "Microwave", "Cabinet", "Drawer")
_RECEPTACLES = (
    "Cabinet", "Cabinet", "CounterTop", "CounterTop", "Desk", "Drawer", "Fridge", "Microwave", "SideTable", "SinkBasin",
)  # fmt: skip
_HOLDERS = ("Cabinet", "CounterTop", "Desk", "Drawer", "SideTable")
_ABLE = {
    "Mug": ("cleanable", "heatable", "coolable"),
    "Plate": ("cleanable", "isReceptacleObject"),
    "Apple": ("cleanable", "heatable", "coolable", "sliceable"),
    "Potato": ("cleanable", "heatable", "coolable", "sliceable"),
    "Bread": ("heatable", "coolable", "sliceable"),
    "Book": (),
    "Pencil": (),
}
_ORDINARY = ("Book", "Pencil", "Mug", "Apple")


@frozen
class _Thing:
    """A receptacle or an object as PDDL names it."""

    id: str
    kind: str

    @property
    def type(self) -> str:
        return f"{self.kind}Type"


def made_game(task_type: str, seed: str, *, size: int = 1) -> dict[str, str]:
    """One game: its task in words, and the PDDL problem; `size` times as many receptacles and other objects."""
    # A text seed goes through SHA-512, so it is the same in every process and on every machine.
    draw = random.Random(f"made-alfworld/{task_type}/{seed}")
    target, destination, task, goal = _task(task_type, draw)
    receptacles = [_receptacle(kind, number) for number, kind in enumerate(_RECEPTACLES * size, start=1)]
    objects = _objects(target, 2 if task_type == "pick_two_obj_and_place" else 1, draw, size)
    lamp = _Thing("DeskLamp_bar_1", "DeskLamp")
    facts = [*_rooms(receptacles), *_places(objects, receptacles, {destination, "SinkBasin"}, draw)]
    facts += _lamp(lamp, receptacles, draw)
    kinds = sorted({each.type for each in objects})
    facts += [f"(canContain {holder}Type {kind})" for holder in _HOLDERS for kind in kinds]
    return {"task": task, "pddl_problem": _problem(receptacles, [*objects, lamp], facts, goal)}


def made_rows() -> Iterator[dict[str, Any]]:
    """The demo's items."""
    for split, count in COUNTS.items():
        for number in range(1, count + 1):
            for task_type in TYPES:
                name = f"{task_type}-{split}-{number}"
                yield {"id": name, "task_type": task_type, "split": split, "game": made_game(task_type, name)}


def write_games(folder: Path, domain: str, grammar: str) -> None:
    """The same games as files, with a split folder as the original's manifest has it."""
    names = {"train": "train", "val": "valid_seen", "test": "valid_unseen"}
    items: dict[str, list[dict[str, str]]] = {split: [] for split in names}
    for row in made_rows():
        path = Path("games", names[row["split"]], f"{row['task_type']}-made", row["id"], "game.tw-pddl")
        game = {
            "pddl_domain": domain,
            "grammar": grammar.replace("UNKNOWN GOAL.", row["game"]["task"]),
            "pddl_problem": row["game"]["pddl_problem"],
            "solvable": True,
        }
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(game), encoding="utf-8")
        said = {"task_desc": row["game"]["task"], "high_descs": []}
        known = {"task_type": row["task_type"], "turk_annotations": {"anns": [said]}, "scene": {"floor_plan": "made"}}
        (folder / path).with_name("traj_data.json").write_text(json.dumps(known), encoding="utf-8")
        items[row["split"]].append({"id": row["id"], "gamefile": path.as_posix(), "task_type": row["task_type"]})
    for split, rows in items.items():
        (folder / split).mkdir(exist_ok=True)
        (folder / split / "items.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _task(task_type: str, draw: random.Random) -> tuple[str, str, str, str]:
    """The kind of thing, where it belongs, the task in words and the goal in PDDL."""
    destination = draw.choice(_HOLDERS)
    if task_type == "look_at_obj_in_light":
        target = draw.choice(("Book", "Pencil", "Mug"))
        goal = (
            "(exists (?o - object ?l - object ?r - receptacle ?a - agent ?p - location) "
            f"(and (objectType ?o {target}Type) (holds ?a ?o) (objectType ?l DeskLampType) (isToggled ?l) "
            "(inReceptacle ?l ?r) (receptacleAtLocation ?r ?p) (atLocation ?a ?p)))"
        )
        return target, "", f"look at {target.lower()} under the desklamp.", goal
    where = f"(receptacleType ?r {destination}Type)"
    if task_type == "pick_two_obj_and_place":
        target = draw.choice(("Mug", "Apple", "Book", "Pencil"))
        goal = (
            f"(exists (?r - receptacle ?o - object ?p - object) (and {where} (not (= ?o ?p)) "
            f"(objectType ?o {target}Type) (inReceptacle ?o ?r) (objectType ?p {target}Type) (inReceptacle ?p ?r)))"
        )
        return target, destination, f"put two {target.lower()} in {destination.lower()}.", goal
    word, state, targets = _TREATMENTS.get(task_type, ("", "", ("Mug", "Apple", "Book", "Plate")))
    target = draw.choice(targets)
    also = f" ({state} ?o)" if state else ""
    goal = (
        f"(exists (?r - receptacle ?o - object) (and {where} (objectType ?o {target}Type) (inReceptacle ?o ?r){also}))"
    )
    return target, destination, f"put a {word + ' ' if word else ''}{target.lower()} in {destination.lower()}.", goal


def _receptacle(kind: str, number: int) -> _Thing:
    name = f"Sink_bar_{number:02d}_bar_SinkBasin" if kind == "SinkBasin" else f"{kind}_bar_{number:02d}"
    return _Thing(name, kind)


def _objects(target: str, count: int, draw: random.Random, size: int) -> list[_Thing]:
    kinds = [target] * count + draw.sample([kind for kind in _ORDINARY if kind != target] * size, 3 * size)
    return [_Thing(f"{kind}_bar_{number}", kind) for number, kind in enumerate(kinds, start=1)]


def _rooms(receptacles: Sequence[_Thing]) -> Iterator[str]:
    yield "(= (total-cost) 0) (atLocation agent1 l0)"
    for number, each in enumerate(receptacles, start=1):
        opens = f" (openable {each.id})" if each.kind in _OPENABLE else ""
        yield f"(receptacleType {each.id} {each.type}) (receptacleAtLocation {each.id} l{number}){opens}"


def _places(
    objects: Sequence[_Thing], receptacles: Sequence[_Thing], but: set[str], draw: random.Random
) -> Iterator[str]:
    allowed = [(number, each) for number, each in enumerate(receptacles, start=1) if each.kind not in but]
    for each in objects:
        number, where = draw.choice(allowed)
        able = " ".join(f"({what} {each.id})" for what in ("pickupable", *_ABLE[each.kind]))
        place = f"(inReceptacle {each.id} {where.id}) (objectAtLocation {each.id} l{number})"
        yield f"(objectType {each.id} {each.type}) {place} {able}"


def _lamp(lamp: _Thing, receptacles: Sequence[_Thing], draw: random.Random) -> Iterator[str]:
    number, where = draw.choice(
        [(number, each) for number, each in enumerate(receptacles, start=1) if each.kind in ("Desk", "SideTable")]
    )
    yield (
        f"(objectType {lamp.id} {lamp.type}) (inReceptacle {lamp.id} {where.id}) "
        f"(objectAtLocation {lamp.id} l{number}) (toggleable {lamp.id})"
    )


def _problem(receptacles: Sequence[_Thing], objects: Sequence[_Thing], facts: Sequence[str], goal: str) -> str:
    def names(words: Sequence[str]) -> str:
        return " ".join(dict.fromkeys(words))

    return "\n".join(
        [
            "(define (problem made) (:domain alfred)",
            "(:objects agent1 - agent",
            f" {names([each.id for each in objects])} - object",
            f" {names([each.id for each in receptacles])} - receptacle",
            f" {names([each.type for each in objects])} - otype",
            f" {names([each.type for each in receptacles])} - rtype",
            f" {names([f'l{number}' for number in range(len(receptacles) + 1)])} - location)",
            "(:init",
            *[f" {fact}" for fact in facts],
            ")",
            f"(:goal {goal})",
            "(:metric minimize (total-cost)))",
        ]
    )


def _main(words: list[str]) -> None:
    if words[:1] == ["--games"]:
        from importlib.util import find_spec

        spec = find_spec("alfworld")
        assert spec is not None, "the domain and the grammar are in the alfworld package: install it"
        assert spec.submodule_search_locations
        data = Path(spec.submodule_search_locations[0], "data")
        write_games(Path(words[1]), (data / "alfred.pddl").read_text(), (data / "alfred.twl2").read_text())
        return
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in made_rows()]
    Path(words[0]).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1:])
