"""Made-up downloads of each benchmark in its public form, and id lists as a checkout of the original has them."""

from __future__ import annotations

import csv
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SPLITS = ("train", "val", "test")
Rows = list[dict[str, Any]]


def tiny_png(grey: int) -> bytes:
    """A whole PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes([0, grey])))
        + chunk(b"IEND", b"")
    )


def id_lists(checkout: Path, folder: str, rows: Mapping[str, Rows]) -> Path:
    """A checkout with the id lists of one benchmark."""
    place = checkout / "data" / folder
    for split in SPLITS:
        (place / split).mkdir(parents=True, exist_ok=True)
        (place / split / "items.json").write_text(json.dumps(rows[split]), encoding="utf-8")
    counts = {split: len(rows[split]) for split in SPLITS}
    (place / "split_manifest.json").write_text(json.dumps({"counts": counts}), encoding="utf-8")
    return checkout


def divided(rows: Rows) -> dict[str, Rows]:
    """Six rows: three to train on, one to validate, two to test; backwards, so that order shows."""
    last = rows[::-1]
    return {"train": last[:3], "val": last[3:4], "test": last[4:]}


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A CSV file with these rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, fieldnames=[*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return file


def searchqa_rows() -> Rows:
    """Rows of the re-hosted set; the last is in no list."""
    return [
        {"key": hashlib.md5(bytes([n])).hexdigest(), "question": f"Who made thing {n}?", "context": f"[DOC] Nn{n} did.",
         "answers": [f"Nn{n}", "1,000"], "labels": [0]} for n in range(7)
    ]  # fmt: skip


def searchqa(home: Path) -> tuple[Path, Path]:
    """A download as JSON Lines and its id lists."""
    rows = searchqa_rows()
    source = home / "downloads"
    source.mkdir(parents=True)
    (source / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:4]), encoding="utf-8")
    (source / "validation.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[4:]), encoding="utf-8")
    return source, id_lists(home / "up", "searchqa_id_split", divided([{"id": row["key"]} for row in rows[:6]]))


def livemath_months(source: Path, months: Mapping[str, int]) -> Path:
    """Monthly files with so many entries."""
    for month, count in months.items():
        file = source / "data" / month / f"qa_{month}_final.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps([_theorem(month, number) for number in range(1, count + 1)]), encoding="utf-8")
    return source


def _theorem(month: str, number: int) -> dict[str, Any]:
    choices = [{"label": label, "text": f"{label} of {month} {number}"} for label in "ABCDE"]
    mcq = {"question": f"Which follows from {number}?", "choices": choices, "correct_choice": choices[number % 5]}
    return {"month": month, "no": number, "theorem": "T", "sketch": "S", "theorem_type": ["bound"], "mcq": mcq}


def livemath(home: Path) -> tuple[Path, Path]:
    """Two small months and id lists."""
    source = livemath_months(home / "downloads", {"202511": 4, "202512": 4})
    listed = [{"id": f"202511:{n}", "no": n} for n in (1, 2, 3)] + [{"id": f"202512:{n}", "no": n} for n in (1, 2, 4)]
    return source, id_lists(home / "up", "livemathematicianbench_id_split", divided(listed))


def docvqa(home: Path) -> tuple[Path, Path]:
    """A CSV beside its images, and id lists."""
    source = home / "downloads"
    (source / "png").mkdir(parents=True)
    rows, listed = [], []
    for n in range(6):
        (source / "png" / f"page{n}.png").write_bytes(tiny_png(n))
        rows.append({"questionId": str(100 + n), "question": f"What is the date on {n}?", "docId": n,
                     "answers": "['1,000', \"it's 0.50\"]", "image_path": f"somewhere/page{n}.png"})  # fmt: skip
        listed.append({"id": f"q{100 + n}", "questionId": 100 + n, "topic": "form|layout"})
    write_csv(source / "validation.csv", rows)
    return source, id_lists(home / "up", "docvqa_id_split", divided(listed))


def officeqa(home: Path) -> tuple[Path, Path]:
    """The gated CSV in its public columns, and id lists."""
    files = ["a.txt,b.txt", "a.txt\r\nb.txt", '["a.txt", "b.txt"]', "a.txt", "b.txt", "c.txt"]
    rows = [{"uid": f"UID{n:04}", "question": f"How much in {n}?", "answer": "1,234.5", "source_docs": "https://x/?page=1",
             "source_files": files[n], "difficulty": "hard"} for n in range(6)]  # fmt: skip
    write_csv(home / "downloads" / "officeqa_full.csv", rows)
    listed = [{"id": row["uid"], "uid": row["uid"]} for row in rows]
    return home / "downloads", id_lists(home / "up", "officeqa_id_split", divided(listed))


def spreadsheetbench(home: Path) -> tuple[Path, Path]:
    """An unpacked archive with the three ways to name workbooks, one of them with another id, and id lists."""
    root = home / "downloads" / "verified"
    names = {"11": ("1_11_init", "1_11_golden"), "12": ("initial", "golden"), "13": ("1_13_init", "1_99_golden")}
    names |= {str(n): (f"1_{n}_input", f"1_{n}_answer") for n in (14, 15, 16)}
    rows = [{"id": int(name), "instruction": f"Sum {name}", "instruction_type": "Cell-Level", "answer_position": "A1",
             "spreadsheet_path": f"spreadsheet/{name}"} for name in names]  # fmt: skip
    for name, books in names.items():
        (root / "spreadsheet" / name).mkdir(parents=True)
        for book in books:
            (root / "spreadsheet" / name / f"{book}.xlsx").write_bytes(f"workbook {book}".encode())
    (root / "dataset.json").write_text(json.dumps(rows), encoding="utf-8")
    listed = [{"id": name} for name in names]
    return home / "downloads", id_lists(home / "up", "spreadsheetbench_id_split", divided(listed))


def alfworld(home: Path) -> tuple[Path, Path]:
    """A data root with made games, and path lists."""
    listed = []
    for n in range(6):
        place = f"json_2.1.1/train/pick_and_place-{n}/game.tw-pddl"
        file = home / "downloads" / place
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"pddl_domain": "d", "grammar": "g", "pddl_problem": "p"}), encoding="utf-8")
        listed.append({"id": f"train:{n:04}", "gamefile": place, "task_type": "pick_and_place_simple"})
    return home / "downloads", id_lists(home / "up", "alfworld_path_split", divided(listed))


MADE = {
    "alfworld": alfworld,
    "docvqa": docvqa,
    "livemathematicianbench": livemath,
    "officeqa": officeqa,
    "searchqa": searchqa,
    "spreadsheetbench": spreadsheetbench,
}
