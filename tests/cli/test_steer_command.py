"""`steer` on the command line: texts that begin with a dash, as most lines of a skill do, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import Cli, called
from support.params import parametrized

from skillopt_es.events.catalog import RunSteered
from skillopt_es.events.log import EventLog
from skillopt_es.runs.inbox import Inbox
from skillopt_es.sessions.session import read_state

WHY = ("--why", "- because")


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process; its runs are in a folder of their own."""
    run = called(capsys)
    return lambda name, *words: run(name, "--dir", tmp_path / "runs", *words)


@pytest.fixture
def paused(cli: Cli, tmp_path: Path) -> Path:
    """A run of the demo that waits after its first steps, with lines in its skill."""
    assert cli("run", "--run", "r", "--quiet", "--max-calls", 200).code == 3
    return tmp_path / "runs" / "r"


def _line(folder: Path) -> str:
    current = read_state(folder).current
    assert current is not None
    return next(line for line in current.skill.text.splitlines() if line.startswith("- "))


def test_a_line_with_a_bullet_is_pinned_unpinned_and_struck(cli: Cli, paused: Path) -> None:
    """As it stands there, without a sign that ends the options."""
    line = _line(paused)
    for order in ("pin", "unpin", "strike"):
        done = cli("steer", "r", order, line, *WHY)
        assert done.code == 0, done.err
        assert cli("resume", "r", "--quiet", "--max-calls", 201).code == 3
    with EventLog.open(paused) as log:
        steered = [row.event for row in log.read(types=("RunSteered",)) if isinstance(row.event, RunSteered)]
    assert [(event.order, event.text) for event in steered[:2]] == [("pin", line), ("unpin", line)]
    # The open step comes first.
    assert [each.text for each in Inbox(paused).waiting()] == [line] or steered[-1].order == "strike"
    assert {event.why for event in steered} == {"- because"}


@parametrized("text", ["- a", "-- a", "--why is not an option", "-h is not either", "---", "-", "*"], by_default=3)
def test_a_text_may_begin_with_dashes(cli: Cli, paused: Path, text: str) -> None:
    """Wherever the options are."""
    for words in (
        (*WHY, "r", "hint", text),
        ("r", "hint", text, *WHY),
        ("r", "hint", text, "--why=- because"),
        (*WHY, "r", "hint", "--", text),
    ):
        done = cli("steer", *words)
        assert done.code == 0, (words, done.err)
    assert {(each.text, each.why) for each in Inbox(paused).waiting()} == {(text, "- because")}
    assert len(Inbox(paused).waiting()) == 4


def test_an_option_that_there_is_not_is_still_told(cli: Cli, paused: Path) -> None:
    """It looks like one, and no line of a skill looks so."""
    done = cli("steer", "r", "hint", "dates", "--wy", "x")
    assert done.code == 2
    assert "No such option '--wy'" in done.err
    assert cli("steer", "r", "hint", "-x", *WHY).code == 2
    assert not Inbox(paused).waiting()


def test_the_help_has_a_line_with_a_bullet(cli: Cli) -> None:
    """Nearly every line has one."""
    assert 'strike "- ' in cli("steer", "--help").out
