"""Each of our environments as a case for the checks that all environments have to pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from skillopt_es.ports import EnvironmentSettings
from skillopt_es.testing.environments import EnvironmentCase
from support.environments import CONFINED, OPEN, data_settings
from support.pictures import page
from support.spreadsheets import sales, sales_with, write_task

GOLD = "tungsten"
GAME = """(define (problem one-step) (:domain alfred)
(:objects agent1 - agent Desk_bar_1 - receptacle DeskType - rtype l0 l1 - location)
(:init (atLocation agent1 l0) (receptacleType Desk_bar_1 DeskType) (receptacleAtLocation Desk_bar_1 l1))
(:goal (atLocation agent1 l1)))"""
TAGGED = (f"<answer>{GOLD}</answer>", "<answer>lead</answer>", "no idea")


def _nothing(folder: Path) -> None:
    """No file but the items."""


def _one_page(folder: Path) -> None:
    (folder / "page.png").write_bytes(page(["42"]))


def _one_document(folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "bulletin.txt").write_text("A made bulletin.\n", encoding="utf-8")


def _one_workbook(folder: Path) -> None:
    write_task(folder, "shared", [(sales(), sales_with(D2=GOLD))])


def _script(what: str) -> str:
    code = f"import openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\n{what}\nbook.save(OUTPUT_PATH)"
    return f"```python\n{code}\n```"


@frozen(kw_only=True)
class Made:
    """What items of an environment hold beside id and split, what lies beside them, and what a target may reply."""

    fields: Callable[[str], Mapping[str, Any]]
    replies: Sequence[str] = TAGGED
    options: Mapping[str, Any] = {}
    beside: Callable[[Path], None] = _nothing
    secret: str = GOLD
    many: int = 24


MADE = {
    "alfworld": Made(
        fields=lambda name: {"game": {"task": f"Input of {name}", "pddl_problem": GAME}},
        replies=(
            "<think>I stay.</think><action>look</action>",
            "<think>I go.</think><action>go to desk 1</action>",
            "no idea",
        ),
        options={"world": "builtin", "max_steps": 2},
        secret="",  # what wins is among the commands that are shown
    ),
    "docvqa": Made(
        fields=lambda name: {"question": f"What of {name}?", "answers": [GOLD], "image_path": "page.png"},
        beside=_one_page,
    ),
    "livemathematicianbench": Made(
        fields=lambda name: {
            "question": f"What of {name}?",
            "choices": ["lead", GOLD, "iron"],
            "correct_choice": "B",
        },
        replies=("<answer>A</answer>", "<answer>B</answer>", "<answer>C</answer>", "no idea"),
        secret="",  # among the choices, without a mark
    ),
    "officeqa": Made(
        fields=lambda name: {"question": f"What of {name}?", "answer": GOLD},
        options={"data_dirs": ["docs"]},
        beside=_one_document,
    ),
    "searchqa": Made(
        fields=lambda name: {"question": f"What of {name}?", "context": "[DOC] a made passage", "answers": [GOLD]}
    ),
    "spreadsheetbench": Made(
        fields=lambda name: {
            "instruction": f"Fill D2 for {name}.",
            "answer_position": "D2",
            "instruction_type": "Cell-Level",
            "spreadsheet_path": "spreadsheet/shared",
        },
        replies=(_script(f"book.active['D2'] = '{GOLD}'"), _script("book.active['D2'] = 'lead'"), "no idea"),
        options={"sandbox": "confined" if CONFINED else "unconfined"},
        beside=_one_workbook,
        many=3,
    ),
    "tasks": Made(
        fields=lambda name: {"input": f"What of {name}?", "expected": GOLD, "grader": "f1"},
        replies=(GOLD, "lead", f"{GOLD} ore"),
    ),
}


def case_of(name: str) -> EnvironmentCase:
    """The case of one of our environments."""
    made = MADE[name]

    def settings(folder: Path, ids: Sequence[str]) -> EnvironmentSettings:
        rows = [{"id": each, "split": "train", **made.fields(each)} for each in ids]
        rows += [{"id": split, "split": split, **made.fields(split)} for split in ("val", "test")]
        file = folder / "items.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        made.beside(folder)
        return EnvironmentSettings(
            name=name,
            folder=str(folder),
            data=data_settings(split_mode="field", data_path=str(file)),
            timeout_seconds=60,
            max_completion_tokens=512,
            options=dict(made.options),
        )

    return EnvironmentCase(open=OPEN[name], made=settings, replies=made.replies, secret=made.secret, many=made.many)
