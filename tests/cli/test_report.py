"""`report`: where the page goes, what it never replaces, and its numbers for programs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.event_runs import forge
from support.in_process import Cli
from support.pages import Page, problems_of
from support.tamper import cut_off

from skillopt_es.cli.main import main


@pytest.fixture
def run(demo_run: Path, tmp_path: Path) -> Path:
    """A copy of the demo's run, in a directory of runs."""
    shutil.copytree(demo_run, tmp_path / "runs" / "demo")
    return tmp_path / "runs" / "demo"


def test_the_page_goes_into_the_runs_folder(cli: Cli, run: Path) -> None:
    """The command says where it is; a second time replaces it, and the run is as it was."""
    before = (run / "log.db").read_bytes()
    done = cli("report", "--dir", run.parent)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{run / 'report.html'} (")
    first = (run / "report.html").read_bytes()
    assert problems_of(Page(first.decode())) == []
    assert cli("report", run).code == 0
    assert (run / "report.html").read_bytes() == first
    assert (run / "log.db").read_bytes() == before
    assert cli("verify", run).code == 0


def test_a_file_of_somebody_elses_is_not_replaced(cli: Cli, run: Path, tmp_path: Path) -> None:
    """But with --force; nor is a folder."""
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    done = cli("report", run, "--out", mine)
    assert done.code == 2
    assert f"{mine} exists already" in done.err
    assert "--force" in done.err
    assert mine.read_text() == "<p>mine</p>"
    assert cli("report", run, "--out", mine, "--force").code == 0
    assert mine.read_text().startswith("<!doctype html>")
    assert cli("report", run, "--out", tmp_path).code == 2


def test_the_page_can_go_to_standard_output(
    run: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Byte for byte what the file has, and no file is written."""
    for words in (("--out", "-"), ("--out", str(tmp_path / "page.html"))):
        with pytest.raises(SystemExit):
            main(["report", str(run), *words])
    out = capsysbinary.readouterr().out
    assert out.startswith((tmp_path / "page.html").read_bytes())
    assert not (run / "report.html").exists()


def test_programs_get_the_numbers(cli: Cli, run: Path) -> None:
    """Scores with items, grid step, interval and draws; differences with what they are worth; and no file."""
    document = cli("report", run, "--json").json
    assert not (run / "report.html").exists()
    assert (document["run"], document["status"], document["problems"]) == ("demo", "completed", [])
    first = document["scores"][0]
    assert (first["split"], first["names"], first["items"], first["grid"], first["repeats"]) == (
        "test", ["initial"], 40, 0.025, [1, 1]
    )  # fmt: skip
    low, high = first["interval"]
    assert low < first["hard"] < high
    [test, validation] = document["differences"]
    assert (test["split"], test["claim"], test["within_noise"]) == ("test", "more", False)
    assert (test["types_that_could_turn"], validation["split"]) == (10, "validation")
    assert len(test["won"]) - len(test["lost"]) == round(40 * test["change"])
    assert test["probability"] < test["probability_by_type"] < 0.05
    assert (validation["probability"], validation["claim"], validation["within_noise"]) == (
        None,
        None,
        None,
    )  # these items chose it
    assert [each["interval"] is None for each in document["scores"]] == [False, False, False, True]
    accepted = document["accepted"]
    assert [row["epoch"] for row in accepted if row["step"] is None] == [2]
    assert {row["claim"] for row in accepted} == {"noise", "one_or_two_types"}
    assert all(row["within_noise"] == (row["probability"] > 0.05) for row in accepted)
    noise = sum(row["within_noise"] for row in accepted)
    assert f"Of 7 accepted texts, {noise} won by no more than noise (" in "".join(document["said"])
    assert len(document["steps"]) == 12
    assert sum(stage["calls"] for stage in document["by_stage"].values()) == document["usage"]["calls"]
    assert document["seconds"]["total"] >= sum(document["seconds"]["by_stage"].values()) > 0
    best = document["lineage"]["nodes"][-2]["skill"]
    assert len(document["items"]["validation"][best]) == 40


def test_a_damaged_run_has_a_page_and_an_exit_code(cli: Cli, run: Path) -> None:
    """What is wrong is said on both."""
    forge(run, "update events set data = '{}' where seq = 500")
    done = cli("report", run)
    assert done.code == 1
    assert "event 500" in done.err
    assert "event 500" in Page((run / "report.html").read_text(encoding="utf-8")).text
    document = cli("report", run, "--json").json
    assert (document["read"], len(document["problems"])) == (499, 1)


@pytest.mark.parametrize(
    "change",
    [
        "update calls set input_tokens = input_tokens + 1 where n = 3",
        "update calls set response = (select response from calls where n = 4) where n = 3",
        "update forms set model = 'another' where id = 1",
    ],
)
def test_a_changed_call_form_or_response_has_an_exit_code_too(cli: Cli, run: Path, change: str) -> None:
    """Its events are whole: the page says what is wrong, and so does the terminal."""
    forge(run, change)
    done = cli("report", run)
    assert done.code == 1
    assert "calls and tokens cannot be read: call" in done.err
    assert "`skillopt-es verify demo` says what was changed" in done.err
    assert "was changed after it was recorded" in Page((run / "report.html").read_text(encoding="utf-8")).text
    as_json = cli("report", run, "--json")
    assert (as_json.code, len(as_json.json["problems"])) == (1, 1)


def test_a_runs_own_files_are_not_replaced(cli: Cli, run: Path, tmp_path: Path) -> None:
    """By no command and no force: its log is the run."""
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and "-" not in path.name}
    for words in (
        ("report", run, "--out", run / "log.db", "--force"),
        ("export", run, run / "log.db", "--force"),
        ("export", run, run / "head.json", "--format", "jsonl", "--force"),
        ("export", run, run / "log.db", "--format", "sqlite", "--force"),
        ("freeze", run, "--out", run / "log.db", "--force"),
        ("init", run / "best", "--force"),
        ("harvest", "scan", "--home", tmp_path, "--out", run / "logs.jsonl"),
    ):
        done = cli(*words)
        assert (done.code, done.out) == (2, ""), (words, done)
        assert "belongs to the run demo" in done.err, (words, done.err)
    after = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and "-" not in path.name}
    assert after == before


def test_a_run_that_has_not_begun_has_a_page(cli: Cli, demo_run: Path, tmp_path: Path) -> None:
    """There is little to say, and it is said."""
    folder = cut_off(demo_run, tmp_path / "new", 0)
    done = cli("report", folder)
    assert (done.code, done.err) == (0, "")
    assert problems_of(Page((folder / "report.html").read_text(encoding="utf-8"))) == []


def test_bad_words_are_told(cli: Cli, run: Path, tmp_path: Path) -> None:
    """No such run; a place that cannot be written."""
    assert cli("report", "nope", "--dir", run.parent).code == 2
    (tmp_path / "file").write_text("")
    done = cli("report", run, "--out", tmp_path / "file" / "page.html")
    assert done.code == 2
    assert "cannot be written" in done.err


@pytest.mark.slow
def test_forks_and_imports_say_what_they_are(cli: Cli, run: Path, tmp_path: Path) -> None:
    """A fork counts what it used itself; an imported run says what its results leave unknown."""
    runs = run.parent
    assert cli("fork", "demo", "--until", "step", 10, "--name", "fork", "--dir", runs).code == 0
    forked = cli("report", "fork", "--dir", runs, "--json").json
    assert (forked["usage"]["calls"], forked["usage"]["inherited"] > 0) == (0, True)
    assert cli("report", "fork", "--dir", runs).code == 0
    assert "A fork of demo after event" in Page((runs / "fork" / "report.html").read_text(encoding="utf-8")).text
    assert cli("export", run, "--format", "skillopt", tmp_path / "results").code == 0
    assert cli("import", tmp_path / "results", "--out", "there", "--dir", runs).code == 0
    document = cli("report", "there", "--dir", runs, "--json").json
    assert (document["usage"], document["seconds"]) == (None, None)
    assert cli("report", "there", "--dir", runs).code == 0
    seen = Page((runs / "there" / "report.html").read_text(encoding="utf-8"))
    assert problems_of(seen) == []
    assert "Imported from results of skillopt" in seen.text


def test_an_evaluation_has_a_page_of_its_own_kind(cli: Cli, run: Path, tmp_path: Path) -> None:
    """One text and its score on the split it was tried on."""
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert cli("eval", "--run", run, "--split", "val", "--dir", tmp_path / "evals").code == 0
    finally:
        os.chdir(here)
    [folder] = [path.parent for path in (tmp_path / "evals").glob("*/log.db")]
    document = json.loads(cli("report", folder, "--json").out)
    assert [(each["split"], each["names"], each["items"]) for each in document["scores"]] == [
        ("validation", ["skill"], 40)
    ]
    assert cli("report", folder).code == 0
    seen = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert problems_of(seen) == []
    assert "lineage" not in seen.ids
