"""docs/one-page.md: its blocks are a program that trains a skill, is killed, resumes, and checks what it has done."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.doc_commands import ROOT, shell_commands
from support.logs import call_slots, events_of

from skillopt_es.events.catalog import CandidateGated, RunCompleted

PAGE = "docs/one-page.md"
CALLS = 17
SOUND = """\
folds to the same state again: True
decisions follow from the evidence: True
no row was changed or lost: True
{calls} calls; the best skill scores 1: 'Add up.\\nName the unit.\\n'
"""


def program(folder: Path) -> Path:
    """The page's blocks as the file that it says they are."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / PAGE).read_text(), re.MULTILINE | re.DOTALL)
    file = folder / "one_page.py"
    file.write_text("\n\n".join(blocks))
    return file


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    line = [sys.executable, "one_page.py", *words]
    variables = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, and a run that was never killed."""
    folder = tmp_path_factory.mktemp("page")
    program(folder)
    done = run(folder, "runs/whole")
    assert (done.returncode, done.stdout) == (0, SOUND.format(calls=CALLS)), done.stderr
    return folder


def test_it_is_one_page() -> None:
    """Who wants to say more takes something out."""
    assert len((ROOT / PAGE).read_text().splitlines()) <= 250


def test_it_takes_one_line_and_refuses_two(undisturbed: Path) -> None:
    """And it ends."""
    events = events_of(undisturbed / "runs" / "whole")
    assert [event.verdict.taken for event in events if isinstance(event, CandidateGated)] == [False, True, False]
    assert isinstance(events[-1], RunCompleted)


def test_its_commands_do_what_they_say(undisturbed: Path) -> None:
    """The first one is killed in the middle, the second one has the same log in the end, and asks for nothing twice."""
    codes = []
    for command in shell_commands(PAGE):
        python, _, *words = command.line.split()
        assert python == "python"
        done = run(undisturbed, *words)
        codes.append(128 - done.returncode if done.returncode < 0 else done.returncode)
        assert codes[-1] == command.code, done.stderr
    assert codes == [128 + signal.SIGKILL, 0]
    assert done.stdout == SOUND.format(calls=CALLS - 8)
    first, whole = undisturbed / "runs" / "first", undisturbed / "runs" / "whole"
    assert events_of(first) == events_of(whole)
    assert call_slots(first) == call_slots(whole)


@pytest.mark.slow
@pytest.mark.parametrize("call", range(1, CALLS + 1))
def test_killed_during_any_call_it_resumes(call: int, undisturbed: Path) -> None:
    """Only the call that was in flight is made again."""
    name = f"runs/killed-{call}"
    assert run(undisturbed, name, str(call)).returncode == -signal.SIGKILL
    done = run(undisturbed, name)
    assert done.stdout == SOUND.format(calls=CALLS - call + 1), done.stderr
    assert events_of(undisturbed / name) == events_of(undisturbed / "runs" / "whole")
