"""`data`: plans, splits and checks on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import command
from support.downloads import MADE

from skillopt_es.adapters.benchmarks.registry import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_plan_says_what_from_where_on_what_terms(tmp_path: Path, name: str) -> None:
    """For people and for programs."""
    plan = command("data", "fetch-plan", name, "--json", cwd=tmp_path).json
    said = command("data", "fetch-plan", name, cwd=tmp_path)
    assert said.code == 0
    for source in plan["sources"]:
        assert source["where"].startswith("https://")
        for key in ("what", "where", "licence", "get"):
            assert source[key] in said.out
    assert plan["build"] in said.out
    assert (plan["warning"] or "") in said.out


def test_without_a_name_the_benchmarks_are_listed(tmp_path: Path) -> None:
    """And an unknown one gets the nearest."""
    done = command("data", "fetch-plan", cwd=tmp_path)
    assert [line.split()[0] for line in done.out.splitlines()] == list(BENCHMARKS)
    wrong = command("data", "fetch-plan", "serchqa", cwd=tmp_path)
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean searchqa?" in wrong.err


def test_what_is_built_can_be_checked_and_trained_on(tmp_path: Path) -> None:
    """From downloads to a config's own check, and damage is told."""
    source, ids = MADE["searchqa"](tmp_path)
    words = ("data", "build", "searchqa", "--from", source, "--ids", ids, "--out", "data/searchqa_split")
    done = command(*words, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.startswith("built  data/searchqa_split  train 3, val 1, test 2\n")
    assert command(*words, cwd=tmp_path).code == 2
    assert command("data", "check", "data/searchqa_split", cwd=tmp_path).out.startswith("ok       searchqa  train 3")
    (tmp_path / "mine.yaml").write_text("_base_: searchqa\nmodel: {backend: simulated, target: a, optimizer: b}\n")
    checked = command("data", "check", "mine.yaml", "--json", cwd=tmp_path)
    assert (checked.code, checked.json["counts"]) == (0, {"train": 3, "val": 1, "test": 2})
    (tmp_path / "data" / "searchqa_split" / "val" / "items.json").write_text("[]")
    broken = command("data", "check", "data/searchqa_split", "--json", cwd=tmp_path)
    assert (broken.code, broken.json["ok"]) == (1, False)
    assert "val/items.json is not what was built" in broken.json["problems"]
    assert command("data", "check", "mine.yaml", cwd=tmp_path).code == 1


def _documents(folder: Path) -> None:
    """Bulletins for the questions of the made download."""
    texts = folder / "data" / "officeqa_docs_official" / "transformed"
    texts.mkdir(parents=True)
    for name in "abc":
        (texts / f"{name}.txt").write_text(f"Text {name}.\n", encoding="utf-8")


@pytest.mark.parametrize(("name", "beside"), [("docvqa", lambda _: None), ("officeqa", _documents)])
def test_questions_about_documents_go_from_a_download_to_a_run(
    tmp_path: Path, name: str, beside: Callable[[Path], None]
) -> None:
    """Built, checked as a folder and through a config, and tried by the simulated models, which know none of them."""
    source, ids = MADE[name](tmp_path)
    beside(tmp_path)
    out = f"data/{name}_split"
    done = command("data", "build", name, "--from", source, "--ids", ids, "--out", out, "--json", cwd=tmp_path)
    assert (done.code, done.json["counts"]) == (0, {"train": 3, "val": 1, "test": 2}), done.err
    assert any("this is another split" in note for note in done.json["notes"])
    assert command("data", "check", out, "--json", cwd=tmp_path).json["problems"] == []
    (tmp_path / "mine.yaml").write_text(
        f"_base_: {name}\nmodel: {{backend: simulated, target: a, optimizer: b}}\ntrain: {{num_epochs: 1}}\n"
    )
    assert command("data", "check", "mine.yaml", cwd=tmp_path).code == 0
    run = command("run", "mine.yaml", "--run", "one", "--json", cwd=tmp_path)
    assert (run.code, run.json["status"], run.json["test_best"]["measured"]) == (0, "completed", 2), run.err
    assert command("replay", "one", "--check", cwd=tmp_path).code == 0


def _replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(downloads: Path) -> None:
        file = downloads / name
        assert old in file.read_text(encoding="utf-8")
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    return change


def _twice(name: str) -> Callable[[Path], None]:
    def change(downloads: Path) -> None:
        lines = (downloads / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (downloads / name).write_text("".join([*lines, lines[-1]]), encoding="utf-8")

    return change


BAD: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "no page": ("docvqa", lambda folder: (folder / "png" / "page3.png").unlink(), "no image page3.png in"),
    "no picture": (
        "docvqa",
        lambda folder: (folder / "png" / "page3.png").write_bytes(b"GIF89a") and None,
        "its image is neither PNG nor JPEG",
    ),
    "no table": ("docvqa", lambda folder: (folder / "validation.csv").unlink(), "no "),
    "no list": ("docvqa", _replaced("validation.csv", "['1,000', ", "[1,000, "), "is no list of texts in quotes"),
    "no question": ("officeqa", _replaced("officeqa_full.csv", "UID0002,", "UID9999,"), "UID0002"),
    "no answer": ("officeqa", _replaced("officeqa_full.csv", "uid,question,answer", "uid,question,reply"), "answer"),
    "one twice": ("officeqa", _twice("officeqa_full.csv"), "UID0005"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_download_that_is_not_whole_builds_nothing(tmp_path: Path, case: str) -> None:
    """One sentence that names it, and no folder."""
    name, spoil, said = BAD[case]
    source, ids = MADE[name](tmp_path)
    spoil(source)
    done = command("data", "build", name, "--from", source, "--ids", ids, "--out", "out", cwd=tmp_path)
    assert (done.code, done.out) == (2, ""), done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()
