"""`eval` on sealed test items: refused, or a look that the run's log shows for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.in_process import Cli
from support.logs import events_of

from skillopt_es.events.catalog import RunStarted, SealedTestOpened
from skillopt_es.events.lock import RunLock

QUICK = ("--set", "train.num_epochs=1", "--set", "env.limit=6", "--set", "optimizer.use_slow_update=false")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `runs/sealed`, a complete sealed run of the demo."""
    from contextlib import chdir

    from skillopt_es.cli.main import main

    folder = tmp_path_factory.mktemp("sealed")
    with chdir(folder), pytest.raises(SystemExit) as ended:
        main(["run", "--run", "sealed", "--set", "env.seal_test=true", *QUICK])
    assert ended.value.code == 0
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    shutil.copytree(trained / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def looks(run: Path) -> list[SealedTestOpened]:
    """The looks that a log shows."""
    return [event for event in events_of(run) if isinstance(event, SealedTestOpened)]


@pytest.mark.parametrize("split", ["test", "all", "valid_unseen"])
def test_a_second_look_is_refused(folder: Path, cli: Cli, split: str) -> None:
    """With how often they were looked at, and what to type; nothing is recorded."""
    done = cli("eval", "--run", "sealed", "--split", split)
    assert done.code == 2
    assert "the test items of sealed are sealed: they were looked at once" in done.err
    assert "--open-test" in done.err
    assert len(looks(folder / "runs/sealed")) == 1
    assert not (folder / "evals").exists()


@pytest.mark.parametrize("words", [("--run", "sealed"), ("--set", "env.seal_test=true", "--set", "env.limit=6")])
def test_what_is_sealed_is_left_out_unless_somebody_asks(folder: Path, cli: Cli, words: tuple[str, ...]) -> None:
    """Train and val are scored, and one line says what is missing and how to look at it; with --open-test, all."""
    done = cli("eval", *words)
    assert done.code == 0, done.err
    [line] = [line for line in done.lines if "sealed (" in line]
    assert line.startswith("left out  test: sealed (env.seal_test); `--open-test` looks")
    assert [line.split(":")[0] for line in done.lines if ": hard " in line] == ["train", "val", "train and val"]
    told = cli("eval", *words, "--json").json
    assert ([split["split"] for split in told["splits"]], told["left_out"]) == (["train", "val"], ["test"])
    assert told["look"] is None
    assert len(looks(folder / "runs/sealed")) == 1
    opened = cli("eval", *words, "--open-test", "--json").json
    assert ([split["split"] for split in opened["splits"]], opened["left_out"]) == (["train", "val", "test"], [])


def test_sealed_items_are_left_out_wherever_they_are(folder: Path, cli: Cli) -> None:
    """Drawn anew, they may be in every split: then there is nothing to score."""
    drawn = ("--set", "env.split_mode=ratio", "--set", "env.split_ratio=1:1:1", "--set", "env.limit=0")
    done = cli("eval", "--run", "sealed", *drawn)
    assert done.code == 2
    assert "every split holds sealed items" in done.err


def test_whoever_opens_it_is_recorded_for_ever(folder: Path, cli: Cli) -> None:
    """In the run and in the evaluation; the same evaluation again is the same look."""
    words = ("eval", "--run", "sealed", "--which", "initial", "--split", "test", "--open-test", "--json")
    done = cli(*words)
    assert (done.code, done.json["look"]) == (0, 2)
    [_, look] = looks(folder / "runs/sealed")
    assert (look.look, look.by, look.evaluation) == (2, "eval", Path(done.json["folder"]).name)
    assert looks(folder / done.json["folder"]) == [look]
    again = cli(*words[:-2], "--json")
    assert (again.code, again.json["look"]) == (0, 2)
    assert cli("eval", "--run", "sealed", "--split", "test", "--open-test", "--json").json["look"] == 3
    for run in (folder / "runs/sealed", folder / done.json["folder"]):
        assert cli("replay", str(run), "--check").code == 0
        assert cli("verify", str(run)).code == 0


def test_status_shows_the_looks(folder: Path, cli: Cli) -> None:
    """For people and for programs."""
    assert "seal        the test items were looked at once: final evaluation" in cli("status", "sealed").lines
    cli("eval", "--run", "sealed", "--split", "test", "--open-test")
    told = cli("status", "sealed", "--json").json["test_looks"]
    assert (told["sealed"], told["count"], [look["by"] for look in told["opened"]]) == (True, 2, ["final", "eval"])
    assert "looked at 2 times: final evaluation, eval of skill" in cli("status", "sealed").out
    assert "look 2 at the sealed test split, by eval of skill" in cli("log", "sealed", "--type", "SealedTestOpened").out


def test_the_report_shows_the_looks(folder: Path, cli: Cli) -> None:
    """Among what is said of the scores."""
    assert cli("report", "sealed", "--out", folder / "page.html").code == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Seal of the test split: the test items were looked at once: final evaluation." in page


def test_a_setting_neither_lifts_nor_goes_round_the_seal(folder: Path, cli: Cli) -> None:
    """The run keeps what it recorded; drawn anew, its test items are still its test items."""
    done = cli("eval", "--run", "sealed", "--split", "test", "--set", "env.seal_test=false")
    assert (done.code, "was sealed when it started" in done.err) == (2, True)
    assert cli("eval", "--run", "sealed", "--split", "val", "--set", "env.limit=2").code == 0
    started = events_of(folder / "runs/sealed")[0]
    assert isinstance(started, RunStarted)
    drawn = ("--set", "env.split_mode=ratio", "--set", "env.split_ratio=1:1:1", "--set", "env.limit=0")
    assert cli("eval", "--run", "sealed", "--split", "train", *drawn).code == 2


def test_a_run_that_is_being_written_is_not_opened(folder: Path, cli: Cli) -> None:
    """The look has to stand in its log before anything is tried."""
    lock = RunLock(folder / "runs/sealed", start="now")
    try:
        done = cli("eval", "--run", "sealed", "--split", "test", "--open-test")
    finally:
        lock.release()
    assert done.code == 1
    assert not (folder / "evals").exists()


def test_a_sealed_config_without_a_run(folder: Path, cli: Cli) -> None:
    """The evaluation's own log then holds the look."""
    sealed = ("--set", "env.seal_test=true", "--set", "env.limit=3")
    refused = cli("eval", "--split", "test", *sealed)
    assert (refused.code, "no run is named that could record the look" in refused.err) == (2, True)
    done = cli("eval", "--split", "test", "--open-test", *sealed, "--json")
    assert (done.code, done.json["look"]) == (0, 1)
    assert cli("eval", "--split", "test", *sealed, "--json").json["look"] == 1
    assert cli("replay", done.json["folder"], "--check").code == 0
