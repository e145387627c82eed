"""`fork`, `compare` and `regate`: what they print, for people and for programs, and what they refuse."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.in_process import Cli, called

from skillopt_es.events.catalog import TextsErased
from skillopt_es.events.log import EventLog
from skillopt_es.events.writer import RunWriter
from skillopt_es.runs.durations import Moment, durations
from skillopt_es.sessions.accounts import minutes_of


@pytest.fixture
def runs(demo_run: Path, tmp_path: Path) -> Path:
    """A directory with a copy of the demo's run."""
    shutil.copytree(demo_run, tmp_path / "runs" / "demo")
    return tmp_path / "runs"


@pytest.fixture
def cli(runs: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over those runs."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", runs)


def test_a_fork_is_a_run_like_any_other(cli: Cli, runs: Path) -> None:
    """It is made, gone on with, checked and shown, and each command says whose fork it is."""
    made = cli("fork", "demo", "--until", "step", "10", "--set", "evaluation.gate_metric=soft", "--name", "soft")
    assert made.code == 0
    assert 'evaluation.gate_metric = "soft"' in made.out
    assert f"skillopt-es resume soft --dir {runs}" in made.out
    assert cli("status", "soft").out.splitlines()[1].startswith("forked      of demo after event")
    assert cli("resume", "soft", "--quiet").code == 0
    status = cli("status", "soft", "--json").json
    assert status["status"] == "completed"
    assert status["forked_from"]["run"] == "demo"
    assert (status["usage"]["calls"], status["usage"]["inherited"]) == (0, 938)
    assert "forked from demo" in cli("lineage", "soft").out
    assert [fork["parent"] for fork in cli("lineage", "soft", "--json").json["forks"]] == ["demo"]
    assert "a fork" in cli("verify", "soft").out
    assert cli("verify", "soft", "--json").json["parent"] == status["forked_from"]["run_id"]
    assert "check      ok" in cli("replay", "soft", "--check").out
    assert "RunForked" in cli("log", "soft").out
    assert "not counted" in cli("usage", "soft").out


def test_a_word_that_yaml_reads_as_false_stays_a_word(cli: Cli) -> None:
    """`off` is what was asked for, and what is recorded and shown."""
    words = ("--until", "step", "1", "--set", "evaluation.early_stop=off", "--set", "optimizer.ask_again=off")
    made = cli("fork", "demo", *words)
    assert 'evaluation.early_stop = "off", optimizer.ask_again = false' in made.out
    overrides = cli("fork", "demo", *words, "--json").json["overrides"]
    assert [each["value"] for each in overrides] == ["off", False]


def test_a_fork_needs_no_name(cli: Cli, runs: Path) -> None:
    """It gets its parent's and the moment's, and another number each time."""
    names = [cli("fork", "demo", "--until", "step", "1", "--json").json["run"] for _ in range(2)]
    assert names == ["demo-step-1", "demo-step-1-2"]
    assert cli("fork", str(runs / "demo"), "--until", "epoch", "1", "--json").json["run"] == "demo-epoch-1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nope"], "no run nope"),
        (["demo"], "complete"),
        (["demo", "--until", "step", "99"], "no step 99"),
        (["demo", "--until", "step", "1", "--name", "demo"], "already"),
        (["demo", "--until", "step", "1", "--name", "a b"], "letters, digits"),
        (["demo", "--until", "step", "1", "--set", "x"], "section.key=value"),
        (["demo", "--until", "step", "1", "--set", "train.batch_size=3"], "planned"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, words: list[str], says: str) -> None:
    """And exit code 2, with --json too."""
    done = cli("fork", *words)
    assert done.code in (1, 2)
    assert says in done.err.splitlines()[0]
    assert says in cli("fork", *words, "--json").json["error"]["message"]


@pytest.mark.parametrize(
    ("moment", "change", "instead"),
    [
        (("seq", "20"), "evaluation.use_gate=false", "`--until seq 1`"),
        (("seq", "100"), "evaluation.use_gate=false", "`--until seq 43`"),
        (("seq", "150"), "evaluation.use_gate=false", "`--until step 1`"),
        (("seq", "297"), "evaluation.use_gate=false", "`--until step 4`"),
        (("seq", "100"), "train.batch_size=3", "a new run"),
    ],
)
def test_a_change_that_comes_too_late_is_told_when_it_is_not(
    cli: Cli, moment: tuple[str, str], change: str, instead: str
) -> None:
    """The moment that is named is one that works."""
    refused = cli("fork", "demo", "--until", *moment, "--set", change)
    assert refused.code == 2
    hint = refused.err.splitlines()[1]
    assert instead in hint
    if "--until" in hint:
        words = hint.split("`")[1].split()
        assert cli("fork", "demo", *words, "--set", change).code == 0


def test_one_of_something_is_not_several(cli: Cli) -> None:
    """One step that was done is one step."""
    assert "begins      1 step done; " in cli("fork", "demo", "--until", "step", "1").out
    assert "begins      2 steps done; " in cli("fork", "demo", "--until", "step", "2").out


# --- compare -------------------------------------------------------------------------------------------------------


def test_runs_and_forks_stand_side_by_side(cli: Cli) -> None:
    """Each with its own scores and steps; what a fork used is its own."""
    cli("fork", "demo", "--until", "step", "2", "--set", "optimizer.learning_rate=1", "--name", "slow")
    cli("fork", "demo", "--until", "step", "2", "--set", "evaluation.gate_metric=soft", "--name", "soft")
    assert cli("resume", "slow", "--quiet").code == 0
    demo, slow, soft = cli("compare", "demo", "slow", "soft", "--json").json
    status = cli("status", "demo", "--json").json
    assert demo["usage"] == status["usage"]
    assert demo["best_value"] == status["best"]["value"] == demo["scores"]["best"]["hard"]
    steps = [line for line in status["lines"] if line["kind"] == "step"]
    assert demo["accepted"] + demo["rejected"] + demo["skipped"] == len(steps) == demo["step"] == 12
    assert demo["rejected"] == sum(line["verdict"] == "reject" for line in steps)
    assert demo["seconds"] > 0
    assert slow["changed"] == {"optimizer.learning_rate": 1}
    assert 0 < slow["usage"]["calls"] < demo["usage"]["calls"] == slow["usage"]["inherited"]
    assert (soft["step"], soft["usage"]["calls"], soft["seconds"], soft["scores"]["test_best"]) == (2, 0, 0.0, None)
    table = cli("compare", "demo", "slow", "soft").out
    assert table.splitlines()[0].split() == ["run", "demo", "slow", "soft"]
    assert "by different rules" in table
    assert "by different rules" not in cli("compare", "demo", "slow").out


def test_time_is_the_time_somebody_was_at_work() -> None:
    """Neither what was before a fork nor the pause before a writer came counts."""
    times = [datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in (0, 5, 6, 20, 23)]
    kinds = ["RunStarted", "RunPaused", "RunResumed", "SkillScored", "RunCompleted"]
    assert durations(map(Moment, kinds, times)).total == 5 + 14 + 3
    kinds[2] = "RunForked"
    assert durations(map(Moment, kinds, times)).total == 14 + 3


@pytest.mark.parametrize("kind", ["TextsErased", "EvidenceRetracted", "SealedTestOpened"])
def test_what_a_command_records_is_no_work(kind: str) -> None:
    """Neither the time before it nor that until a writer comes; in a fork and after a pause."""
    times = [datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in (0, 5, 25, 40, 43)]
    kinds = ["RunStarted", "RunPaused", kind, "RunResumed", "RunCompleted"]
    assert durations(map(Moment, kinds, times)).total == 5 + 3
    kinds[1] = "RunForked"
    assert durations(map(Moment, kinds, times)).total == 3


def test_an_erasure_in_an_idle_fork_takes_no_time(cli: Cli, runs: Path) -> None:
    """Neither in comparisons nor in the report's document."""
    made = datetime.now(UTC)
    assert cli("fork", "demo", "--until", "step", "4", "--name", "idle").code == 0
    with closing(RunWriter.open(runs / "idle", now=lambda: made + timedelta(hours=3))) as writer:
        gone = TextsErased(items=("i",), reason="asked", by="me", texts=(), events=())
        asyncio.run(writer.append([gone], expected=writer.log.head().seq))
    demo, idle = cli("compare", "demo", "idle", "--json").json
    assert idle["seconds"] == 0 < demo["seconds"]
    with EventLog.open(runs / "idle") as log:
        assert minutes_of(log) == 0


@pytest.mark.parametrize("word", ["nope", "an-evaluation"])
def test_only_training_runs_are_compared(cli: Cli, runs: Path, tmp_path: Path, word: str) -> None:
    """One sentence about the one that is none."""
    (tmp_path / "SKILL.md").write_text("nothing")
    cli("eval", "--skill", str(tmp_path / "SKILL.md"), "--run", "an-evaluation", "--split", "test")
    done = cli("compare", "demo", word)
    assert done.code == 2
    assert word in done.err.splitlines()[0]


# --- regate --------------------------------------------------------------------------------------------------------


def test_another_rule_is_told_in_two_zones(cli: Cli) -> None:
    """What is certain first, what is an estimate after it, and where to fork to know."""
    done = cli("regate", "demo", "--set", "evaluation.use_gate=false")
    assert done.code == 0
    exact, estimate = done.out.split("ESTIMATE")
    assert exact.startswith("EXACT")
    assert exact.rstrip().splitlines()[-1].startswith("*  step 3")
    assert "step 4" in estimate
    assert "skillopt-es fork demo --until step 2" in estimate
    found = cli("regate", "demo", "--set", "evaluation.use_gate=false", "--json").json
    assert [row["number"] for row in found["exact"]] == [1, 2, 3]
    assert found["exact"][-1]["seq"] == found["first_change"]
    assert [row["changed"] for row in found["exact"]] == [False, False, True]
    assert {row["zone"] for row in found["estimate"]} == {"estimate"}


def test_the_recorded_rule_is_as_recorded(cli: Cli) -> None:
    """Without --set, and with what is set already."""
    for words in ((), ("--set", "evaluation.gate_metric=hard")):
        done = cli("regate", "demo", *words)
        assert "all 13 are as recorded" in done.out
        assert "ESTIMATE" not in done.out
    assert cli("regate", "demo", "--json").json["first_change"] is None


def test_a_run_without_a_verdict_says_so(cli: Cli) -> None:
    """Rather than print an empty table."""
    cli("fork", "demo", "--until", "seq", "1", "--name", "young")
    assert cli("regate", "young").out == "young has judged no candidate yet\n"


@pytest.mark.parametrize("setting", ["train.seed=1", "evaluation.gate_metric=best", "x"])
def test_what_is_no_rule_is_refused(cli: Cli, setting: str) -> None:
    """In one sentence."""
    done = cli("regate", "demo", "--set", setting)
    assert done.code == 2
    assert done.err.startswith("error: --set")
