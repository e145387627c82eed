"""
Writes the DocVQA demo: made pages of a made tobacco company, and questions to be answered as it is printed there.

    python tests/support/make_docvqa_demo.py configs/demo/docvqa

Writes items.jsonl and images/ there. Pages are drawn with the font that the simulated target can read; the expected
answers are made here from what is drawn.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":  # run as a script, `support` is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.pictures import page

PAGES = {"train": 10, "val": 8, "test": 8}  # each has four of the six questions
QUESTIONS = {
    "date": ("DATE", "What is the date of the {}?"),
    "amount": ("TOTAL", "What is the total amount of the {}?"),
    "signature": ("SIGNED", "Who signed the {}?"),
    "reference": ("REFERENCE", "What is the reference of the {}?"),
    "content": ("TAR", "What is the tar content in the {}?"),
    "city": ("CITY", "Which city is the {} from?"),
}
_SORTS = ("INVOICE", "MEMORANDUM", "LABORATORY REPORT", "ORDER")
_NAMES = ("BELFORD", "DUNSTOW", "HALVIK", "KELRIN", "MARDALE", "OSTGARD", "PELMERE", "VERHOLM")
_CITIES = ("KELVIK", "LUNFORD", "ESKMOUTH", "JORHAGEN", "FALWICK", "CORTON")
_WORDS = ("###", "####", "######", "##", "#####")


def make_page(number: int) -> tuple[str, Mapping[str, str], list[str]]:
    """The sort of a page, its values by label, and its lines; the same on every machine."""
    draw = random.Random(f"docvqa-demo/{number}")
    sort = draw.choice(_SORTS)
    year = draw.randint(1955, 1989)
    values = {
        "DATE": f"{draw.randint(1, 12)}/{draw.randint(1, 28)}/{year}",
        "REFERENCE": f"{draw.choice(('AB', 'KX', 'RT'))}-{draw.randint(1000, 9999)}/{draw.randint(1, 9)}",
        "CITY": draw.choice(_CITIES),
        "TAR": f"{draw.randint(4, 19)}.{draw.randint(0, 9)}%",
        "TOTAL": f"$ {draw.randint(1, 98)},{draw.randint(0, 999):03}.{draw.randint(0, 99):02}",
        "SIGNED": f"{draw.choice(('DR', 'MR', 'MRS'))}. {draw.choice('ABEHJLORTW')}. {draw.choice(_NAMES)}",
    }
    lines = [sort, ""]
    for label, value in values.items():
        lines += [" ".join(draw.choices(_WORDS, k=draw.randint(2, 5)))] * draw.randint(0, 1)
        lines.append(f"{label}: {value}")
    lines += [f"DUE: {draw.randint(1, 12)}/{draw.randint(1, 28)}/{year + 1}", "", "PAGE 1 OF 1"]
    return sort, values, lines


def make_pages() -> dict[str, list[str]]:
    """The lines of every page by the name of its image."""
    return {image_of(number): make_page(number)[2] for number in range(1, sum(PAGES.values()) + 1)}


def image_of(number: int) -> str:
    """The name of a page's image."""
    return f"page-{number:02}.png"


def make_items() -> list[dict[str, object]]:
    """All items; a page belongs to one split."""
    rows: list[dict[str, object]] = []
    number = 0
    for split, count in PAGES.items():
        for place in range(count):
            number += 1
            sort, values, _ = make_page(number)
            kinds = [*QUESTIONS]
            for kind in [kinds[(place * 4 + each) % len(kinds)] for each in range(4)]:
                label, question = QUESTIONS[kind]
                rows.append({"questionId": f"{number}-{kind}", "question": question.format(sort.lower()),
                             "answers": [values[label]], "image_path": f"images/{image_of(number)}", "topic": kind,
                             "split": split})  # fmt: skip
    return rows


def make(folder: Path) -> Path:
    """The folder, now with items.jsonl and images/."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for name, lines in make_pages().items():
        (folder / "images" / name).write_bytes(page(lines))
    text = "".join(json.dumps(row) + "\n" for row in make_items())
    (folder / "items.jsonl").write_text(text, encoding="utf-8", newline="\n")
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]))
