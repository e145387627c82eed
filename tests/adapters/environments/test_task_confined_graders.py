"""A grader that is a command runs behind walls, with copies of what it is given, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.environments import BLANK, CONFINED, Target, data_settings, grade_one, open_on, open_rows
from support.params import parametrized
from support.ready import PATIENCE

from skillopt_es.adapters.environments.tasks import commands
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import Episode

ITEM = {"expected": "gold", "extra": [1]}
COMMAND = {"command": [sys.executable, "grade.py"]}
behind_walls = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")


def graded(folder: Path, script: str, reply: str = "an answer", **options: Any) -> Episode:
    (folder / "grade.py").write_text(script)
    return grade_one(folder, ITEM, reply, **{"grader": COMMAND, **options})


def broken(episode: Episode) -> str:
    assert isinstance(episode.outcome, Failed)
    assert (episode.outcome.kind, episode.failure) == ("grader", "grader")
    return episode.outcome.message


@behind_walls
def test_it_reads_the_item_and_the_answer(tmp_path: Path) -> None:
    """On standard input, all fields of the item, however long the answer is."""
    script = (
        "import json, sys\nrow = json.load(sys.stdin)\nhow = row.pop('trajectory')\n"
        "fields = {'id': '1', 'input': 'What?', 'expected': 'gold', 'extra': [1], 'split': 'train'}\n"
        "fields['truncated'] = False\n"
        "print(int(row == {**fields, 'answer': how[-1]['text']} and row['answer'] == 'é' * 300_000))\n"
    )
    assert graded(tmp_path, script, reply="é" * 300_000).outcome == Measured(1, 1)


@behind_walls
@pytest.mark.parametrize(
    ("printed", "outcome"),
    [("0.25", Measured(0, 0.25)), ('{"hard": 0, "soft": 0.5}', Measured(0, 0.5)), ("so …\\n1\\n", Measured(1, 1))],
)
def test_it_prints_a_number_or_json(tmp_path: Path, printed: str, outcome: Measured) -> None:
    """As in the open."""
    assert graded(tmp_path, f"print('{printed}')").outcome == outcome


ESCAPES = {
    "the config's folder": "import os; found = os.path.exists({folder!r} + '/items.jsonl')",
    "its neighbours": "import os; found = sorted(os.listdir('.')) != ['grade.py']",
    "a home": "import os; found = os.path.exists({home!r})",
    "a variable": "import os; found = 'OPENAI_API_KEY' in os.environ",
    "the parent's variables": (
        "try:\n    found = 'made-up' in open('/proc/1/environ').read()\nexcept OSError:\n    found = False"
    ),
    "an address": (
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 2); found = True\n"
        "except OSError:\n    found = False"
    ),
    "a process": "import os; found = len([each for each in os.listdir('/proc') if each.isdigit()]) > 3",
    "the program": ("try:\n    open({python!r}, 'ab'); found = True\nexcept OSError:\n    found = False"),
}


@behind_walls
@pytest.mark.parametrize("what", ESCAPES)
def test_it_reaches_nothing_of_this_machine(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, no key, no network, no other process."""
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key")
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "neighbour.txt").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        body = ESCAPES[what].format(
            folder=str(tmp_path), home=str(home), port=server.getsockname()[1], python=sys.executable
        )
        assert graded(tmp_path, f"{body}\nprint(int(not found))").outcome == Measured(1, 1)


@behind_walls
def test_it_finds_the_files_that_it_is_given(tmp_path: Path) -> None:
    """Those that its words name, and those in `grader_files`, whole folders too; each grading has fresh copies."""
    (tmp_path / "cases" / "deep").mkdir(parents=True)
    (tmp_path / "cases" / "deep" / "one.json").write_text("[1]")
    (tmp_path / "helper.py").write_text("LIMIT = 1\n")
    (tmp_path / "words.txt").write_text("gold")
    script = (
        "import json, os, sys\nfrom helper import LIMIT\n"
        "fresh = not os.path.exists('left')\nopen('left', 'w').close()\nopen(sys.argv[1], 'a').write('!')\n"
        "whole = json.load(open('cases/deep/one.json')) == [LIMIT] and open(sys.argv[1]).read() == 'gold!'\n"
        "print(int(fresh and whole))\n"
    )
    command = {"command": [sys.executable, "grade.py", "words.txt"]}
    for _ in range(2):
        episode = graded(tmp_path, script, grader=command, grader_files=["cases", "helper.py"])
        assert episode.outcome == Measured(1, 1)
    assert (tmp_path / "words.txt").read_text() == "gold"
    assert not (tmp_path / "left").exists()


@behind_walls
def test_it_may_be_a_script_beside_the_config(tmp_path: Path) -> None:
    """Found through a link as well, with its arguments as a shell would split them."""
    script = tmp_path / "lib" / "grade.sh"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\ntest "$1" = "two words" && echo 1\n')
    script.chmod(0o755)
    (tmp_path / "grade.sh").symlink_to(script)
    for name in ("./grade.sh", "lib/grade.sh", shlex.quote(str(script))):
        assert grade_one(tmp_path, ITEM, "x", grader=f"command:{name} 'two words'").outcome == Measured(1, 1)


@behind_walls
@parametrized(
    ("script", "says"),
    [
        ("print('fine')", "printed 'fine', which is neither a number nor JSON"),
        ("raise SystemExit(4)", "exit code 4"),
        ("raise ValueError('why')", "exit code 1: ValueError: why"),
        ("import os; open(os.path.abspath('gone'))", "'./gone'"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("while True: print('x' * 1000)", "printed more than 65536 bytes"),
        ("import time; print(1, flush=True); time.sleep(900)", "took longer than 1 seconds"),
        ("import os\nfor _ in range(200): os.fork()", "the command"),
        ("x = bytearray(1 << 31)", "MemoryError"),
        ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "the command ended with"),
    ],
    by_default=4,
)
def test_one_that_fails_is_broken(tmp_path: Path, script: str, says: str) -> None:
    """Garbage, floods, crashes, hanging and breeding end in time; the item is not measured."""
    start = time.monotonic()
    endless = says in ("printed more than 65536 bytes", "took longer than 1 seconds", "the command")
    message = broken(graded(tmp_path, script, timeout=1 if endless else PATIENCE))
    assert says in message
    assert str(tmp_path) not in message
    assert time.monotonic() - start < PATIENCE


@behind_walls
def test_a_cancelled_grading_ends(tmp_path: Path) -> None:
    """With the run."""
    (tmp_path / "grade.py").write_text("import time; time.sleep(900)")
    environment, splits = open_rows(tmp_path, "tasks", [{"id": "1", "input": "?"}], grader=COMMAND)

    async def interrupted() -> None:
        job = asyncio.create_task(environment.attempt(splits.train[0], BLANK, Target(["x"]), seed=1))
        await asyncio.sleep(0.3)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        assert job.cancelled()

    start = time.monotonic()
    asyncio.run(interrupted())
    assert time.monotonic() - start < PATIENCE


def test_without_walls_it_is_refused_until_the_config_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is recorded or paid for; in words it runs as the user would."""
    monkeypatch.setattr(commands, "proved_problem", lambda: "there are no user namespaces")
    (tmp_path / "grade.py").write_text("print(1)")
    with pytest.raises(ConfigError, match="a command cannot be confined here: there are no user namespaces") as caught:
        open_on(tmp_path, "tasks", data_settings(), grader=COMMAND)
    assert "env.sandbox: unconfined" in caught.value.hint
    assert graded(tmp_path, "print(1)", sandbox="unconfined").outcome == Measured(1, 1)


@behind_walls
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"grader_files": ["gone"]}, "env.grader_files: there is no 'gone'"),
        ({"grader_files": ["../elsewhere"]}, "env.grader_files: '../elsewhere' points outside of"),
        ({"grader_files": ["link"]}, "env.grader_files: 'link' points outside of"),
        ({"grader_files": "grade.py", "sandbox": "unconfined"}, "env.grader_files are copied behind walls"),
        ({"grader_files": ["grade.py"], "grader": "exact"}, "env.grader_files are for a grader that is a command"),
        ({"grader_files": [1]}, "env.grader_files: must be a list of files"),
        ({"grader_files": {"a": 1}}, "env.grader_files: must be a list of files"),
        ({"sandbox": "none"}, "env.sandbox: must be one of confined, unconfined"),
        ({"grader": {"command": ["program"]}}, "the sandbox does not see the program"),
    ],
)
def test_what_cannot_be_is_a_config_error(
    tmp_path: Path, options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found when the environment is opened."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    (project / "grade.py").write_text("print(1)")
    (project / "link").symlink_to(elsewhere)
    program = elsewhere / "program"
    program.write_text("#!/bin/sh\necho 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{elsewhere}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(ConfigError) as caught:
        open_on(project, "tasks", data_settings(), **{"grader": COMMAND, **options})
    assert says in str(caught.value)


@behind_walls
def test_files_are_read_once_for_a_run(tmp_path: Path) -> None:
    """A grader that is edited while a run goes on grades as before."""
    (tmp_path / "grade.py").write_text("print(1)")
    environment, splits = open_rows(tmp_path, "tasks", [{"id": "1", "input": "?"}], grader=COMMAND)
    (tmp_path / "grade.py").write_text("print(0)")
    episode = asyncio.run(environment.attempt(splits.train[0], BLANK, Target(["x"]), seed=1))
    assert episode.outcome == Measured(1, 1)
    assert json.dumps(episode.prediction) == '"x"'
