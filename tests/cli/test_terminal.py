"""Colours, widths and the pager: what a terminal gets, and what a pipe."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.audited import Audited
from support.in_process import Cli
from support.on_terminal import CODES, on_terminal
from support.ready import COMMAND

from skillopt_es.cli.printing import laid_out, table_width
from skillopt_es.cli.terminal import has_colour


class Stream:
    """A stream that is a terminal or none."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        """What it is."""
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "environ", "colours"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1"}, True),
        (True, {"TERM": "xterm", "FORCE_COLOR": "0"}, False),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_are_where_they_are_wanted(
    terminal: bool, environ: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal that can, unless NO_COLOR is set; elsewhere by FORCE_COLOR alone."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert has_colour(Stream(terminal)) is colours  # type: ignore[arg-type]


HEADERS = ("item", "tokens in", "share", "what it says")
ROWS = [("a", "1,234", "720 (344-720)", "one two three four five"), ("日本", "-", "3", "x" * 50), ("", "5", "", "")]


def drawn(width: int | None) -> list[str]:
    """The table's lines."""
    return ["  ".join(line) for lines in laid_out(HEADERS, ROWS, right=(1, 2), width=width) for line in lines]


def test_a_table_is_one_line_a_row_where_there_is_room() -> None:
    """Aligned by what is seen, not by how many characters that is."""
    assert drawn(None) == drawn(200)
    assert len(drawn(None)) == 1 + len(ROWS)
    assert drawn(None)[2].startswith("日本          -              3  xxx")
    assert table_width(HEADERS, ROWS) == 4 + 9 + 13 + 50 + 3 * 2


@pytest.mark.parametrize("width", [70, 50, 40])
def test_a_table_that_is_too_wide_is_folded(width: int) -> None:
    """Texts between words, within a word only where it has no room, headers between words, never a number."""
    lines = drawn(width)
    assert max(map(len, lines)) <= width
    assert sum("1,234" in line for line in lines) == 1
    assert sum(line.count("x") for line in lines) == 50


def test_texts_go_before_ranges() -> None:
    """A range breaks at its blank when nothing else is left to fold."""
    assert any("720 (344-720)" in line for line in drawn(50))
    assert any(line.split()[:1] == ["(344-720)"] for line in drawn(36))


@pytest.mark.parametrize("width", [60, 50, 45])
def test_no_word_is_broken_as_long_as_numbers_can_be_folded(width: int) -> None:
    """A setting's name is one word, however long it is."""
    rows = [("tenth", "evaluation.gate_metric = soft", "12 of 12", "0.9750"), ("first", "", "4 of 4", "1.0000")]
    table = laid_out(("run", "changed", "steps", "best value"), rows, right=(2, 3), width=width)
    lines = ["  ".join(line) for lines in table for line in lines]
    assert max(map(len, lines)) <= width
    assert "evaluation.gate_metric" in " ".join(lines)


def test_many_runs_are_compared_within_80_columns(cli: Cli, demo_run: Path, audited: Audited, tmp_path: Path) -> None:
    """A row a run; what is the same for all is said once, what says the same twice is named."""
    both = (demo_run, audited("plain"))
    runs = [shutil.copytree(run, tmp_path / f"{at}" / run.name) for at in range(6) for run in both]
    done = cli("compare", *runs)
    assert sum(line.startswith("demo  12 of 12") for line in done.lines) == 6
    same = [line for line in done.lines if line.startswith("the same for all 12 runs: ")]
    assert len(same) == 1
    assert same[0].startswith("the same for all 12 runs: status completed, gate metric hard")
    assert "the same as test best hard in each run: test best soft, test final hard, test final soft" in done.lines
    narrow = CODES.sub("", on_terminal("compare", *runs, "--no-pager")).splitlines()
    assert max(map(len, narrow)) <= 80
    shutil.copytree(demo_run, tmp_path / "demo")
    cli("fork", tmp_path / "demo", "--until", "step", "2", "--set", "evaluation.gate_metric=soft", "--name", "soft")
    forked = CODES.sub("", on_terminal("compare", *runs[:8], tmp_path / "soft", "--no-pager"))
    assert max(map(len, forked.splitlines())) <= 80
    assert "evaluation.gate_metric " in forked, "no word is broken"
    two = cli("compare", *runs[::10])
    assert ["test", "best", "hard", "0.9750", "0.9750"] in [line.split() for line in two.lines]


def paged(text: str) -> bool:
    """Whether a text has gone through the pager of these tests."""
    return all(line.startswith("paged ") for line in text.splitlines())


def test_what_is_longer_than_the_screen_goes_to_the_pager(demo_run: Path) -> None:
    """And nothing else; `--no-pager`, an empty PAGER and a dumb terminal are without it."""
    pager = {"PAGER": "sed 's/^/paged /'"}
    assert paged(on_terminal("log", demo_run, **pager))
    assert not paged(on_terminal("log", demo_run, "--last", "3", **pager))
    long = ("log", demo_run)
    assert not paged(on_terminal(*long, "--no-pager", **pager))
    assert not paged(on_terminal(*long, PAGER=""))
    assert not paged(on_terminal(*long, TERM="dumb", **pager))
    words = [COMMAND, *map(str, long)]
    piped = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | pager)
    assert not paged(piped.stdout)
    whole = CODES.sub("", on_terminal(*long, **pager)).replace("paged ", "")
    assert whole.split() == piped.stdout.split(), "but for where lines are folded"


def test_a_terminal_at_which_nobody_can_type_is_without_a_pager(demo_run: Path) -> None:
    """A key ahead of time is no end of input."""
    pager, end_of_input = {"PAGER": "sed 's/^/paged /'"}, b"\x04"
    assert not paged(on_terminal("log", demo_run, typed=end_of_input, **pager))
    for typed in (b"q", b"x\n" + end_of_input):
        assert "paged " in on_terminal("log", demo_run, typed=typed, **pager)


def test_a_pager_that_is_left_early_is_no_failure(demo_run: Path) -> None:
    """The command ends in order, without a word."""
    assert on_terminal("log", demo_run, PAGER="head -2").count("\n") == 2


def test_a_pager_with_an_open_quote_is_told_and_left_out(demo_run: Path) -> None:
    """It is the user's slip in a setting, and no reason to show nothing."""
    shown = CODES.sub("", on_terminal("log", demo_run, PAGER="less '"))
    warning = "warning: PAGER cannot be read (No closing quotation), so this is shown without a\n  pager\n"
    assert shown.startswith(warning)
    assert "RunStarted" in shown


def test_a_terminal_gets_emphasis_and_its_width(demo_run: Path) -> None:
    """A pipe gets neither."""
    shown = on_terminal("status", demo_run, "--no-pager")
    assert "\x1b[32maccept new best" in shown
    assert "\x1b[31mreject" in shown
    assert max(len(line) for line in CODES.sub("", shown).splitlines()) <= 120
    assert "\x1b" not in on_terminal("status", demo_run, "--no-pager", NO_COLOR="1")


def test_a_remark_that_has_no_room_beside_a_table_stands_below_it(demo_run: Path) -> None:
    """Once for all rows that it is of, and in a pipe in its row."""
    words = ("regate", demo_run, "--set", "evaluation.gate_rule=paired")
    shown = CODES.sub("", on_terminal(*words, "--no-pager")).splitlines()
    assert max(map(len, shown)) <= 80
    rows = [line for line in shown if line.startswith("?  step 1 ")]
    assert [row.split()[-3:] for row in rows] == [["cannot", "be", "told"]]
    assert sum("draw 2 of the candidate and draw 2 of the current skill" in line for line in shown) <= 2
    assert any(line.startswith("step 1, step 2, ") for line in shown)


def test_what_went_wrong_is_folded_between_words(tmp_path: Path) -> None:
    """On stderr, too; a path stays whole, so that it can be copied."""
    directory = tmp_path / "a-folder-whose-name-has-no-room-beside-anything-else-on-a-line-of-a-terminal"
    shown = CODES.sub("", on_terminal("status", "none", "--dir", directory, code=2))
    assert "  a-folder" not in shown
    assert str(directory) in shown
    lines = shown.splitlines()
    assert lines[0].startswith("error: there is no run")
    assert all(line.startswith("  ") for line in lines[1:])
    assert all(len(line) <= 80 or str(directory) in line for line in lines)
