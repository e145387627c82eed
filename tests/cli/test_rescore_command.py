"""`rescore`: what it prints, for people and for programs, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.event_runs import forge
from support.in_process import Cli, called
from support.make_golden import GOLDEN
from support.params import parametrized
from support.tamper import seqs_of

from skillopt_es.events.catalog import Event


@pytest.fixture
def cli(demo_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over a copy of the demo's run."""
    shutil.copytree(demo_run, tmp_path / "runs" / "demo")
    run = called(capsys)
    return lambda *words: run(*words, "--dir", tmp_path / "runs")


def test_the_recorded_grader_is_said_to_change_nothing(cli: Cli) -> None:
    """No grade, no score, no verdict."""
    done = cli("rescore", "demo")
    assert done.code == 0
    assert "880 answers graded again, 0 with another grade" in done.out
    assert "no score of an evaluation changes" in done.out
    assert "no verdict changes: all 13 are as recorded" in done.out


def test_another_grader_is_told_of_in_grades_scores_and_verdicts(cli: Cli) -> None:
    """`contains` takes an answer that only quotes the right one."""
    done = cli("rescore", "demo", "--set", "env.grader=contains")
    assert "e1/s3/gate/name-06: fail 0/0.00 -> pass 1/1.00" in done.out
    assert "e1/s3/gate          a38e795e  0.0000          0.5500" in done.out
    assert done.out.index("EXACT") < done.out.index("ESTIMATE")
    assert "*  step 3                   0.4750     0.5500  reject           accept new best" in done.out
    found = cli("rescore", "demo", "--set", "env.grader=contains", "--json").json
    assert found["graded"] == 880
    assert len(found["changed"]) == 26
    assert found["changed"][0]["recorded"] == {"outcome": "measured", "hard": 0.0, "soft": 0.0}
    assert found["first_grade_that_analysts_read"] == 53
    assert found["exact"] == []
    assert [each["number"] for each in found["estimate"] if each["changed"]] == [3]
    assert {each["place"] for each in found["evaluations"] if each["changed"]} >= {"e1/s3/gate", "final/test/initial"}


@pytest.mark.parametrize("algorithm", ["search", "skills"])
def test_versions_that_the_log_does_not_hold_are_not_graded_again(algorithm: str, cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / f"0.1.0-{algorithm}" / "run", tmp_path / "runs" / algorithm)
    done = cli("rescore", algorithm)
    assert done.code == 2
    assert "that its log does not hold whole: their answers cannot be graded again" in done.err


def test_a_missing_tail_is_told(cli: Cli, tmp_path: Path) -> None:
    """After what can be graded, with the exit code of a damaged log; to programs, too."""
    log = tmp_path / "runs" / "demo"
    last = seqs_of(log, Event)[-1]
    forge(log, f"delete from events where seq > {last - 60}")
    done = cli("rescore", "demo")
    assert (done.code, " answers graded again" in done.out) == (1, True)
    assert f"the log ends at event {last - 60}" in done.err
    assert cli("rescore", "demo", "--json").json["problem"] in done.err


@parametrized(
    ("words", "says"),
    [
        (["nope"], "no run nope"),
        (["demo", "--set", "evaluation.gate_metric=soft"], "`skillopt-es regate`"),
        (["demo", "--set", "env.name=searchqa"], "only how answers are graded"),
        (["demo", "--set", "env.gradr=f1"], "did you mean env.grader"),
        (["demo", "--set", "env.grader=nope"], "env.grader"),
        (["demo", "--set", "env.system=other"], "asked something else"),
        (["demo", "--set", "env.data_path=gone.jsonl"], "gone.jsonl"),
        (["demo", "--set", "x"], "section.key=value"),
    ],
    by_default=4,
)
def test_bad_input_is_one_sentence(cli: Cli, words: list[str], says: str) -> None:
    """And exit code 2, with --json too."""
    done = cli("rescore", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert cli("rescore", *words, "--json").json["error"]["exit_code"] == 2


def test_mended_data_are_another_grader(cli: Cli, tmp_path: Path) -> None:
    """A wrong label is one line of a file."""
    from skillopt_es.config import demo_config

    tasks = demo_config().with_name("tasks.jsonl").read_text()
    line = next(line for line in tasks.splitlines() if '"name-06"' in line)
    wanted = line.replace('"expected": "', '"expected": "not ')
    assert wanted != line
    (tmp_path / "mended.jsonl").write_text(tasks.replace(line, wanted))
    found = cli("rescore", "demo", "--set", f"env.data_path={tmp_path / 'mended.jsonl'}", "--json").json
    assert {each["item"] for each in found["changed"]} == {"name-06"}
    assert found["first_grade_that_analysts_read"] is None
    assert found["exact"]


@pytest.mark.slow
def test_an_imported_run_has_no_answers(cli: Cli, tmp_path: Path) -> None:
    """Nor can it be forked without an item, nor be erased from."""
    assert cli("export", "demo", str(tmp_path / "folder"), "--format", "skillopt").code == 0
    assert cli("import", str(tmp_path / "folder"), "--out", "imported").code == 0
    run = ("imported", "--item", "date-03")
    assert "results: 3" in cli("retract", *run).out
    for words in (
        ("rescore", "imported"),
        ("retract", *run, "--apply", "--reason", "r"),
        ("retract", *run, "--erase", "--reason", "r"),
    ):
        done = cli(*words)
        assert (done.code, done.out) == (2, "")
        assert "was imported" in done.err
