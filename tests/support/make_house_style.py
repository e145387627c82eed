"""
Writes the small tasks that runs on a real model are tried on: short orders, each answered in a made-up house form.

    python tests/support/make_house_style.py tasks.jsonl

No model can know the forms; the expected answers show them. See docs/real-model.md.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

COUNTS = {"train": 6, "val": 5, "test": 5}  # of each of the four kinds
_FIRST = ("Maria", "Jonas", "Aylin", "Pierre", "Ruth", "Tomas", "Ines", "Karl", "Nora", "Felix", "Olga", "Sven")
_LAST = ("Lopez", "Brandt", "Yilmaz", "Moreau", "Keller", "Novak", "Costa", "Weiss", "Berg", "Hofer", "Petrov", "Lund")
_CITIES = (
    "Hamburg",
    "Leipzig",
    "Lyon",
    "Nantes",
    "Graz",
    "Linz",
    "Bilbao",
    "Sevilla",
    "Basel",
    "Bern",
    "Oslo",
    "Turin",
)
_GOODS = ("lamps", "chairs", "desks", "ropes", "boxes", "tents", "cups", "bags", "nails", "pipes", "rugs", "clocks")

Task = dict[str, object]


def _login(draw: random.Random) -> Task:
    first, last, year = draw.choice(_FIRST), draw.choice(_LAST), draw.randrange(2010, 2026)
    text = f"Login name for {first} {last}, who joined in {year}."
    return {"input": text, "expected": f"{last.lower()}.{first[0].lower()}{year % 100}"}


def _stock(draw: random.Random) -> Task:
    goods, count, shelf = draw.choice(_GOODS), draw.randrange(2, 90), f"{draw.choice('ABCDEF')}{draw.randrange(1, 10)}"
    return {
        "input": f"Stock line for {count} {goods} on shelf {shelf}.",
        "expected": f"{shelf} | {goods.upper()} | {count}",
    }


def _booking(draw: random.Random) -> Task:
    room, start = draw.randrange(2, 60), draw.randrange(8, 16)
    end = start + draw.randrange(1, 5)
    return {"input": f"Booking code for room {room}, from {start} to {end}.", "expected": f"R{room}@{start}-{end}"}


def _contact(draw: random.Random) -> Task:
    first, last, city = draw.choice(_FIRST), draw.choice(_LAST), draw.choice(_CITIES)
    text = f"Contact entry in JSON for {first} {last}, who lives in {city}."
    return {"input": text, "expected": {"name": f"{last}, {first}", "town": city.upper()}, "grader": "json"}


_KINDS: Mapping[str, Callable[[random.Random], Task]] = {
    "login": _login,
    "stock": _stock,
    "booking": _booking,
    "contact": _contact,
}


def make_tasks(seed: int = 11) -> list[Task]:
    """All tasks, the kinds in turn, no two with the same input."""
    draw = random.Random(seed)
    tasks: dict[object, Task] = {}
    for split, count in COUNTS.items():
        for number in range(1, count + 1):
            for kind, make in _KINDS.items():
                task = make(draw)
                while task["input"] in tasks:
                    task = make(draw)
                tasks[task["input"]] = {"id": f"{kind}-{split}-{number}", "split": split, "type": kind, **task}
    return list(tasks.values())


if __name__ == "__main__":
    lines = [json.dumps(task, ensure_ascii=False) for task in make_tasks()]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
