"""What code behind walls can read of this machine, and that no answers are among it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.environments import CONFINED

from skillopt_es.adapters.sandboxes.places import is_visible, visible_answers

needs_walls = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
# With the packages of the Python that runs the tests, in a process whose prefix is the project.
LOOK = """
import asyncio, site, sys
site.addsitedir(sys.argv[1])
from skillopt_es.adapters.sandboxes.launch import Launch
from skillopt_es.adapters.sandboxes.namespaces import Namespaces
sandbox = Namespaces()
code = "import os, sys; print(sorted(os.listdir(sys.prefix))); open('/tmp/mine', 'w').write('x')"
print(asyncio.run(sandbox.run(Launch(command=[sandbox.python, "-I", "-c", code]))))
"""


@pytest.fixture
def project() -> Iterator[Path]:
    """A project below /tmp in which somebody made an environment of Python, beside a key and answers."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        venv.create(folder, symlinks=True)
        for name in (".env", "tasks.jsonl", "answers"):
            (Path(folder) / name).write_text("gold")
        yield Path(folder)


@needs_walls
def test_of_a_python_only_its_own_folders_are_shown_wherever_it_lies(project: Path) -> None:
    """Neither keys nor answers beside it; a Python below /tmp works behind walls that have a /tmp of their own."""
    packages = sysconfig.get_path("purelib")
    came = subprocess.run(
        [project / "bin" / "python", "-c", LOOK, packages], capture_output=True, text=True, check=False
    )
    assert "code=0" in came.stdout, came.stdout + came.stderr
    shown = {path.name for path in project.iterdir()} - {".env", "tasks.jsonl", "answers", ".gitignore"}
    assert f"stdout={str(sorted(shown)) + chr(10)!r}" in came.stdout


def test_answers_among_what_is_shown_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the path that the config says or by links; beside this Python's folders they are out of sight."""
    (tmp_path / "lib" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to("lib/data")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert visible_answers([tmp_path, tmp_path / "tasks.jsonl", tmp_path / "runs"]) == ""
    for place in (tmp_path / "link", tmp_path / "lib", Path("/usr/src/project")):
        assert f"{place.resolve()} lies among the files of the system or of this Python" in visible_answers([place])
    assert is_visible(str(tmp_path / "lib" / "data"))
    assert not is_visible(str(tmp_path / "tasks.jsonl"))
