"""`schedule`: what is printed is what a scheduler takes, with a limit and without a key."""

from __future__ import annotations

import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.in_process import Cli


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config in a folder whose name needs care."""
    folder = tmp_path / "my 100% task"
    folder.mkdir()
    (folder / "config.yaml").write_text("env: {name: tasks}\n", encoding="utf-8")
    return folder / "config.yaml"


def test_a_line_for_cron(cli: Cli, config: Path) -> None:
    """The shell that cron starts reads the very words."""
    line = cli("schedule", config, "--for", "cron", "--max-calls", 500, "--at", "2:05").lines[1]
    moment, command = line.split(" * * * ")
    words = shlex.split(command.replace(r"\%", "%"))
    assert moment == "5 2"
    assert words[:3] == ["cd", str(config.parent), "&&"]
    assert words[4:9] == ["run", "config.yaml", "--quiet", "--max-calls", "500"]


def test_a_unit_and_a_timer_for_systemd(cli: Cli, config: Path) -> None:
    """With the folder's % doubled."""
    out = cli("schedule", config, "--for", "systemd", "--max-cost", 1.5, "--notify", "env:HOOK").out
    assert f"WorkingDirectory={config.parent}".replace("%", "%%") in out
    assert "run config.yaml --quiet --max-cost 1.5 --notify env:HOOK" in out
    assert "OnCalendar=*-*-* 03:00:00" in out


def test_a_list_for_launchd(cli: Cli, config: Path) -> None:
    """XML that can be read."""
    out = cli("schedule", config, "--for", "launchd", "--max-calls", 5).out
    tree = ET.fromstring(out.encode())
    assert [each.text for each in tree.iter("string")][-2:] == [str(config.parent / "nightly.log")] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for", "cron"], "a run that nobody watches needs a limit"),
        (["--max-calls", "5", "--at", "25:00"], "write a time of day as HH:MM"),
    ],
)
def test_a_night_without_a_limit_is_refused(cli: Cli, config: Path, words: list[str], said: str) -> None:
    """And so is a time that there is not."""
    done = cli("schedule", config, *words)
    assert (done.code, said in done.err) == (2, True)


def test_a_config_that_is_not_there_is_named(cli: Cli) -> None:
    """Before anything is printed."""
    assert "no such config file" in cli("schedule", "none.yaml", "--max-calls", 5).err
