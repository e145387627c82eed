"""Commands over merges that did not say what they used: their pages are short, and say it once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import Cli, called
from support.unsaid import unsaid_run

NOTE = "merges did not say which proposals they used; matched by wording."


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run of some 200 proposals."""
    return unsaid_run(tmp_path_factory.mktemp("unsaid"), 35, 3, 2).parent


@pytest.fixture
def cli(runs: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over that directory."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", runs)


def test_the_newest_are_shown_and_all_are_counted(cli: Cli) -> None:
    """For people and for programs; one note at the top."""
    page = cli("why-not", "unsaid")
    found = cli("why-not", "unsaid", "--json").json
    assert page.out.count(NOTE) == 1
    assert page.lines[1].endswith(NOTE)
    assert page.lines[0].startswith(f"unsaid: {found['total']} not taken: ")
    assert len(found["not_taken"]) == 100
    assert found["left_out"] == found["total"] - 100 == sum(found["counts"].values()) - 100 > 0
    assert f"the last 100 are shown; --last {found['total']} shows all" in page.out
    assert len(page.lines) < 500
    everything = cli("why-not", "unsaid", "--json", "--last", found["total"]).json
    assert everything["not_taken"][-100:] == found["not_taken"]
    assert everything["left_out"] == 0
    assert found["matched_by_wording"]


def test_one_step_one_item_and_a_few(cli: Cli) -> None:
    """The three ways to ask for less, together as well."""
    of_item = cli("why-not", "unsaid", "--item", "t1", "--json").json
    assert of_item["total"] > 0
    assert all("t1" in row["items"] for row in of_item["not_taken"])
    both = cli("why-not", "unsaid", "--item", "t1", "--step", 1, "--last", 2, "--json").json
    assert 0 < both["total"] < of_item["total"]
    assert {row["step"] for row in both["not_taken"]} == {1}
    assert len(both["not_taken"]) == min(2, both["total"])
    wrong = cli("why-not", "unsaid", "--item", "t999")
    assert wrong.code != 0
    assert "has no item t999" in wrong.err


def test_the_note_stands_once_wherever_wording_decides(cli: Cli) -> None:
    """And each of them says so to programs."""
    lines = cli("blame", "unsaid", "--json").json["lines"]
    written = [str(line["line"]) for line in lines if line["kind"] == "edit" and line["text"]]
    words = [word for number in written for word in ("--line", number)]
    pages = (
        cli("blame", "unsaid", *words),
        cli("explain", "unsaid", "step", 2),
        cli("retract", "unsaid", "--item", "t1"),
    )
    assert [page.out.count("matched by wording") for page in pages] == [1, 1, 1]
    assert all(line["matched_by_wording"] == (line["kind"] == "edit") for line in lines)
    assert cli("explain", "unsaid", "step", 2, "--json").json["matched_by_wording"]
    assert cli("retract", "unsaid", "--item", "t1", "--json").json["matched_by_wording"]


def test_a_line_names_those_who_said_it(cli: Cli) -> None:
    """Not all that the merge had seen."""
    lines = cli("blame", "unsaid", "--json").json["lines"]
    placed = [line for line in lines if line["kind"] == "edit" and not line["unplaced"]]
    assert placed
    assert all(1 <= len(line["patches"]) < 20 and line["behind_left_out"] == 0 for line in placed)


def test_the_page_of_a_step_of_many_analysts_is_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first proposals and the last merges are listed; of the others it says how many there are."""
    run = unsaid_run(tmp_path, 80, 4)
    page = called(capsys)("explain", "unsaid", "step", 1, "--dir", run.parent)
    assert len(page.lines) < 1_500
    assert page.out.count("    4 proposals, which --json lists") > 30
    final = page.out.partition("\nmerges\n")[2].partition("\nranking, event")[0].rpartition(": from ")[2]
    assert "which --json lists" not in final
    assert "append" in final


def test_what_programs_get_is_bounded(cli: Cli) -> None:
    """Some hundred thousand characters where there were tens of millions."""
    for words in (
        ("why-not", "unsaid"),
        ("blame", "unsaid"),
        ("explain", "unsaid", "step", 1),
        ("retract", "unsaid", "--item", "t1"),
    ):
        assert len(cli(*words, "--json").out) < 1_000_000
