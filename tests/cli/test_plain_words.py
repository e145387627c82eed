"""What is misspelt is met with the nearest name, what cannot be done with what can, and words explain themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import Cli
from support.on_terminal import CODES, on_terminal

from skillopt_es.engine.budget import used_words
from skillopt_es.events.catalog import StepSkipped
from skillopt_es.ports import CallFailed
from skillopt_es.presenting.event_lines import in_words
from skillopt_es.sessions.doctor import said_of


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("stauts", "there is no command stauts: did you mean `status`?"),
        ("resmue", "there is no command resmue: did you mean `resume`"),
        ("xyzzy", "there is no command xyzzy: `skillopt-es --help` lists them"),
    ],
)
def test_a_misspelt_command_is_met_with_the_nearest(typed: str, said: str, cli: Cli) -> None:
    """As a misspelt key is."""
    done = cli(typed)
    assert (done.code, said in done.err) == (2, True)


def test_a_misspelt_run_is_met_with_the_nearest(cli: Cli, demo_run: Path) -> None:
    """Also where no part of the name is right."""
    assert "did you mean demo?" in cli("status", "dmeo", "--dir", demo_run.parent).err


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has reached its budget before its first step was done."""
    return tmp_path_factory.mktemp("paused")


def test_what_resume_does_not_change_has_another_way(cli: Cli, paused: Path) -> None:
    """A fork where the steps so far can stand, else a new run; a misspelt key is told as such."""
    where = ("--dir", paused)
    assert cli("run", "--run", "one", "--max-calls", 60, "--quiet", *where).code == 3
    for setting, said in (
        ("evaluation.gate_metric=soft", f"`skillopt-es fork one --set evaluation.gate_metric=… --dir {paused}`"),
        ("train.num_epochs=4", f"`skillopt-es continue one --set train.num_epochs=… --dir {paused}` trains on"),
        ("train.batch_size=4", f"`skillopt-es export one SKILL.md --dir {paused}`, then `skillopt-es run CONFIG"),
        ("env.limit=4", "--set env.skill_init=SKILL.md --set env.limit=…`"),
        ("train.num_epoch=4", "unknown key\n  did you mean train.num_epochs?"),
        ("model.targe=x", "unknown key\n  did you mean model.target?"),
    ):
        done = cli("resume", "one", "--set", setting, *where)
        assert (done.code, said in done.err) == (2, True), done.err
    less = cli("resume", "one", "--max-calls", 5, *where)
    assert less.code == 3
    assert less.err.startswith("error: budget.max_calls is 5, with 60 requests sent so far\n")


def test_a_run_without_a_score_says_so_in_words(cli: Cli, tmp_path: Path) -> None:
    """Not in dashes."""
    ended = cli("run", "--run", "none", "--max-calls", 5, "--quiet", "--dir", tmp_path)
    assert "validation  not measured yet" in ended.lines
    assert "validation  not measured yet" in cli("status", "none", "--dir", tmp_path).lines


@pytest.mark.parametrize("words", [("status",), ("lineage",), ("log",), ("explain", "epoch", "1")])
def test_the_place_for_guidance_is_called_so(words: tuple[str, ...], cli: Cli, demo_run: Path) -> None:
    """The record calls it a placeholder, of which no page says what it is for."""
    shown = cli(words[0], demo_run, *words[1:]).out
    assert "place for guidance" in shown
    assert "placeholder" not in shown


def test_one_analyst_is_one() -> None:
    """Whatever a log says."""
    detail = "1 analysts proposed nothing"
    skipped = StepSkipped(step=1, reason="nothing_to_fix", detail=detail)
    assert in_words(skipped) == "step 1: nothing to fix; 1 analyst proposed nothing"
    assert "11 analysts" in in_words(StepSkipped(step=1, reason="nothing_to_fix", detail=f"1{detail}"))


def test_an_estimate_names_its_stages_in_words(cli: Cli, tmp_path: Path) -> None:
    """And what its numbers rest on."""
    shown = cli("estimate", "--set", "evaluation.fresh_score=true", "--dir", tmp_path).out
    stages = {line.split("  ")[0] for line in shown.splitlines()}
    assert stages >= {"fresh score", "gate of guidance", "slow update", "test items"}
    assert not {"told", "slow_gate"} & stages
    where = ("--dir", tmp_path)
    assert cli("run", "--run", "one", "--set", "train.num_epochs=1", "--quiet", *where).code == 0
    after = cli("estimate", "--set", "train.num_epochs=1", *where).out
    assert "calls in proportion to 1 earlier run; tokens measured in 1 earlier run" in after
    assert "a unit" not in after


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (
            200,
            "HTTP 200, but the body is not JSON: <html>",
            "no usable reply: HTTP 200, but the body is not JSON: <html>",
        ),
        (429, "HTTP 429: slow down", "rate limit: HTTP 429: slow down"),
        (429, "HTTP 429", "rate limit: HTTP 429"),
        (None, "ConnectError: refused", "no usable reply: ConnectError: refused"),
    ],
)
def test_a_failure_is_told_in_one_sentence(status: int | None, message: str, said: str) -> None:
    """Its status is said once, by the message itself, of which nothing is cut out."""
    kind = "rate_limit" if status == 429 else "transport"
    assert said_of(CallFailed(kind, message, status=status)) == said


@pytest.mark.parametrize(
    ("name", "shown", "words"),
    [
        ("calls", "20", "20 requests sent"),
        ("calls", "1", "1 request sent"),
        ("tokens", "4,800", "4,800 tokens used"),
        ("cost", "USD 0.0098", "USD 0.0098 spent"),
        ("minutes", "2.5000", "2.5000 minutes taken"),
    ],
)
def test_what_a_budget_has_come_to_is_said_in_its_own_words(name: str, shown: str, words: str) -> None:
    """Calls are made, money is spent."""
    assert used_words(name, shown) == words


@pytest.mark.slow
@pytest.mark.usefixtures("few_trials")
def test_the_legend_of_a_calibration_fits_a_terminal_and_says_what_it_asked(demo_run: Path) -> None:
    """No word is broken; where fewer results can turn than the help says, that is said."""
    shown = CODES.sub("", on_terminal("gate", "calibrate", demo_run))
    assert max(map(len, shown.splitlines())) <= 80
    assert "(not 10%: nearly all items do the same in each attempt" in " ".join(shown.split())
    assert {"validation", "accepted", "every", "recommended:"} <= set(shown.split())
