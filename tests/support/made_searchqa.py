"""Made-up SearchQA items: invented facts in invented snippets, the same on every machine; no real data."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_STARTS = (
    "Bel",
    "Cor",
    "Dun",
    "Esk",
    "Fal",
    "Gor",
    "Hal",
    "Ist",
    "Jor",
    "Kel",
    "Lun",
    "Mar",
    "Nor",
    "Ost",
    "Pel",
    "Ver",
)
_ENDS = ("rin", "dale", "mouth", "vik", "stow", "hagen", "ton", "mere", "wick", "ford", "gard", "holm")
_GIVEN = ("Orla", "Tamsin", "Piet", "Ludo", "Anneke", "Bram", "Sunniva", "Cato", "Ilse", "Wim", "Petra", "Joost")
_THINGS = (
    "lighthouse",
    "observatory",
    "harbour bridge",
    "clock tower",
    "botanical garden",
    "opera house",
    "canal lock",
)
_FILLERS = (
    "Visitors come by ferry in summer and by the mountain railway in winter.",
    "The town keeps a small museum with maps, letters and models of ships.",
    "Every spring a market with bread, wool and painted boxes fills the square.",
    "A storm damaged the roof twice, and it was repaired with slate from the valley.",
    "The guide book gives it two stars and warns of the steep stairs.",
    "Local songs tell of the fog, the geese and the long road to the coast.",
)


def made_searchqa(count: int, *, size: int = 1500, seed: int = 0) -> list[dict[str, Any]]:
    """`count` items with contexts of about `size` characters; item i is the same whatever the count."""
    return [_item(f"{seed}/{index}", size) for index in range(count)]


def write_split_dir(folder: Path, splits: dict[str, Sequence[dict[str, Any]]]) -> Path:
    """The folder, now holding `<split>/items.json` for each split."""
    for split, items in splits.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / split / "items.json").write_text(json.dumps(list(items), indent=1), encoding="utf-8")
    return folder


def made_split_dir(
    folder: Path, *, train: int = 6, val: int = 3, test: int = 3, size: int = 1500, seed: int = 0
) -> Path:
    """The folder, now holding a split of made items."""
    items = made_searchqa(train + val + test, size=size, seed=seed)
    return write_split_dir(
        folder, {"train": items[:train], "val": items[train : train + val], "test": items[train + val :]}
    )


def _item(key: str, size: int) -> dict[str, Any]:
    # A text seed goes through SHA-512, so it is the same in every process and on every machine.
    dice = random.Random(f"made-searchqa/{key}")
    place, thing = _name(dice), dice.choice(_THINGS)
    person, year = f"{dice.choice(_GIVEN)} {_name(dice)}", str(dice.randint(1720, 1960))
    fact = f"The {thing} of {place} was designed by {person} and opened in {year}."
    question, answers = dice.choice(
        [
            (f"Who designed the {thing} of {place}?", [person, person.split()[1]]),
            (f"In which year did the {thing} of {place} open?", [year]),
            (f"Which town has a {thing} designed by {person}?", [place]),
        ]
    )
    return {
        "id": hashlib.sha256(key.encode()).hexdigest()[:32],
        "question": question,
        "context": _context(dice, place, fact, size),
        "answers": answers,
    }


def _context(dice: random.Random, place: str, fact: str, size: int) -> str:
    """Snippets about the place and about others, with the fact in one of the first ones."""
    snippets: list[str] = []
    length = 0
    while length < size:
        about = place if dice.random() < 0.5 else _name(dice)
        text = " ".join(dice.sample(_FILLERS, 3))
        snippets.append(f"[DOC] [TLE] {about} - travel notes {text} ")
        length += len(snippets[-1])
    where = dice.randrange(min(3, len(snippets)))
    snippets[where] = f"[DOC] [TLE] {place} - history {fact} {dice.choice(_FILLERS)} "
    return "".join(snippets).rstrip()


def _name(dice: random.Random) -> str:
    return dice.choice(_STARTS) + dice.choice(_ENDS)
