"""Files of other tools become tasks; what has no counterpart is left. The tools themselves wrote `files`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
from support.environments import data_settings, open_on, write_lines

from skillopt_es.adapters.tasksets.rows import Taken, same_ids
from skillopt_es.adapters.tasksets.suites import READERS, read_taskset
from skillopt_es.adapters.tasksets.twins import twins_in
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json
from skillopt_es.sessions.tasksets import find_tasks, unmet

FILES = Path(__file__).parent / "files"


def taken(path: Path, kind: str, **mapping: str) -> Taken:
    """What is taken from a file whose kind is seen."""
    found, tasks = read_taskset(path, "", mapping)
    assert found == kind
    return tasks


def brief(tasks: Taken) -> list[tuple[Any, Any]]:
    return [(task.get("input"), task.get("expected")) for task in tasks.tasks]


def test_a_dataset_of_huggingface_says_its_splits() -> None:
    """As `save_to_disk` writes it: Arrow files in a folder for each split."""
    pytest.importorskip("pyarrow")
    tasks = taken(FILES / "hf", "huggingface")
    assert brief(tasks) == [("Say 1", "1"), ("Say 2", "2"), ("Say 3", "3")]
    assert [task["split"] for task in tasks.tasks] == ["train", "train", "test"]
    assert tasks.notes == ("input from question, expected from answer",)


@pytest.mark.parametrize(("name", "kind"), [("dspy.json", "table"), ("dspy_program.json", "dspy")])
def test_examples_of_dspy(name: str, kind: str) -> None:
    """Dumped as dictionaries, or as the demos of a saved program."""
    assert brief(taken(FILES / name, kind)) == [("Say 1", "1"), ("Say 2", "2")]


def test_programs_of_dspy_hold_their_predictors_by_name(tmp_path: Path) -> None:
    """As every program but a bare predictor is saved."""
    one = json.loads((FILES / "dspy_program.json").read_text())
    metadata = one.pop("metadata")
    other = {**one, "demos": [], "train": [{"question": "Say 3", "answer": "3"}]}
    saved = {"classify.predict": one, "answer.predict": other, "metadata": metadata}
    (tmp_path / "program.json").write_text(json.dumps(saved))
    assert brief(taken(tmp_path / "program.json", "dspy")) == [("Say 1", "1"), ("Say 2", "2"), ("Say 3", "3")]


def test_a_field_within_a_field_may_be_named(tmp_path: Path) -> None:
    """As in SQuAD, whose answers are in `answers.text`."""
    rows = [{"question": "Where?", "answers": {"text": ["here"], "answer_start": [3]}}, {"question": "When?"}]
    tasks = taken(write_lines(tmp_path / "a.jsonl", rows), "table", expected="answers.text")
    assert brief(tasks) == [("Where?", ["here"]), ("When?", None)]
    with pytest.raises(DataError, match="no such field"):
        taken(tmp_path / "a.jsonl", "table", expected="answers.texts")


def test_tasks_without_an_answer_are_told(tmp_path: Path) -> None:
    """All of them, or some."""
    (tmp_path / "a.csv").write_text("question,gold\nSay 1,1\nSay 2,\n")
    assert find_tasks(tmp_path / "a.csv", "", {}).notes[-1] == "without an expected answer: 1 task (first: a-2)"
    (tmp_path / "b.csv").write_text("question,antwort\nSay 1,1\nSay 2,2\n")
    assert "--field expected=NAME" in find_tasks(tmp_path / "b.csv", "", {}).notes[-1]
    named = find_tasks(tmp_path / "b.csv", "", {"expected": "antwort"})
    assert named.notes == ("input from question, expected from antwort",)


def test_cells_may_stand_between_semicolons(tmp_path: Path) -> None:
    """As spreadsheets write them where a comma stands in numbers; a header with commas is read as ever."""
    (tmp_path / "t.csv").write_text("question;answer\nSay 1,5;1,5\n")
    assert brief(taken(tmp_path / "t.csv", "table")) == [("Say 1,5", "1,5")]
    (tmp_path / "t.csv").write_text("question,answer;notes\nSay 1,1\n")
    assert brief(taken(tmp_path / "t.csv", "table")) == [("Say 1", None)]


def test_a_log_of_inspect() -> None:
    """Each sample once; choices are put and graded as choices."""
    tasks = taken(FILES / "inspect.json", "inspect")
    assert sorted(str(task["id"]) for task in tasks.tasks) == ["2", "3", "s1"]
    choice = next(task for task in tasks.tasks if task["id"] == "2")
    assert (choice["grader"], choice["expected"]) == ("choice", "B")
    assert "B) blood" in str(choice["input"])
    assert [why for _, why in tasks.left] == ["a further epoch of a sample that is there"]


def test_a_packed_log_of_inspect_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """It is packed with what this Python cannot unpack."""
    (tmp_path / "a.eval").write_bytes(b"PK")
    with pytest.raises(DataError, match="packed") as refused:
        taken(tmp_path / "a.eval", "inspect")
    assert "inspect log convert" in refused.value.hint


def test_tests_of_promptfoo() -> None:
    """Prompts are filled, assertions become graders; code of theirs is not run."""
    tasks = taken(FILES / "promptfooconfig.yaml", "promptfoo")
    assert [(task["input"], task["grader"]) for task in tasks.tasks] == [
        ("Say the number 1.", "contains"),
        ("Say the number 2.", "regex"),
        ("Say the number 3.", "judge"),
    ]
    assert [where.rpartition(": ")[2] for where, _ in tasks.left] == ["test 4"]


def test_variables_of_promptfoo_with_several_values_are_several_tests(tmp_path: Path) -> None:
    """One for each combination; assertions are filled, too; what no text fills is left."""
    variables = [
        {"say": ["one", "two"], "in": ["French", "Dutch"]},
        {"say": "one"},
        {"say": "file://x.txt", "in": "Dutch"},
        {"say": {"a": 1}, "in": "Dutch"},
    ]
    tests = [{"vars": each, "assert": [{"type": "equals", "value": "{{say}}!"}]} for each in variables]
    (tmp_path / "p.json").write_text(json.dumps({"prompts": ["Say {{say}} in {{ in }}."], "tests": tests}))
    tasks = taken(tmp_path / "p.json", "promptfoo")
    assert [(task["id"], task["input"], task["expected"]) for task in tasks.tasks] == [
        ("p-1-1", "Say one in French.", "one!"),
        ("p-1-2", "Say one in Dutch.", "one!"),
        ("p-1-3", "Say two in French.", "two!"),
        ("p-1-4", "Say two in Dutch.", "two!"),
    ]
    assert [why for _, why in tasks.left] == [
        "its prompt needs what no variable gives",
        "its variable say stands in another file",
        "its variable say is no text",
    ]


def test_samples_of_openai_evals(tmp_path: Path) -> None:
    """A conversation that ends with a system message is asked by the user."""
    rows = [
        {"input": [{"role": "system", "content": "Say 1"}], "ideal": ["1", "one"]},
        {"input": "Say 2", "ideal": "2"},
    ]
    tasks = taken(write_lines(tmp_path / "samples.jsonl", rows), "openai")
    assert tasks.tasks[0]["messages"] == [{"role": "user", "content": "Say 1"}]
    assert [task["expected"] for task in tasks.tasks] == [["1", "one"], "2"]


def test_task_files_of_skillopt_sleep(tmp_path: Path) -> None:
    """References become graders, old names of splits ours; nobody vouches for what was mined from sessions."""
    rows = [
        {"id": "a", "intent": "Say 1", "context_excerpt": "numbers", "reference_kind": "exact", "reference": "1"},
        {"id": "b", "intent": "Greet", "reference_kind": "rubric", "reference": "It greets.", "split": "holdout"},
        {"id": "c", "intent": "Fix it", "reference_kind": "rule", "judge": {"op": "x"}},
        {"id": "d", "intent": "Look", "reference_kind": "none"},
    ]
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": rows}), encoding="utf-8")
    tasks = taken(tmp_path / "tasks.json", "sleep")
    assert [(task["grader"], task["split"], task["trust"]) for task in tasks.tasks] == [
        ("normalized", "train", "untrusted"),
        ("judge", "val", "untrusted"),
    ]
    whys = ["its rule has no checks in a form that is known", "it has no reference"]
    assert [why for _, why in tasks.left] == whys


def test_rules_of_skillopt_sleep_become_checks(tmp_path: Path) -> None:
    """Each by its counterpart; what has none is left, by name."""
    rules: list[list[dict[str, Json]]] = [
        [{"op": "section_present", "arg": "Risks"}, {"op": "max_chars", "arg": "900"}, {"op": "min_chars", "arg": 9}],
        [{"op": "regex", "arg": "^#"}, {"op": "contains", "arg": "x"}, {"op": "not_contains", "arg": "y"}],
        [{"op": "tool_called", "arg": "search"}],
        [{"op": "no_refusal"}],
        [{"op": "regex", "arg": "("}],
    ]
    rows = [
        {"id": str(number), "intent": "Do", "reference_kind": "rule", "judge": {"kind": "rule", "checks": checks}}
        for number, checks in enumerate(rules)
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(rows), encoding="utf-8")
    tasks = taken(tmp_path / "tasks.json", "sleep")
    assert [task["checks"] for task in tasks.tasks] == [
        [
            {"check": "section_contains", "section": "Risks"},
            {"check": "at_most", "count": 900, "of": "characters"},
            {"check": "at_least", "count": 9, "of": "characters"},
        ],
        [
            {"check": "matches", "pattern": "^#"},
            {"check": "contains", "text": "x"},
            {"check": "lacks", "text": "y"},
        ],
        [{"check": "tool_called", "name": "search"}],
    ]
    assert "'no_refusal'" in tasks.left[0][1]
    assert "must be a regular expression" in tasks.left[1][1]
    assert "rules became checks" in tasks.notes[0]


def test_tables_find_their_fields_or_are_told(tmp_path: Path) -> None:
    """CSV, TSV and Parquet; other columns come along, empty questions stay behind."""
    (tmp_path / "a.csv").write_text('Question,answer,hint\n"Say, 1",1,x\n ,2,y\n', encoding="utf-8")
    (tmp_path / "b.tsv").write_text("frage\tantwort\nSag 1\t1\n", encoding="utf-8")
    tasks = taken(tmp_path / "a.csv", "table")
    assert tasks.tasks == ({"input": "Say, 1", "expected": "1", "hint": "x", "id": "a-1"},)
    assert [why for _, why in tasks.left] == ["it asks nothing"]
    assert brief(taken(tmp_path / "b.tsv", "table", input="frage", expected="antwort")) == [("Sag 1", "1")]
    with pytest.raises(DataError, match="none of the fields is the question"):
        taken(tmp_path / "b.tsv", "table")
    with pytest.raises(DataError, match="no such field: --field input=fragge"):
        taken(tmp_path / "b.tsv", "table", input="fragge")


def test_parquet_is_a_table(tmp_path: Path) -> None:
    """Its types become JSON."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"prompt": ["Say 1"], "label": [1]}), tmp_path / "a.parquet")
    assert brief(taken(tmp_path / "a.parquet", "table")) == [("Say 1", 1)]
    (tmp_path / "b.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot be read"):
        taken(tmp_path / "b.parquet", "table")


@pytest.mark.parametrize("name", ["dspy.json", "inspect.json", "promptfooconfig.yaml"])
def test_what_is_taken_can_be_trained_on(tmp_path: Path, name: str) -> None:
    """The environment reads it as it is."""
    _, tasks = read_taskset(FILES / name, "", {})
    rows = [{**row, "id": f"{split}-{row['id']}", "split": split} for split in ("train", "val") for row in tasks.tasks]
    data = data_settings(split_mode="field", data_path=str(write_lines(tmp_path / "tasks.jsonl", rows)))
    assert len(open_on(tmp_path, "tasks", data).load().train) == len(tasks.tasks)


def test_every_kind_has_a_reader_and_ids_are_looked_at() -> None:
    """The command offers what there is."""
    assert set(READERS) == {"table", "huggingface", "promptfoo", "inspect", "dspy", "openai", "sleep"}
    assert [*same_ids([{"id": "a"}, {"id": "b"}, {"id": "a"}])] == ["a"]


def test_texts_that_are_nearly_the_same_are_twins() -> None:
    """Case and punctuation do not tell texts apart, a few words more hardly."""
    long = " ".join(f"word{number}" for number in range(40))
    texts = {"a": long, "b": f"{long.upper()}!", "c": f"{long} and more", "d": "something else", "e": "Something else?"}
    found = {(each.one, each.other): round(each.share, 2) for each in twins_in(texts)}
    assert found == {("a", "b"): 1.0, ("a", "c"): 0.95, ("d", "e"): 1.0}


def test_thousands_of_texts_of_one_form_cost_little() -> None:
    """A heading that all share makes no pairs to be compared: so many comparisons would take minutes."""
    form = "Answer the question about the delivery with care and be brief please"
    texts = {
        str(number): f"{form}: {number} {number * 7} {number * 13} {number * 17} {number * 19}"
        for number in range(5000)
    }
    assert sum(1 for _ in twins_in(texts)) == 0


# --- what a dataset and a table say of themselves ---------------------------------------------------------------------


FEATURES = {
    "text": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["DEFECT", "HOWTO"], "_type": "ClassLabel"},
    "tags": {"feature": {"names": ["a", "b"], "_type": "ClassLabel"}, "_type": "List"},
    "more": {"kind": {"names": ["x", "y"], "_type": "ClassLabel"}},
}
LABELLED = {
    "text": ["Say 1", "Say 2", "Say 3"],
    "label": [0, 1, -1],
    "tags": [[0], [], [1, 0]],
    "more": [{"kind": 1}] * 3,
}


def labelled(folder: Path, *splits: str, beside: bool) -> Path:
    """A saved dataset with classes, whose names are in the files or beside them."""
    pa = pytest.importorskip("pyarrow")
    for split in splits:
        (folder / split).mkdir(parents=True)
        table = pa.table({**LABELLED, "text": [f"{text} of {split}" for text in LABELLED["text"]]})
        if beside:
            (folder / split / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
        else:
            table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})
        with pa.OSFile(str(folder / split / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
            out.write_table(table)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": [*splits]}))
    return folder


@pytest.mark.parametrize("beside", [True, False])
def test_classes_of_a_dataset_have_their_names(tmp_path: Path, beside: bool) -> None:
    """In lists and within other fields, too; a number below 0 is no label."""
    tasks = taken(labelled(tmp_path / "ds", "train", "validation", beside=beside), "huggingface").tasks
    assert [task.get("expected") for task in tasks[:3]] == ["DEFECT", "HOWTO", None]
    assert [task["tags"] for task in tasks[:3]] == [["a"], [], ["b", "a"]]
    assert tasks[0]["more"] == {"kind": "y"}


def test_classes_of_a_parquet_file_have_their_names(tmp_path: Path) -> None:
    """As the library writes them into the file."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    said = {"huggingface": json.dumps({"info": {"features": FEATURES}})}
    pq.write_table(pa.table(LABELLED).replace_schema_metadata(said), tmp_path / "one.parquet")
    assert [task.get("expected") for task in taken(tmp_path / "one.parquet", "table").tasks] == [
        "DEFECT",
        "HOWTO",
        None,
    ]


@pytest.mark.parametrize(
    ("words", "splits"),
    [
        (("training", "dev", "held-out"), ["train", "val", "test"]),
        (("Train", "Valid", "TEST"), ["train", "val", "test"]),
        (("train", "eval", "test"), ["train", "val", "test"]),
        (("train", "heldout", "train"), ["train", "val", "train"]),
        (("train", "development", "evaluation"), ["train", "val", "test"]),
    ],
)
def test_words_for_splits_are_read_as_ours(tmp_path: Path, words: tuple[str, ...], splits: list[str]) -> None:
    """Two of them may be what validates or what tests: the other words tell."""
    rows = [{"question": f"Say {number}", "answer": "1", "part": word} for number, word in enumerate(words)]
    tasks = taken(write_lines(tmp_path / "a.jsonl", rows), "table", split="part").tasks
    assert [task["split"] for task in tasks] == splits
    settings = data_settings(data_path=tmp_path / "b.jsonl", split_mode="field", split_field="part")
    items = [
        {"id": str(number), "input": f"Say {number}", "expected": "1", "part": word}
        for number, word in enumerate(words)
    ]
    write_lines(tmp_path / "b.jsonl", items)
    found = open_on(tmp_path, "tasks", settings).load()
    assert [item.id for item in found.val] == [str(at) for at, split in enumerate(splits) if split == "val"]


@pytest.mark.parametrize(
    "words", [("train", "held-back"), ("train", "dev", "test", "held-out"), ("train", "eval", "holdout")]
)
def test_a_word_for_a_split_that_says_none_of_ours_is_refused_by_name(tmp_path: Path, words: tuple[str, ...]) -> None:
    """It is never dropped."""
    rows = [{"question": f"Say {number}", "answer": "1", "split": word} for number, word in enumerate(words)]
    with pytest.raises(DataError, match=r"the split '(held-back|held-out|eval)' is none of ours") as refused:
        taken(write_lines(tmp_path / "a.jsonl", rows), "table")
    assert "held-out" in refused.value.hint


def test_broken_metadata_of_a_parquet_file_is_named(tmp_path: Path) -> None:
    """What was read is the file itself, not one next to it."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for broken in ("{", b"\xff"):
        table = pa.table({"input": ["a"]}).replace_schema_metadata({"huggingface": broken})
        pq.write_table(table, tmp_path / "one.parquet")
        with pytest.raises(DataError, match=r"one\.parquet: the metadata under the key `huggingface`: not JSON"):
            taken(tmp_path / "one.parquet", "table")


def test_a_table_of_assertions_alone_has_no_question(tmp_path: Path) -> None:
    """The error says which column is missing, not that a field nobody named is."""
    (tmp_path / "tests.csv").write_text("__expected\ncontains: DEFECT\n")
    with pytest.raises(DataError, match="no column for the question") as refused:
        taken(tmp_path / "tests.csv", "promptfoo")
    assert "`input`" in refused.value.hint


def test_a_table_of_promptfoo_is_read_as_its_tests(tmp_path: Path) -> None:
    """With assertions in columns of their own: one is a grader, several are checks; what has no counterpart is left."""
    (tmp_path / "tests.csv").write_text(
        "ticket,product,__expected,__expected2,__description\n"
        "It is broken,A,contains: DEFECT,,first\n"
        'How do I?,B,"contains-all: HOWTO, B",not-contains: DEFECT,second\n'
        "Say it,C,HOWTO,,third\n"
        "Say it well,C,llm-rubric: it is polite,,\n"
        "Say it nicely,C,llm-rubric: it is polite,contains: C,\n"
        "Say it fast,C,javascript: output.length < 3,,\n"
        "Say it as: so,C,equals: a: b,,\n"
    )
    tasks = taken(tmp_path / "tests.csv", "promptfoo")
    assert [(task["input"], task["grader"], task.get("expected")) for task in tasks.tasks] == [
        ("It is broken", "contains", "DEFECT"),
        ("How do I?", "checks", None),
        ("Say it", "exact", "HOWTO"),
        ("Say it well", "judge", None),
        ("Say it as: so", "exact", "a: b"),
    ]
    assert tasks.tasks[1]["checks"] == [
        {"check": "contains", "text": "HOWTO"},
        {"check": "contains", "text": "B"},
        {"check": "lacks", "text": "DEFECT"},
    ]
    assert [why for _, why in tasks.left] == [
        "it has a rubric and other assertions",
        "it has an assertion with no counterpart here",
    ]
    assert taken(tmp_path / "tests.csv", "promptfoo", input="product").tasks[0]["input"] == "A"


def test_several_assertions_of_promptfoo_are_all_checked(tmp_path: Path) -> None:
    """As its config has them, with variables filled in."""
    asserts = [
        {"type": "contains", "value": "{{say}}"},
        {"type": "starts-with", "value": "So"},
        {"type": "regex", "value": "o+ne"},
        {"type": "contains-any", "value": ["x.y", "one"]},
        {"type": "equals", "value": "So one (1)"},
    ]
    tests = [{"vars": {"say": "one"}, "assert": asserts}]
    (tmp_path / "p.json").write_text(json.dumps({"prompts": ["Say {{say}}."], "tests": tests}))
    [task] = taken(tmp_path / "p.json", "promptfoo").tasks
    checks = cast("list[Json]", task["checks"])
    assert [asyncio.run(unmet(each, "So one (1)", ())) for each in checks] == [""] * 5
    assert all(asyncio.run(unmet(each, "No", ())) for each in checks)
