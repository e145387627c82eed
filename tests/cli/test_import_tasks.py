"""`import-tasks` writes a file to train on, and says what it took, what it left, and what is alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.in_process import Cli

from skillopt_es.cli.import_tasks import _KINDS
from skillopt_es.sessions.tasksets import KINDS

CSV = "question,answer,split\nSay one and two now,1,train\nSay one and two now!,1,val\nSay 2,2,test\n,3,test\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with a task that is in two splits, and a row that asks nothing."""
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(CSV, encoding="utf-8")
    return Path("mine.csv")


def test_it_tells_what_it_took_and_what_it_left(source: Path, cli: Cli) -> None:
    """And how to train on it."""
    done = cli("import-tasks", source)
    assert done.code == 0
    assert "3 tasks" in done.out
    assert "left   1 task: it asks nothing" in done.out
    assert "alike  1 pair in two splits: mine-1 and mine-2 (100%)" in done.out
    assert "split_mode: field" in done.out
    rows = [json.loads(line) for line in Path("tasks.jsonl").read_text().splitlines()]
    assert [row["split"] for row in rows] == ["train", "val", "test"]


def test_the_document_says_the_same(source: Path, cli: Cli) -> None:
    """For programs."""
    said = cli("import-tasks", source, "--to", "other.jsonl", "--json").json
    assert (said["kind"], said["taken"], len(said["left"])) == ("table", 3, 1)
    assert said["alike"] == [{"one": "mine-1", "other": "mine-2", "share": 1.0}]


def test_it_overwrites_nothing_and_says_what_is_wrong(source: Path, cli: Cli) -> None:
    """Before anything is written."""
    Path("tasks.jsonl").write_text("mine\n", encoding="utf-8")
    assert "exists already" in cli("import-tasks", source).err
    assert Path("tasks.jsonl").read_text() == "mine\n"
    assert cli("import-tasks", source, "--force", "--field", "input=answr").code == 2
    assert "such as" in cli("import-tasks", source, "--force", "--field", "answr").err
    assert "no file" in cli("import-tasks", "gone.csv", "--force").err


def test_the_command_offers_every_kind() -> None:
    """Written out in the command, which must not import the readers to say its help."""
    assert KINDS == _KINDS


def test_doctor_finds_tasks_in_two_splits_that_ask_nearly_the_same(source: Path, cli: Cli) -> None:
    """However the splits are made; what asks the very same is told apart from that."""
    long = " ".join(f"word{number}" for number in range(40))
    rows = [(long, "train"), (f"{long} and more", "val"), (f"{long} and else", "train"), ("Say 2", "test")]
    items = [{"id": str(n), "input": text, "expected": "1", "split": split} for n, (text, split) in enumerate(rows)]
    Path("tasks.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    config = "model: {backend: simulated, optimizer: o, target: t}\n"
    config += "env: {name: tasks, data_path: tasks.jsonl, split_mode: field}\n"
    Path("config.yaml").write_text(config, encoding="utf-8")
    found = [check["message"] for check in cli("doctor", "config.yaml", "--json").json["checks"]]
    said = "nearly the same is asked in two splits by 2 pairs of tasks: first, 0 (train) and 1 (val, 95%)"
    assert said in found


def test_a_table_is_trained_on_directly_and_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """How it was read, and how its tasks are divided where nobody says it."""
    monkeypatch.chdir(tmp_path)
    rows = [f"What is {number}+9?,{number + 9}" for number in range(10)]
    Path("q.csv").write_text("\n".join(("frage,answer", *rows)), encoding="utf-8")
    Path("config.yaml").write_text(
        "model: {backend: simulated, optimizer: o, target: t}\n"
        "env: {data_path: q.csv, input_field: frage}\n"
        "train: {num_epochs: 1}\n",
        encoding="utf-8",
    )
    told = cli("run", "config.yaml").err
    assert "note: q.csv: input from frage, expected from answer" in told
    assert "divided as 2:1:7, which is the default (env.split_ratio): 2 to train, 1 to validate, 7 to test" in told
    said = cli("run", "config.yaml", "--set", "env.split_ratio=1:1:1").err
    assert "divided" not in said
    doctor = cli("doctor", "config.yaml").out
    assert "2 train, 1 val, 7 test items, as 2:1:7, which is the default (env.split_ratio)" in doctor


def test_a_dataset_with_splits_of_its_own_is_divided_by_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """In a run and in `doctor`, which say so; a chosen division comes first, and a resume keeps its own."""
    pa = pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    sizes = {"train": 6, "validation": 4, "test": 3}
    for split, size in sizes.items():
        Path("ds", split).mkdir(parents=True)
        table = pa.table({"question": [f"{split} {n}" for n in range(size)], "answer": ["1"] * size})
        with pa.OSFile(f"ds/{split}/data.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
            out.write_table(table)
    Path("ds/dataset_dict.json").write_text(json.dumps({"splits": [*sizes]}))
    Path("SKILL.md").write_text("Be brief.\n")
    Path("config.yaml").write_text(
        "model: {backend: simulated, optimizer: o, target: t}\n"
        "env: {data_path: ds, skill_init: SKILL.md}\ntrain: {num_epochs: 1}\n"
    )
    doctor = cli("doctor", "config.yaml").out
    assert "6 train, 4 val, 3 test items" in doctor
    assert "the dataset's own splits are used: train, validation, test" in doctor
    assert "4 to train" not in doctor
    assert "1 train, 1 val, 9 test" not in cli("doctor", "config.yaml", "--set", "env.split_mode=ratio").out
    assert "6 train" not in cli("doctor", "config.yaml", "--set", "env.split_mode=ratio").out
    assert "own splits are used" in cli("run", "config.yaml", "--run", "one", "--max-calls", "3").err
    assert cli("resume", "one", "--max-calls", "4000").code == 0
    Path("ds/dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    assert (
        "the dataset's own splits (train, test) are mixed and divided again, since none of them is val"
        in cli("doctor", "config.yaml").out
    )


def test_a_table_of_promptfoos_as_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Its assertions would be taken for answers; the command that reads them is named, and works."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("question,__expected\nSay HOWTO,contains: HOWTO\nSay B,equals: B\n")
    Path("SKILL.md").write_text("Be brief.\n")
    Path("config.yaml").write_text(
        "model: {backend: simulated, optimizer: o, target: t}\n"
        "env: {data_path: a.csv, expected_field: __expected, skill_init: SKILL.md}\n"
    )
    doctor = cli("doctor", "config.yaml").out
    assert "a.csv: these are tests of promptfoo, whose column __expected holds assertions, not answers" in doctor
    assert "a.csv --to tasks.jsonl` makes tasks of them" in doctor
    assert "these are tests of promptfoo" in cli("run", "config.yaml").err
    assert cli("import-tasks", "a.csv").code == 0


def test_splits_that_do_not_suffice_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Where none of the tasks is to validate."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("question,answer,split\nSay 1,1,train\nSay two things,2,test\n")
    done = cli("import-tasks", "a.csv")
    assert "note   the splits that the tasks name are not used, as no task is in val" in done.out
    assert "split_mode" not in done.out
