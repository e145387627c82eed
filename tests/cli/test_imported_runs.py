"""What commands say of a run that was exported as the original's folder and imported again: no unknown as a nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.exchange import exported, imported
from support.in_process import Cli, called


@pytest.fixture(scope="module")
def runs(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the demo's run as `imp`."""
    folder = tmp_path_factory.mktemp("imported")
    imported(exported(demo_run, folder / "results"), folder / "runs" / "imp")
    return folder / "runs"


@pytest.fixture
def cli(runs: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over that directory."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", runs)


def test_nothing_is_merged_away_that_the_best_skill_says(cli: Cli) -> None:
    """Edits that a merge says word for word went into it, as is assumed and said."""
    rows = cli("why-not", "imp", "--json").json["not_taken"]
    assert {row["reason"] for row in rows} == {"ranked_out", "rejected"}
    merged = [row for row in rows if len(row["path"]) > 1]
    assert merged
    assert all(row["assumed"] for row in merged)
    assert "merged into e1/s1/merge/failure-1-0#3 (assumed: " in cli("why-not", "imp").out


def test_origins_are_given_as_assumed(cli: Cli) -> None:
    """No empty `from`."""
    lines = [line.strip() for line in cli("explain", "imp", "step", "1").lines]
    assert "from e1/s1/b0/failure-0#1, as the merge left unsaid" in lines
    assert "from" not in lines


def test_what_analysts_saw_is_unknown(cli: Cli) -> None:
    """It is not in a result folder: neither `explain` nor `retract` says that nobody saw an item."""
    page = cli("explain", "imp", "--item", "date-03")
    assert "not recorded: which analysts of step 1, 8, 11 saw it" in page.out
    assert "no analyst saw it" not in page.out
    assert cli("explain", "imp", "--item", "date-03", "--json").json["uses_unknown_in_steps"] == [1, 8, 11]
    seq = cli("explain", "imp", "--item", "date-03", "--json").json["results"][0]["seq"]
    assert "not recorded: which analysts of step 1 saw it" in cli("explain", "imp", seq).out
    listed = cli("retract", "imp", "--item", "date-03")
    assert "unknown and not listed: which analysts of step 1, 8, 11 saw it" in listed.out
    assert "lines of the best skill: 0 known" in listed.out
    assert cli("retract", "imp", "--item", "date-03", "--json").json["unknown_steps"] == [1, 8, 11]


def test_an_item_that_only_gates_met_is_known_to_have_gone_nowhere(cli: Cli) -> None:
    """Analysts see training items alone."""
    item = cli("explain", "imp", "step", "1", "--json").json["events"]
    won = next(event["data"]["won"] for event in item if event["type"] == "CandidateGated")[0]
    assert cli("retract", "imp", "--item", won, "--json").json["unknown_steps"] == []
    assert "no analyst saw it" in cli("explain", "imp", "--item", won).out
