"""SpreadsheetBench: scripts behind walls, workbooks as plain values, and no verdict that was not measured."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, reduce
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from support.environments import CONFINED, Target, attempt, data_settings, open_on
from support.params import parametrized
from support.spreadsheets import SALES, record, sales, sales_with, workbook, write_records, write_task

from skillopt_es.adapters.environments.spreadsheetbench import workshop
from skillopt_es.adapters.environments.spreadsheetbench.books import UnreadableError, read_book
from skillopt_es.adapters.sandboxes import opening
from skillopt_es.adapters.sandboxes.launch import Execution
from skillopt_es.errors import ConfigError, DataError, extra_hint
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import ChatReply, Environment, Episode, Splits

NAME = "spreadsheetbench"
GOLD = "the-gold-text"
SECRET = "sk-canary-in-the-environment"
needs_walls = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")


def opened(root: Path, *records: dict[str, Any], **options: Any) -> tuple[Environment, Splits]:
    """An environment on these entries, for each split one."""
    rows = [{"split": "train", **row} for row in records]
    rows += [record(f"spare-{split}", split=split, spreadsheet_path="spreadsheet/spare") for split in ("val", "test")]
    write_task(root, "spare", [(sales(), sales_with(D2=5))])
    path = write_records(root, rows)
    data = data_settings(split_mode="field", split_field="split", data_path=str(path))
    environment = open_on(root, NAME, data, **{"sandbox": "confined" if CONFINED else "unconfined", **options})
    return environment, environment.load()


def script(change: str) -> str:
    """A reply with a script that makes one change."""
    return (
        "```python\nimport openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\nsheet = book.worksheets[0]\n"
        f"{change}\nbook.save(OUTPUT_PATH)\n```"
    )


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


BOMB = """
import openpyxl, zipfile
openpyxl.load_workbook(INPUT_PATH).save("made.xlsx")
with zipfile.ZipFile("made.xlsx") as old, zipfile.ZipFile(OUTPUT_PATH, "w", 8, compresslevel=1) as new:
    for name in old.namelist():
        if name != "xl/worksheets/sheet1.xml":
            new.writestr(name, old.read(name))
    with new.open("xl/worksheets/sheet1.xml", "w") as sheet:
        sheet.write(b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">')
        sheet.write(b'<sheetData><row r="1">')
        wide = b"\\xf0\\x9f\\x98\\x80"  # makes Python keep four bytes for each letter beside it
        for _ in range(300):
            sheet.write(b'<c r="A1" t="inlineStr"><is><t>' + b"x" * 1_000_000 + wide + b"</t></is></c>")
        sheet.write(b"</row></sheetData></worksheet>")
"""
TRIES = """
import os, socket, glob
def said(what, how):
    try:
        print(what, how())
    except BaseException as error:
        print(what, "refused")
said("secret", lambda: os.environ["SECRET_KEY"])
said("parents", lambda: [path for path in glob.glob("/proc/[0-9]*/environ") if b"canary" in open(path, "rb").read()])
said("gold", lambda: open({gold!r}, "rb").read()[:2])
said("folder", lambda: os.listdir({folder!r}))
said("write", lambda: open({folder!r} + "/written", "w"))
said("home", lambda: os.listdir(os.path.expanduser("~root")))
said("network", lambda: socket.create_connection(("127.0.0.1", 9), timeout=1))
said("files", lambda: sorted(os.listdir(".")))
open(INPUT_PATH, "wb").write(b"overwritten")
raise RuntimeError("done")
"""
# Each is tried once, at the same item; the tests look at what came of it.
SCRIPTS: Mapping[str, str] = {
    "right": script(f"sheet['D2'] = {GOLD!r}"),
    "wrong": script("sheet['D2'] = 'lead'"),
    "formula": script("sheet['D2'] = '=1+1'"),
    "paths": fenced(
        'from __future__ import annotations\nimport openpyxl\nif True:\n    INPUT_PATH = "x.xlsx"\n'
        'OUTPUT_PATH = (\n    "y.xlsx"\n)\ntext = """\nINPUT_PATH = 1\n  two\n"""\n'
        'assert text == "\\nINPUT_PATH = 1\\n  two\\n"\nasync def later(value: NotDefined) -> None: ...\n'
        "def change():\n    book = openpyxl.load_workbook(INPUT_PATH)\n"
        f'    book.worksheets[0]["D2"] = {GOLD!r}\n    book.save(OUTPUT_PATH)\n'
        'if __name__ == "__main__":\n    change()'
    ),
    "pandas": fenced(
        "import pandas as pd\nimport openpyxl\nframe = pd.read_excel(INPUT_PATH)\n"
        f"book = openpyxl.load_workbook(INPUT_PATH)\nbook.worksheets[0]['D2'] = {GOLD!r}\n"
        "book.worksheets[0]['E2'] = frame['Price'].size * pd.Series([1]).iloc[0]\nbook.save(OUTPUT_PATH)"
    ),
    "tries": "",  # made from the folder
    "nothing saved": fenced("import sys\nsys.exit(0)"),
    "exit code": fenced("import sys\nsys.exit('no such sheet')"),
    "error": fenced("def f():\n    raise KeyError('Totals')\nf()"),
    "syntax": fenced("book = ("),
    "memory": fenced("x = bytearray(2 << 30)"),
    "noise": fenced("print('x' * 10_000_000)\nraise ValueError('after much noise')"),
    "corrupted": fenced("open(OUTPUT_PATH, 'wb').write(b'PK not a workbook')"),
    "bomb": fenced(BOMB),
    "corner": script("sheet['XFD1048576'] = 1\nsheet['D2'] = 'lead'"),
    "no sheet": script("sheet.title = 'Renamed'"),
    "killed": fenced("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "kills the reader": fenced("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
    "address": fenced("print(object())\nraise ValueError"),
    "false result": fenced("import os\nos.mkdir('result.json')"),
    "prose": "I would rather not.",
    "empty": "",
}


@frozen
class World:
    """One item, the folder of its data, and what comes of a script."""

    root: Path
    episode: Callable[[str], Episode]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The scripts, each tried when it is first asked for."""
    root = tmp_path_factory.mktemp("sheets")
    write_task(root, "1", [(sales(), sales_with(D2=GOLD))])
    environment, splits = opened(root, record("1"))
    folder = root / "spreadsheet" / "1"
    tries = TRIES.format(gold=str(folder / "1_1_answer.xlsx"), folder=str(folder))
    replies = {**SCRIPTS, "tries": fenced(tries)}

    @cache
    def tried(name: str) -> Episode:
        return attempt(environment, splits.train[0], Target([replies[name]]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_KEY", SECRET)
        patch.chdir(root)
        yield World(root, tried)


def said(episode: Episode) -> str:
    return episode.records[-1].text


# What is measured


@parametrized(
    ("name", "failure", "detail"),
    [
        ("right", "", ""),
        ("paths", "", ""),
        ("pandas", "", ""),
        ("wrong", "eval_mismatch", f"Sales!D2 holds 'lead', expected {GOLD!r}"),
        ("corner", "eval_mismatch", f"Sales!D2 holds 'lead', expected {GOLD!r}"),
        ("formula", "eval_mismatch", f"Sales!D2 holds a formula without a stored value, expected {GOLD!r}"),
        ("no sheet", "eval_mismatch", "the workbook has no sheet 'Sales'"),
        ("nothing saved", "no_output", "the script saved nothing at OUTPUT_PATH"),
        ("exit code", "exec_error", "no such sheet"),
        ("error", "exec_error", "KeyError: 'Totals'"),
        ("syntax", "exec_error", "SyntaxError: '(' was never closed"),
        ("memory", "exec_error", "MemoryError"),
        ("noise", "exec_error", "ValueError: after much noise"),
        ("killed", "exec_error", "the script ended with code -9"),
        ("corrupted", "unreadable_output", "what the script saved is no workbook that can be read: BadZipFile"),
        ("prose", "exec_error", "SyntaxError"),
        ("empty", "no_answer", "there is no script"),
    ],
    by_default=6,
)
def test_what_a_script_comes_to(world: World, name: str, failure: str, detail: str) -> None:
    """A short code that groups failures, and what happened."""
    episode = world.episode(name)
    assert (episode.failure, episode.outcome) == (failure, Measured(float(not failure), float(not failure)))
    assert episode.detail.startswith(detail)


def test_the_source_is_run_as_it_stands(world: World) -> None:
    """Imports from the future, texts over lines, and paths that the script sets are no trouble."""
    assert world.episode("paths").outcome == Measured(1, 1)


def test_a_workbook_that_is_a_bomb_is_not_opened_here(world: World) -> None:
    """A gigabyte of text ends in the child that reads it."""
    assert world.episode("bomb").failure in ("unreadable_output", "exec_error")
    assert world.episode("bomb").outcome == Measured(0, 0)


@pytest.mark.parametrize("name", ["kills the reader", "false result"])
def test_a_script_that_attacks_the_reader_gets_nothing(world: World, name: str) -> None:
    """What it saved cannot be read, so nothing passes."""
    assert world.episode(name).failure == "unreadable_output"
    assert world.episode(name).outcome == Measured(0, 0)


def test_formulas_without_a_value_are_named(world: World) -> None:
    """The analyst learns why a cell counts as empty."""
    assert "Formulas without a stored value, which count as empty: Sales!D2" in said(world.episode("formula"))


def test_the_analyst_sees_every_graded_cell(world: World) -> None:
    """What it holds and what it should."""
    assert said(world.episode("wrong")) == (
        "[EVALUATION RESULT]\n\n## Workbook 1: FAIL\n"
        f"Sales!D2 holds 'lead', expected {GOLD!r}\nSales!D2: got='lead', expected={GOLD!r} ✗"
    )
    traceback = 'File "solution.py", line 3, in <module>\n    f()\n  File "solution.py", line 2, in f'
    assert traceback in said(world.episode("error"))


@pytest.mark.parametrize("names", [("error", "wrong"), pytest.param(SCRIPTS, marks=pytest.mark.slow)], ids=len)
def test_no_place_of_this_machine_is_recorded(world: World, names: Iterable[str]) -> None:
    """Neither folders nor addresses of objects, which differ from run to run."""
    for name in names:
        told = "".join(record.text for record in world.episode(name).records if record.kind == "feedback")
        if name != "tries":
            assert str(world.root) not in told
        assert sys.prefix not in told
    assert "<object object at 0x…>" in said(world.episode("address"))


# What a script cannot do


@needs_walls
def test_a_script_reaches_nothing_but_its_workbook(world: World) -> None:
    """No key, no gold, no data, no network; the input it gets is a copy."""
    told = said(world.episode("tries"))
    assert SECRET not in told
    for what in ("secret", "parents", "gold", "folder", "write", "home", "network"):
        assert f"{what} refused" in told or f"{what} []" in told
    assert "files ['input.xlsx']" in told
    folder = world.root / "spreadsheet" / "1"
    assert sorted(path.name for path in folder.iterdir()) == ["1_1_answer.xlsx", "1_1_input.xlsx"]
    assert (folder / "1_1_input.xlsx").read_bytes() == sales()


def test_a_script_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """With the children it started."""
    write_task(tmp_path, "1", [(sales(), sales_with(D2=5))])
    environment, splits = opened(tmp_path, record("1"))
    environment._settings = evolve(environment._settings, timeout_seconds=0.5)  # type: ignore[attr-defined]
    mark = f"60{os.getpid()}"
    code = (
        f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep({mark})'])\n"
    )
    episode = attempt(environment, splits.train[0], Target([fenced(f"{code}time.sleep(60)")]))
    assert (episode.failure, episode.detail) == ("timeout", "the script did not end within 0.5 s")
    if CONFINED:
        assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _content(path)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_an_output_of_an_earlier_attempt_does_not_count(tmp_path: Path) -> None:
    """Each execution has a fresh folder: a turn that saves nothing has saved nothing."""
    write_task(tmp_path, "1", [(sales(), sales_with(D2=5))])
    environment, splits = opened(tmp_path, record("1"), mode="multi", max_turns=2)
    right_then_failing = [script("sheet['D2'] = 5\nbook.save(OUTPUT_PATH)\nraise ValueError"), fenced("x = 1")]
    episode = attempt(environment, splits.train[0], Target(right_then_failing))
    assert (episode.failure, episode.turns) == ("no_output", 2)


# Several turns


def two_cases(root: Path) -> None:
    second = workbook({**SALES, "Sales": {**SALES["Sales"], "B2": 10}})
    gold = workbook({**SALES, "Sales": {**SALES["Sales"], "B2": 10, "D2": 13}})
    write_task(root, "1", [(sales(), sales_with(D2=4.2)), (second, gold)])


SUM = script("sheet['D2'] = sheet['B2'].value + sheet['B6'].value")
WRONG_ZEROS = script("sheet['D2'] = 0")


@parametrized(
    ("replies", "options", "turns", "soft", "cells"),
    [
        ([fenced("raise ValueError('x')"), WRONG_ZEROS, SUM], {"use_eval_feedback": True}, 3, 1.0, True),
        ([fenced("raise ValueError('x')"), WRONG_ZEROS, SUM], {}, 2, 0.0, False),
        (["", "```python\n\n```", SUM], {}, 3, 1.0, False),
        ([script("sheet['D2'] = 4.2"), SUM], {"use_eval_feedback": True}, 1, 0.5, False),
    ],
    ids=["with feedback", "without", "no script at first", "right for one workbook"],
    by_default=1,
)
def test_a_script_is_run_and_asked_for_again(
    tmp_path: Path, replies: list[str], options: dict[str, Any], turns: int, soft: float, cells: bool
) -> None:
    """Until it runs; with feedback until its first workbook is right. Only the last script is scored, on every case."""
    two_cases(tmp_path)
    environment, splits = opened(tmp_path, record("1"), mode="multi", max_turns=5, **options)
    target = Target(replies)
    episode = attempt(environment, splits.train[0], target)
    assert episode.turns == len(target.asked) == turns
    assert episode.outcome == Measured(float(soft == 1), soft)
    assert len(episode.records) == 2 * turns + 2
    told = [message.content for message in target.asked[-1] if message.role == "user"][1:]
    assert any("Sales!D2 holds 0" in each for each in told) is cells
    assert not any("4.2" in each for each in told)


def test_feedback_is_for_training_items_only(tmp_path: Path) -> None:
    """What is scored never hears which cells are wrong."""
    two_cases(tmp_path)
    environment, splits = opened(tmp_path, record("1"), mode="multi", max_turns=3, use_eval_feedback=True)
    for item, turns in ((splits.train[0], 3), (splits.val[0], 1)):
        target = Target([WRONG_ZEROS])
        attempt(environment, item, target)
        assert len(target.asked) == turns


def test_every_wrong_cell_is_in_the_feedback(tmp_path: Path) -> None:
    """On sheets whose names have spaces, and with values over several lines; what is right is only counted."""
    gold = workbook({"My data": {"A1": "x", "A2": "y", "A3": 1}})
    write_task(tmp_path, "1", [(workbook({"My data": {"A1": "?"}}), gold)])
    row = record("1", answer_position="'My data'!A1:A4")
    environment, splits = opened(tmp_path, row, mode="multi", max_turns=2, use_eval_feedback=True)
    target = Target([script("sheet['A1'] = 'two\\nlines'\nsheet['A3'] = 1")])
    attempt(environment, splits.train[0], target)
    told = target.asked[1][-1].content
    assert "- My data!A1 holds 'two\\nlines'\n- My data!A2 holds nothing\n2 graded cells are right." in told


@pytest.mark.parametrize(("finish", "outcome"), [("refused", Measured(0, 0)), ("length", Failed)])
def test_a_reply_that_is_no_answer_ends_the_attempt(tmp_path: Path, finish: Any, outcome: Any) -> None:
    """Refused measures 0, cut is not measured; no script of it is run."""
    two_cases(tmp_path)
    environment, splits = opened(tmp_path, record("1"), mode="multi")
    episode = attempt(environment, splits.train[0], Target([ChatReply(text=SUM, finish=finish)]))
    assert episode.outcome == outcome or isinstance(episode.outcome, outcome)
    assert episode.turns == 1


# What the target is told


def test_the_target_sees_the_instruction_and_the_first_rows(world: World) -> None:
    """Of every sheet; formulas as they are written, long values cut, gold nowhere."""
    system, user = world.episode("right").records[0].text, world.episode("right").records[1].text
    assert "## Skill" in system
    assert "INPUT_PATH" in system
    assert "## Instruction\nPut 5 into D2 (1)." in user
    assert "Cells that are graded: D2" in user
    assert "[Sheet: Sales] dimensions=A1:D9 max_row=9 max_column=4" in user
    assert "A2=Pens | B2=1.2 | C2=2024-01-15 00:00:00 | D2=" in user
    assert "... (4 more rows)" in user
    assert "[Sheet: Other sheet]" in user
    assert GOLD not in system + user


# Data


def test_all_naming_schemes_are_read(tmp_path: Path) -> None:
    """Also one whose expected workbook has a wrong id; cases are in the order of their numbers."""
    pair = (sales(), sales_with(D2=5))
    write_task(tmp_path, "a", [pair] * 3, numbers=[10, 2, 1])
    write_task(tmp_path, "b", [pair], naming="init")
    write_task(tmp_path, "c", [pair], naming="bare")
    write_task(tmp_path, "42930", [pair], naming="init")
    folder = tmp_path / "spreadsheet" / "42930"
    (folder / "1_42930_golden.xlsx").rename(folder / "1_43930_golden.xlsx")
    _, splits = opened(tmp_path, *(record(name) for name in ("a", "b", "c", "42930")))
    assert [[case.number for case in item.cases] for item in splits.train] == [  # type: ignore[attr-defined]
        ["1", "2", "10"], ["1"], ["1"], ["1"],
    ]  # fmt: skip
    assert splits.notes == ("1_42930_init.xlsx is paired with 1_43930_golden.xlsx: the only one of its number",)


def test_entries_that_cannot_be_asked_are_left_out_with_a_note(tmp_path: Path) -> None:
    """Each with its reason; nothing passes because there is nothing to compare."""
    pair = (sales(), sales_with(D2=5))
    write_task(tmp_path, "ok", [pair])
    write_task(tmp_path, "alone", [pair])
    (tmp_path / "spreadsheet" / "alone" / "1_alone_answer.xlsx").unlink()
    records = [
        record("ok"),
        record("alone"),
        record("gone"),
        record("empty", spreadsheet_path="spreadsheet/ok", answer_position=" "),
        record("silent", spreadsheet_path="spreadsheet/ok", instruction=""),
    ]
    _, splits = opened(tmp_path, *records)
    assert [item.id for item in splits.train] == ["ok"]
    [note] = splits.notes
    assert note == (
        "left out 4 entries: alone (1_alone_input.xlsx has no 1_alone_answer.xlsx), gone (there is no folder gone), "
        "empty (`answer_position` is empty: nothing would be graded), silent (`instruction` is missing or blank)"
    )


def test_lists_of_ids_are_completed_from_the_records_beside_the_workbooks(tmp_path: Path) -> None:
    """So that the published splits can be used as they are."""
    root = tmp_path / "data"
    for name in ("1", "2", "3"):
        write_task(root, name, [(sales(), sales_with(D2=5))])
    write_records(root, [{**record(name), "id": int(name)} for name in ("1", "2", "3")])
    for split, name in (("train", "1"), ("val", "2"), ("test", "3")):
        folder = tmp_path / "splits" / split
        folder.mkdir(parents=True)
        (folder / "items.json").write_text(f'[{{"id": "{name}", "spreadsheet_path": "spreadsheet/{name}"}}]')
    data = data_settings(split_mode="split_dir", split_dir=str(tmp_path / "splits"))
    options = {"data_root": "data", "sandbox": "confined" if CONFINED else "unconfined"}
    splits = open_on(tmp_path, NAME, data, **options).load()
    assert splits.train[0].instruction == "Put 5 into D2 (1)."  # type: ignore[attr-defined]
    assert (splits.train[0].task_type, splits.test[0].id) == ("cell_level", "3")


@pytest.mark.parametrize("path", ["../outside", "/etc", "spreadsheet/../../outside"])
def test_workbooks_outside_the_data_are_refused(tmp_path: Path, path: str) -> None:
    """An entry cannot name any folder of the machine."""
    with pytest.raises(DataError, match="points outside of the data"):
        opened(
            tmp_path / "data" if (tmp_path / "data").mkdir() is None else tmp_path, record("1", spreadsheet_path=path)
        )


def test_other_workbooks_are_other_data(tmp_path: Path) -> None:
    """Their bytes are in the digest that a resumed run compares."""
    digests = []
    for value in (5, 6):
        write_task(tmp_path, "1", [(sales(), sales_with(D2=value))])
        digests.append(opened(tmp_path, record("1"))[1].digests["train"])
    assert digests[0] != digests[1]


@pytest.mark.parametrize("damage", ["bytes", "sheet"])
def test_broken_gold_is_no_score(tmp_path: Path, damage: str) -> None:
    """What cannot be compared was not measured, and the item is named."""
    gold = b"broken" if damage == "bytes" else sales()
    write_task(tmp_path, "1", [(sales(), gold)])
    environment, splits = opened(tmp_path, record("1", answer_sheet="" if damage == "bytes" else "Totals"))
    episode = attempt(environment, splits.train[0], Target([SUM]))
    assert isinstance(episode.outcome, Failed)
    assert episode.outcome.kind == "data"
    assert "expected workbook of item '1'" in episode.detail


# Opening


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("mode", "many", "one of single, multi"),
        ("sandbox", "none", "one of confined, unconfined"),
        ("max_turns", 0, "at least 1"),
        ("use_eval_feedback", "yes", "true or false"),
    ],
)
def test_options_are_checked(tmp_path: Path, key: str, value: Any, allowed: str) -> None:
    """File, key, value and what is allowed."""
    with pytest.raises(ConfigError, match=f"env.{key}: must be .*{allowed}"):
        open_on(tmp_path, NAME, data_settings(), **{key: value})


def test_without_openpyxl_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence, before anything else."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs openpyxl, which is not installed") as refusal:
        opened(tmp_path)
    assert refusal.value.hint == extra_hint("spreadsheet")


def test_without_walls_it_refuses_before_anything_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the config says that code may run without them."""
    monkeypatch.setattr(opening.sys, "platform", "plan9")
    workshop._prove.cache_clear()
    try:
        write_task(tmp_path, "1", [(sales(), sales_with(D2=5))])
        with pytest.raises(ConfigError, match="cannot be confined here") as refusal:
            opened(tmp_path, record("1"), sandbox="confined")
        assert "env.sandbox: unconfined" in (refusal.value.hint or "")
        opened(tmp_path, record("1"), sandbox="unconfined")
    finally:
        workshop._prove.cache_clear()


def test_made_workbooks_hold_what_real_ones_do() -> None:
    """The data of these tests: dates, errors, merged cells, formulas and several sheets."""
    with zipfile.ZipFile(BytesIO(sales())) as parts:
        first = parts.read("xl/worksheets/sheet1.xml")
    assert b"<f>" in first
    assert b"mergeCell" in first
    assert b't="e"' in first


@pytest.mark.parametrize(
    ("tried", "says"),
    [
        (Execution(ended_by="timeout", code=-9, stdout="", stderr="", files={}), "did not end in time"),
        (
            Execution(ended_by="exit", code=1, stdout="", stderr="ModuleNotFoundError: No module …", files={}),
            "which the sandbox does not see",
        ),
        (Execution(ended_by="exit", code=1, stdout="", stderr="ImportError: broken", files={}), "ImportError: broken"),
    ],
)
def test_a_probe_that_fails_says_why(tried: Execution, says: str) -> None:
    """A busy machine is no missing package."""
    with pytest.raises(ConfigError, match=says):
        workshop.check_import(tried)


@pytest.mark.parametrize(
    "told",
    [
        None, [], {}, {"sheets": 7}, {"sheets": [], "cells": [["S", "1", 1, "int", "1"]], "formulas": []},
        {"sheets": [], "cells": [["S", 1, 1, "int", "9" * 5000]], "formulas": []},
        {"sheets": [], "cells": [["S", 1, 1, "timedelta", "1e300"]], "formulas": []},
        {"sheets": [reduce(lambda inner, _: [inner], range(100_000), [])], "cells": [], "formulas": []},
    ],
    ids=range(8),
)  # fmt: skip
def test_a_forged_description_of_a_workbook_cannot_be_read(told: Any) -> None:
    """Whatever a script put in its place."""
    with pytest.raises(UnreadableError):
        read_book(told)
