"""
Writes a small made DocVQA: receipts with drawn figures, and questions about them.

    python tests/support/make_docvqa.py FOLDER [csv]

The same bytes on any machine: train/, val/ and test/ with an items.json (or items.csv) each, and images/ beside them.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path

if __name__ == "__main__":  # run as a script, `support` is not on the path yet
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.pictures import page

COUNTS = {"train": 8, "val": 4, "test": 4}  # pages; each has two of the questions
QUESTIONS = (
    ("What is the number of the receipt, on its first line?", "free_text"),
    ("What is the date of the receipt, on its second line?", "form"),
    ("What is the total of the receipt, on its last line?", "table/list"),
)


def receipt(dice: random.Random) -> list[str]:
    """Three figures, each behind blocks that stand for words."""
    number = f"{dice.randrange(1000, 10000)}-{dice.randrange(10)}"
    date = f"{dice.randrange(1, 13)}/{dice.randrange(1, 29)}/19{dice.randrange(60, 100)}"
    total = f"{dice.randrange(1, 10)},{dice.randrange(1000):03}.{dice.randrange(100):02}"
    return [f"### {number}", f"## {date}", f"##### {total}"]


def make(folder: Path, form: str = "json") -> Path:
    """The folder, now holding the splits."""
    dice = random.Random(47)
    (folder / "images").mkdir(parents=True)
    made = 0
    for split, count in COUNTS.items():
        rows: list[dict[str, str]] = []
        for _ in range(count):
            made += 1
            lines = receipt(dice)
            image = f"images/receipt-{made:02}.png"
            (folder / image).write_bytes(page(lines))
            for line in sorted(dice.sample(range(3), 2)):
                question, topic = QUESTIONS[line]
                answer = lines[line].split()[-1]
                rows.append({"questionId": f"{made}{line}", "question": question, "answer": answer, "topic": topic,
                             "image_path": image})  # fmt: skip
        _write(folder / split, rows, form)
    return folder


def _write(folder: Path, rows: list[dict[str, str]], form: str) -> None:
    folder.mkdir()
    if form == "csv":
        with (folder / "items.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    else:
        (folder / "items.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]), *sys.argv[2:3])
