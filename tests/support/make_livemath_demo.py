"""
Writes the items of the LiveMathematicianBench demo: invented statements, each with five choices and one that is right.

    python tests/support/make_livemath_demo.py configs/demo/livemathematicianbench/items.jsonl
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

COUNTS = {  # kind: items in train, val, test
    "quantifier": (8, 6, 6),
    "strictness": (8, 5, 5),
    "hypotheses": (7, 5, 5),
    "constant": (7, 5, 5),
    "uniqueness": (6, 5, 5),
    "object": (4, 4, 4),
}
_TOPICS = ("lattice paths", "planar maps", "cyclic words", "weighted trees", "flat surfaces", "random permutations")
_PROPERTIES = ("compact", "connected", "orientable", "complete", "smooth")

Made = tuple[str, str, list[str]]


def _quantifier(draw: random.Random) -> Made:
    asked = draw.choice(("all sufficiently large n", "infinitely many n", "at least one n"))
    text = f"A bound on {draw.choice(_TOPICS)} of size n + {draw.randint(2, 99)} is shown for {asked}."
    others = ["every n", "all sufficiently large n", "infinitely many n", "at least one n", "no n"]
    return f"{text}\nFor which n does the bound follow?", asked, others


def _strictness(draw: random.Random) -> Made:
    letter, way = draw.choice("xyz"), draw.choice(("most", "least"))
    right = f"f({letter}) is at {way} g({letter})"
    about = f"{draw.choice(_TOPICS)} of rank {draw.randint(2, 99)}"
    text = f"For all {about} it is shown, with equality for one of them, that "
    every = [f"f({letter}) is {word} g({letter})" for word in ("at most", "at least", "below", "above", "equal to")]
    return f"{text}{right}.\nWhich inequality is the strongest that follows for all?", right, every


def _hypotheses(draw: random.Random) -> Made:
    first, second, *rest = draw.sample(_PROPERTIES, 4)
    text = f"Suppose that M is {first} and {second}. Then its space of {draw.choice(_TOPICS)} has finite rank."
    every = [f"{first} and {second}", first, second, f"{first} and {rest[0]}", f"{second} and {rest[1]}"]
    return f"{text}\nUnder which hypothesis on M is this known for dimension {draw.randint(3, 99)}?", every[0], every


def _constant(draw: random.Random) -> Made:
    first, best, *others = draw.sample(range(2, 60), 5)
    text = (
        f"For {draw.choice(_TOPICS)} the bound holds with c = {first}, and with c = {best}, which cannot be improved."
    )
    every = [f"c = {value}" for value in (first, best, *others)]
    return f"{text}\nWhat is the best constant c in the bound?", f"c = {best}", every


def _uniqueness(draw: random.Random) -> Made:
    right = f"exactly one solution up to {draw.choice(('sign', 'scaling', 'translation'))}"
    text = f"The equation for {draw.choice(_TOPICS)} of order {draw.randint(2, 99)} has {right}."
    ups = [f"exactly one solution up to {what}" for what in ("sign", "scaling", "translation")]
    return f"{text}\nHow many solutions does it have?", right, [*ups, "exactly one solution", "no solution"]


def _object(draw: random.Random) -> Made:
    graphs = ["a tree", "a cycle", "a path", "a star", "a wheel"]
    right = draw.choice(graphs)
    text = f"A graph that carries {draw.choice(_TOPICS)} of weight {draw.randint(2, 99)} must be {right}."
    return f"{text}\nWhich graph can carry them?", right, graphs


_MAKERS: dict[str, Callable[[random.Random], Made]] = {
    "quantifier": _quantifier, "strictness": _strictness, "hypotheses": _hypotheses,
    "constant": _constant, "uniqueness": _uniqueness, "object": _object,
}  # fmt: skip


def make_items() -> list[dict[str, object]]:
    """All items, the same on every machine."""
    rows: list[dict[str, object]] = []
    for kind, counts in COUNTS.items():
        for split, count in zip(("train", "val", "test"), counts, strict=True):
            rows += [_item(kind, split, number, len(rows) + number + 1) for number in range(count)]
    return rows


def _item(kind: str, split: str, number: int, place: int) -> dict[str, object]:
    draw = random.Random(f"livemath-demo/{kind}/{split}/{number}")  # a text seed: the same in every process
    question, right, texts = _MAKERS[kind](draw)
    draw.shuffle(texts)
    choices = [{"label": label, "text": text} for label, text in zip("ABCDE", texts, strict=True)]
    correct = next(choice for choice in choices if choice["text"] == right)
    return {
        "month": "made",
        "no": place,
        "theorem_type": [kind],
        "mcq": {"question": question, "choices": choices, "correct_choice": correct},
        "split": split,
    }


if __name__ == "__main__":
    lines = [json.dumps(row) + "\n" for row in make_items()]
    Path(sys.argv[1]).write_text("".join(lines), encoding="utf-8")
