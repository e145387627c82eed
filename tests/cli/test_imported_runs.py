"""What commands say of a run that was exported as the original's folder and imported again: no unknown as a nothing."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from support.exchange import exported, imported
from support.in_process import Cli, called

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import GateAction
from skillopt_es.exports.metrics import numbers_of
from skillopt_es.projections.lines import outcome_of


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


@pytest.mark.slow
def test_nothing_is_merged_away_that_the_best_skill_says(cli: Cli) -> None:
    """Edits that a merge says word for word went into it, as is assumed and said."""
    rows = cli("why-not", "imp", "--json").json["not_taken"]
    assert {row["reason"] for row in rows} == {"ranked_out", "rejected"}
    merged = [row for row in rows if len(row["path"]) > 1]
    assert merged
    assert all(row["assumed"] for row in merged)
    page = cli("why-not", "imp")
    assert page.lines[1] == "5 merges did not say which proposals they used; matched by wording."
    assert "merged into e1/s1/merge/failure-1-0#3" in page.out


def test_origins_are_given_as_assumed(cli: Cli) -> None:
    """No empty `from`, and one note for all of them."""
    lines = [line.strip() for line in cli("explain", "imp", "step", "1").lines]
    assert lines[1] == "The merge did not say which proposals it used; matched by wording."
    assert "from e1/s1/b0/failure-0#1" in lines
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
    won = next(event["data"]["verdict"]["won"] for event in item if event["type"] == "CandidateGated")[0]
    assert cli("retract", "imp", "--item", won, "--json").json["unknown_steps"] == []
    assert "no analyst saw it" in cli("explain", "imp", "--item", won).out


def test_it_is_compared_by_what_is_known(cli: Cli, demo_run: Path) -> None:
    """Although its settings are another trainer's: the same scores, verdicts and counts as the run it came from."""
    done = cli("compare", "imp", demo_run, "--json")
    assert (done.code, done.err) == (0, "")
    ours, theirs = done.json[1], done.json[0]
    for key in ("steps", "accepted", "rejected", "skipped", "unknown", "gate_metric", "best_value"):
        assert theirs[key] == ours[key]
    for key in ("calls", "input_tokens", "output_tokens"):
        assert theirs["usage"][key] == ours["usage"][key]
    assert "938" in next(line for line in cli("compare", "imp").lines if line.startswith("calls"))


def test_trackers_are_told_the_usage_that_is_known(runs: Path, cli: Cli) -> None:
    """The counts of the folder, and no zero for what it does not count."""
    with EventLog.open(runs / "imp") as log:
        points = numbers_of(list(log.read()), Journal(log.reader).read()).points
    total = cli("usage", "imp", "--json").json["total"]
    assert {point.key: point.value for point in points if point.key.startswith("total/")} == {
        f"total/{key}": value for key, value in total.items()
    }
    assert sum(point.key == "usage/calls" for point in points) == 12
    assert not any(point.key.endswith(("cost", "failed_calls")) for point in points)


def test_an_evaluation_is_no_run_of_no_steps(
    tmp_path: Path, demo_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is finished once it is scored, its items keep the names of their splits, and it has no steps."""
    run = called(capsys)
    made = run("eval", "--run", demo_run, "--split", "val", "--limit", "2", "--dir", tmp_path / "evals", "--json")
    assert made.code == 0
    [folder] = (tmp_path / "evals").iterdir()
    for what in (("step", "1"), ("epoch", "1")):
        said = run("explain", folder, *what)
        assert (said.code, said.out) == (2, "")
        assert "is an evaluation: it has no steps and no epochs" in said.err
    with EventLog.open(folder) as log:
        records = list(log.read())
        assert numbers_of(records, Journal(log.reader).read()).status == "scored"
    item = next(each.event.item for each in records if isinstance(each.event, RolloutCompleted))
    derived = run("retract", folder, "--item", item, "--json").json["derived"]
    assert [each["fate"] for each in derived if each["kind"] == "result"] == ["validation"]


def test_a_verdict_comes_to_one_of_five_things() -> None:
    """Every action of a gate, an unknown end, and else a reason to skip."""
    verdicts = (*get_args(GateAction), "unknown", "nothing_to_fix")
    assert [outcome_of(each) for each in verdicts] == [
        "accepted", "accepted", "rejected", "indecisive", "accepted", "unknown", "skipped",
    ]  # fmt: skip
