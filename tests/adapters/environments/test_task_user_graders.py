"""A user's own function or command grades, and when it is broken that is never a 0 for the answer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.environments import BLANK, Target, attempt, data_settings, grade_one, open_on, open_rows
from support.ready import PATIENCE

from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import Episode

ITEM = {"expected": "gold", "extra": [1]}


def with_function(folder: Path, body: str, reply: str = "an answer", **options: Any) -> Episode:
    (folder / "grade.py").write_text(body)
    return grade_one(folder, ITEM, reply, grader="python:grade:score", **options)


def with_command(folder: Path, script: str, reply: str = "an answer", **options: Any) -> Episode:
    (folder / "grade.py").write_text(script)
    """In the open: in the config's folder, with the user's rights. Behind walls: test_task_confined_graders.py."""
    command = {"command": [sys.executable, "grade.py"]}
    return grade_one(folder, ITEM, reply, grader=command, sandbox="unconfined", **options)


def broken(episode: Episode) -> str:
    assert isinstance(episode.outcome, Failed)
    assert (episode.outcome.kind, episode.failure) == ("grader", "grader")
    assert episode.records[-1].kind == "feedback"
    return episode.outcome.message


VALUES = [
    ("True", Measured(1, 1), ""),
    ("1", Measured(1, 1), ""),
    ("0.4", Measured(0, 0.4), "near_miss"),
    ("0", Measured(0, 0), "wrong_answer"),
    ("{'hard': 0, 'soft': 0.5, 'note': 'half right'}", Measured(0, 0.5), "near_miss"),
    ("{'soft': 1}", Measured(1, 1), ""),
    ("{'hard': True}", Measured(1, 1), ""),
    ("{'hard': 0.5, 'soft': 0.75}", Measured(0.5, 0.75), "near_miss"),
]
BAD_VALUES = [
    "None",
    "'1'",
    "1.5",
    "-1",
    "float('nan')",
    "[]",
    "{}",
    "{'hrad': 1}",
    "{'hard': 1, 'notes': 'x'}",
    "{'soft': 7}",
]


ASYNC_GRADERS = {
    "return 0.25": Measured(0, 0.25),
    "await asyncio.sleep(0)\n    return {'hard': 1, 'note': 'well'}": Measured(1, 1),
    "SEEN.append(asyncio.get_running_loop())\n    return len(set(SEEN)) == 1": Measured(1, 1),
}


@pytest.mark.parametrize("body", ASYNC_GRADERS)
def test_a_function_may_be_asynchronous(tmp_path: Path, body: str) -> None:
    """It is awaited, on one loop for all items: a client that it keeps can be used again."""
    source = f"import asyncio\nSEEN = []\nasync def score(answer, item):\n    {body}\n"
    (tmp_path / "grade.py").write_text(source)
    rows = [{"id": f"{number}", "input": "?", "expected": "x"} for number in range(3)]
    environment, splits = open_rows(tmp_path, "tasks", rows, grader="python:grade:score")
    episodes = [asyncio.run(environment.attempt(item, BLANK, Target(["x"]), seed=1)) for item in splits.train]
    assert [episode.outcome for episode in episodes] == [ASYNC_GRADERS[body]] * 3


def test_an_asynchronous_function_that_breaks_or_hangs_is_broken(tmp_path: Path) -> None:
    """As a plain one."""
    source = "import asyncio\nasync def score(answer, item):\n    {}\n"
    assert "KeyError: 'typo'" in broken(with_function(tmp_path, source.format("return item['typo']")))
    assert "longer than 0.1 seconds" in broken(
        with_function(tmp_path, source.format("await asyncio.sleep(60)"), timeout=0.1)
    )


@pytest.mark.parametrize(("value", "outcome", "failure"), VALUES)
def test_a_function_returns_a_number_a_bool_or_a_dict(
    tmp_path: Path, value: str, outcome: Measured, failure: str
) -> None:
    """A number below 1 is soft only; a dict says both."""
    episode = with_function(tmp_path, f"def score(answer, item):\n    return {value}\n")
    assert (episode.outcome, episode.failure) == (outcome, failure)
    assert ("half right" in episode.records[-1].text) == ("half right" in value)


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_function_that_returns_something_else_is_broken(tmp_path: Path, value: str) -> None:
    """What is not a grade is reported with what it was."""
    assert broken(with_function(tmp_path, f"def score(answer, item):\n    return {value}\n"))


def test_a_function_gets_the_answer_and_a_copy_of_the_item(tmp_path: Path) -> None:
    """It sees every field, and what it changes stays its own."""
    body = (
        "def score(answer, item):\n"
        "    good = answer == 'x' and item['id'] == '1' and item['expected'] == 'gold' and item['extra'] == [1]\n"
        "    item['extra'].append(2)\n    item.clear()\n    return good\n"
    )
    (tmp_path / "grade.py").write_text(body)
    environment, splits = open_rows(tmp_path, "tasks", [{"id": "1", "input": "?", **ITEM}], grader="python:grade:score")
    for _ in range(2):
        assert attempt(environment, splits.train[0], Target([" x "])).outcome == Measured(1, 1)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ValueError('no luck')", "ValueError: no luck"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise StopIteration", "StopIteration"),
        ("open(__file__ + 'x')", "./grade.pyx"),
        ("import time; time.sleep(900)", "took longer than 0.2 seconds"),
    ],
)
def test_a_function_that_fails_is_broken(tmp_path: Path, body: str, says: str) -> None:
    """Exceptions, exits and hanging are the grader's fault, told without absolute paths."""
    message = broken(
        with_function(tmp_path, f"def score(answer, item):\n    {body}\n", timeout=0.2 if "longer" in says else 30)
    )
    assert says in message
    assert str(tmp_path) not in message


def test_functions_run_side_by_side(tmp_path: Path) -> None:
    """A function that waits keeps no other item from being graded."""
    (tmp_path / "grade.py").write_text(
        "import threading\nall_here = threading.Barrier(8)\n"
        "def score(answer, item):\n    all_here.wait()\n    return 1\n"
    )
    rows = [{"id": str(number), "input": "?", **ITEM} for number in range(8)]
    environment, splits = open_rows(tmp_path, "tasks", rows, grader="python:grade:score")

    async def all_at_once() -> list[Episode]:
        return await asyncio.gather(*(environment.attempt(item, BLANK, Target(["x"]), seed=1) for item in splits.train))

    assert all(episode.outcome == Measured(1, 1) for episode in asyncio.run(all_at_once()))


def test_a_function_may_live_in_a_folder_and_import_its_neighbours(tmp_path: Path) -> None:
    """`graders/mine.py:score` is found from the config's folder, and so is the module it imports."""
    (tmp_path / "graders").mkdir()
    (tmp_path / "graders" / "mine.py").write_text(
        "import neighbour_of_a_made_grader as n\nscore = lambda a, i: n.VALUE\n"
    )
    (tmp_path / "neighbour_of_a_made_grader.py").write_text("VALUE = 1\n")
    assert grade_one(tmp_path, ITEM, "x", grader={"python": "graders/mine.py:score"}).outcome == Measured(1, 1)


@pytest.mark.parametrize("where", ["graders.mine", "graders/mine", "./graders/mine.py", "../outer/graders/mine.py"])
def test_a_function_is_found_by_module_or_by_path(tmp_path: Path, where: str) -> None:
    """Dots and slashes name the same file beside the config."""
    folder = tmp_path / "outer"
    (folder / "graders").mkdir(parents=True)
    (folder / "graders" / "mine.py").write_text("score = lambda answer, item: 1\n")
    assert grade_one(folder, ITEM, "x", grader=f"python:{where}:score").outcome == Measured(1, 1)


def test_a_function_may_come_from_an_installed_module(tmp_path: Path) -> None:
    """What is not a file beside the config is imported."""
    assert grade_one(tmp_path, ITEM, "x", grader="python:operator:contains").outcome != Measured(1, 1)


@pytest.mark.parametrize(
    ("grader", "body", "says"),
    [
        ("python:nowhere_at_all:score", "", "there is no module 'nowhere_at_all'"),
        ("python:grade:scoer", "def score(a, i): ...", "has no function 'scoer'"),
        ("python:grade:LIMIT", "LIMIT = 3", "has no function 'LIMIT'"),
        ("python:grade:score", "def score(:", "SyntaxError"),
        ("python:grade:score", "raise SystemExit", "SystemExit"),
        ("python:grade:score", "import not_there_at_all", "not installed: not_there_at_all"),
        ("python:gone.py:score", "", "gone.py cannot be imported"),
        ("python:../gone:score", "", "../gone cannot be imported"),
        ("python:grade", "", "module:function"),
        ("python:", "", "module:function"),
        ("command:no-such-program-at-all", "", "there is no program"),
        ("command:./grade.py", "", "there is no program"),
        ("command:", "", "must be a command"),
        ("command:'unclosed", "", "No closing quotation"),
        ({"command": []}, "", "must be a command"),
        ({"command": [None]}, "", "must be a command"),
        ({"python": "a:b", "command": "c"}, "", "must be one of exact"),
        ("exakt", "", "must be one of exact"),
        (["exakt"], "", "must be one of exact"),
    ],
)
def test_a_grader_that_cannot_be_used_is_a_config_error(tmp_path: Path, grader: Any, body: str, says: str) -> None:
    """It is found when the environment is opened, before any call is paid."""
    (tmp_path / "grade.py").write_text(body)
    with pytest.raises(ConfigError) as caught:
        open_on(tmp_path, "tasks", data_settings(), grader=grader)
    assert str(caught.value).startswith("env.grader: ")
    assert says in str(caught.value)


def test_items_may_mix_a_users_grader_and_built_in_ones(tmp_path: Path) -> None:
    """An item's own built-in grader comes before the configured code."""
    (tmp_path / "grade.py").write_text("def score(answer, item):\n    return 0.5\n")
    rows = [{"id": "1", "input": "?"}, {"id": "2", "input": "?", "expected": "x", "grader": "exact"}]
    environment, splits = open_rows(tmp_path, "tasks", rows, grader="python:grade:score")
    outcomes = [attempt(environment, item, Target(["x"])).outcome for item in splits.train]
    assert outcomes == [Measured(0, 0.5), Measured(1, 1)]


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ("1", Measured(1, 1)),
        ("0.25", Measured(0, 0.25)),
        ("true", Measured(1, 1)),
        ('{"hard": 0, "soft": 0.5, "note": "so so"}', Measured(0, 0.5)),
        ('{\\n "soft": 1\\n}', Measured(1, 1)),
        ("loading …\\n0.5\\n", Measured(0, 0.5)),
    ],
)
def test_a_command_prints_a_number_or_json(tmp_path: Path, printed: str, outcome: Measured) -> None:
    """All of the output is read as JSON, else its last line."""
    assert with_command(tmp_path, f"print('{printed}')").outcome == outcome


def test_a_command_reads_the_item_and_the_answer(tmp_path: Path) -> None:
    """Standard input holds all fields of the item, as a function gets them, and the answer, however long it is."""
    script = (
        "import json, sys\nrow = json.load(sys.stdin)\nhow = row.pop('trajectory')\n"
        "fields = {'id': '1', 'input': 'What?', 'expected': 'gold', 'extra': [1], 'split': 'train'}\n"
        "fields['truncated'] = False\n"
        "print(int(row == {**fields, 'answer': how[-1]['text']} and row['answer'] == 'é' * 300_000))\n"
    )
    assert with_command(tmp_path, script, reply="é" * 300_000).outcome == Measured(1, 1)


def test_a_command_may_ignore_its_input(tmp_path: Path) -> None:
    """Closing standard input early is no error."""
    script = "import os\nos.close(0)\nprint(1)\n"
    assert with_command(tmp_path, script, reply="x" * 1_000_000).outcome == Measured(1, 1)


def test_a_command_sees_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is PATH, HOME and LANG and nothing else."""
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key")
    script = (
        "import os\nprint(int(set(os.environ) <= {'PATH', 'HOME', 'LANG', 'LC_CTYPE', '__CF_USER_TEXT_ENCODING'}))\n"
    )
    assert with_command(tmp_path, script).outcome == Measured(1, 1)


def test_a_command_may_be_a_script_beside_the_config(tmp_path: Path) -> None:
    """A relative path starts at the config's folder, and text is split as a shell would."""
    script = tmp_path / "grade.sh"
    script.write_text('#!/bin/sh\ntest "$1" = "two words" && echo 1\n')
    script.chmod(0o755)
    assert grade_one(
        tmp_path, ITEM, "x", grader="command:./grade.sh 'two words'", sandbox="unconfined"
    ).outcome == Measured(1, 1)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("print('fine')", "printed 'fine', which is neither a number nor JSON"),
        ("pass", "printed ''"),
        ("print('NaN')", "must be a number from 0 to 1"),
        ("print('[' * 100_000)", "printed more than 65536 bytes"),
        ("print('[' * 60_000)", "neither a number nor JSON"),
        ("print(2)", "must be a number from 0 to 1"),
        ("raise SystemExit(4)", "exit code 4"),
        ("raise ValueError('why')", "exit code 1: ValueError: why"),
        ("import os; open(os.path.abspath('gone'))", "'./gone'"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("import os; os.write(1, b'\\xff\\xfe')", "neither a number nor JSON"),
        ("while True: print('x' * 1000)", "printed more than 65536 bytes"),
        ("import time; print(1, flush=True); time.sleep(900)", "took longer than 0.5 seconds"),
        ("import os, time; os.close(1); os.close(2); time.sleep(900)", "took longer than 0.5 seconds"),
        ("import os\nwhile True: os.write(2, b'x' * 1000)", "took longer than 0.5 seconds"),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(900)", "took longer"),
    ],
)
def test_a_command_that_fails_is_broken(tmp_path: Path, script: str, says: str) -> None:
    """Garbage, floods, crashes and hanging end in time, with a message without absolute paths."""
    start = time.monotonic()
    message = broken(with_command(tmp_path, script, timeout=0.5 if "longer" in says else PATIENCE))
    assert says in message
    assert str(tmp_path) not in message
    assert time.monotonic() - start < PATIENCE


CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
open("pid", "w").write(str(child.pid))
"""


@pytest.mark.parametrize(
    ("ending", "well"), [("print(1)", True), ("child.wait()", False), ("raise SystemExit(1)", False)]
)
def test_a_commands_children_end_with_it(tmp_path: Path, ending: str, well: bool) -> None:
    """Whatever way a command ends, nothing that it started stays behind."""
    start = time.monotonic()
    episode = with_command(tmp_path, CHILD + ending, timeout=PATIENCE if well or "exit" in ending.lower() else 3)
    assert isinstance(episode.outcome, Measured) == well
    assert time.monotonic() - start < PATIENCE
    assert not running(int((tmp_path / "pid").read_text()))


def test_a_child_that_escapes_the_group_does_not_hold_the_grading_up(tmp_path: Path) -> None:
    """A daemon with the output pipe in its hands is not waited for."""
    script = CHILD.replace('time.sleep(900)"]', 'time.sleep(900)"], start_new_session=True') + "print(1)"
    start = time.monotonic()
    try:
        assert with_command(tmp_path, script).outcome == Measured(1, 1)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert time.monotonic() - start < PATIENCE


def test_a_cancelled_grading_ends_its_command(tmp_path: Path) -> None:
    """When the run is interrupted, the command does not go on alone."""
    (tmp_path / "grade.py").write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(900)\n")
    environment, splits = open_rows(
        tmp_path,
        "tasks",
        [{"id": "1", "input": "?"}],
        grader={"command": [sys.executable, "grade.py"]},
        sandbox="unconfined",
    )

    async def interrupted() -> None:
        job = asyncio.create_task(environment.attempt(splits.train[0], BLANK, Target(["x"]), seed=1))
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await job

    asyncio.run(interrupted())
    assert not running(int((tmp_path / "pid").read_text()))


def test_commands_run_side_by_side(tmp_path: Path) -> None:
    """A command that waits keeps no other from starting."""
    (tmp_path / "grade.py").write_text(
        "import os, sys, time\nopen(f'here-{os.getpid()}', 'w').close()\n"
        "while sum(name.startswith('here-') for name in os.listdir()) < 6: time.sleep(0.01)\nprint(1)\n"
    )
    rows = [{"id": str(number), "input": "?"} for number in range(6)]
    command = {"command": [sys.executable, "-S", "grade.py"]}
    environment, splits = open_rows(tmp_path, "tasks", rows, grader=command, sandbox="unconfined")

    async def all_at_once() -> list[Episode]:
        return await asyncio.gather(*(environment.attempt(item, BLANK, Target(["x"]), seed=1) for item in splits.train))

    assert all(episode.outcome == Measured(1, 1) for episode in asyncio.run(all_at_once()))


def running(pid: int) -> bool:
    """Whether a process still runs; a killed one may need a moment to be gone."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and ") Z" in state.read_text():
            return False
        time.sleep(0.02)
    return True
