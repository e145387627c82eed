"""
Writes the items of the SearchQA demo: invented facts in invented snippets, with the shortest accepted answers.

    python tests/support/make_searchqa_demo.py configs/demo/searchqa/items.jsonl
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

COUNTS = {  # kind: items in train, val, test
    "person": (9, 6, 6),
    "year": (8, 6, 6),
    "town": (7, 5, 5),
    "count": (6, 5, 5),
    "work": (6, 4, 4),
    "colour": (4, 4, 4),
}
_STARTS = ("Bel", "Cor", "Dun", "Esk", "Fal", "Gor", "Hal", "Jor", "Kel", "Lun", "Mar", "Ost", "Pel", "Ver")
_ENDS = ("rin", "dale", "mouth", "vik", "stow", "hagen", "ton", "mere", "wick", "ford", "gard", "holm")
_GIVEN = ("Orla", "Tamsin", "Piet", "Ludo", "Anneke", "Bram", "Sunniva", "Cato", "Ilse", "Wim", "Petra", "Joost")
_REGIONS = ("Norland", "Suderland", "Westmark", "Ostmark")
_THINGS = ("lighthouse", "observatory", "harbour bridge", "clock tower", "opera house", "canal lock", "old mill")
_MONTHS = ("January", "March", "May", "June", "August", "October", "December")
_COLOURS = ("red", "blue", "green", "white", "black", "yellow", "grey")
_FILLERS = (
    "Visitors come by ferry in summer and by the mountain railway in winter.",
    "The town keeps a small museum with maps, letters and models of ships.",
    "Every spring a market with bread, wool and painted boxes fills the square.",
    "A storm damaged the roof twice, and it was repaired with slate from the valley.",
    "The guide book gives it two stars and warns of the steep stairs.",
    "Local songs tell of the fog, the geese and the long road to the coast.",
)

Made = tuple[str, str, str]


def _name(draw: random.Random) -> str:
    return draw.choice(_STARTS) + draw.choice(_ENDS)


def _thing(draw: random.Random) -> str:
    return f"{draw.choice(_THINGS)} of {_name(draw)}"


def _person(draw: random.Random) -> Made:
    thing, who = _thing(draw), f"{draw.choice(_GIVEN)} {_name(draw)}"
    title = draw.choice(("Sir", "Dame", "Doctor"))
    return f"Who designed the {thing}?", f"The {thing} was designed by {title} {who} after a fire.", who


def _year(draw: random.Random) -> Made:
    thing, year = _thing(draw), str(draw.randint(1720, 1960))
    day = f"{draw.randint(1, 28)} {draw.choice(_MONTHS)}"
    return f"In which year was the {thing} opened?", f"The {thing} was opened on {day} {year} with music.", year


def _town(draw: random.Random) -> Made:
    thing, town = f"{draw.choice(_THINGS)} named {_name(draw)}", _name(draw)
    fact = f"The {thing} stands in {town} in the region of {draw.choice(_REGIONS)}."
    return f"In which town is the {thing}?", fact, town


def _count(draw: random.Random) -> Made:
    thing, count, unit = _thing(draw), str(draw.randint(40, 900)), draw.choice(("steps", "windows", "lamps"))
    return f"How many {unit} does the {thing} have?", f"The {thing} has about {count} {unit} and one bell.", count


def _work(draw: random.Random) -> Made:
    who, form = f"{draw.choice(_GIVEN)} {_name(draw)}", draw.choice(("novel", "opera", "poem"))
    title = f"The {draw.choice(_COLOURS).title()} {draw.choice(('Ferry', 'Garden', 'Winter', 'Lantern'))}"
    fact = f"{who} is known for the {form} {title} ({draw.randint(1830, 1960)}), which few have read."
    return f"Which {form} is {who} known for?", fact, title


def _colour(draw: random.Random) -> Made:
    thing, colour = _thing(draw), draw.choice(_COLOURS)
    return f"What colour is the door of the {thing}?", f"At the {thing} the door is painted {colour}.", colour


_MAKERS: dict[str, Callable[[random.Random], Made]] = {
    "person": _person, "year": _year, "town": _town, "count": _count, "work": _work, "colour": _colour,
}  # fmt: skip


def make_items() -> list[dict[str, object]]:
    """All items, the same on every machine."""
    rows: list[dict[str, object]] = []
    for kind, counts in COUNTS.items():
        for split, count in zip(("train", "val", "test"), counts, strict=True):
            rows += [_item(kind, split, number) for number in range(count)]
    return rows


def _item(kind: str, split: str, number: int) -> dict[str, object]:
    key = f"searchqa-demo/{kind}/{split}/{number}"
    draw = random.Random(key)  # a text seed goes through SHA-512: the same in every process
    question, fact, answer = _MAKERS[kind](draw)
    fillers = draw.sample(_FILLERS, 3)
    fillers.insert(draw.randrange(3), fact)
    context = " ".join(f"[DOC] [TLE] {_name(draw)} - travel notes {text}" for text in fillers)
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return {
        "id": name,
        "question": question,
        "context": context,
        "answers": [answer],
        "task_type": kind,
        "split": split,
    }


if __name__ == "__main__":
    lines = [json.dumps(row) + "\n" for row in make_items()]
    Path(sys.argv[1]).write_text("".join(lines), encoding="utf-8")
