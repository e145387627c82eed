"""Where Python has no `fcntl` and no `resource`, as on Windows; and where the package is not installed, but cloned."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.audited import trained
from support.ready import PATIENCE

ROOT = Path(__file__).parent.parent.parent
WITHOUT = """
import sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
from skillopt_es.cli.main import main
for words in sys.argv[1:]:
    try:
        main(words.split())
    except SystemExit as ended:
        print("-- code", ended.code)
"""


def without_unix(*commands: str) -> str:
    """What the commands print, one after the other, in a process without these modules."""
    words = [sys.executable, "-c", WITHOUT, *commands]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=PATIENCE
    )
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("plain", tmp_path_factory.mktemp("plain"))


@pytest.mark.slow
def test_a_run_can_be_read_anywhere(run: Path, tmp_path: Path) -> None:
    """Every command that only reads does its work."""
    commands = [
        *("status", "replay", "replay --check", "log", "usage", "verify", "lineage", "blame", "why-not"),
        *("explain step 1", "diff step 1", "show 3", "compare", f"report --out {tmp_path / 'page.html'}"),
        f"export --format jsonl {tmp_path / 'out.jsonl'}",
    ]
    where = [f"{name} {run}{rest}" for name, _, rest in (_parts(each) for each in commands)]
    said = without_unix(*where, f"runs --dir {run.parent}")
    assert "bug in skillopt-es" not in said
    assert said.count("-- code 0") == len(commands) + 1, said


def _parts(command: str) -> tuple[str, str, str]:
    name, space, rest = command.partition(" ")
    return name, space, f"{space}{rest}"


def files_of(run: Path) -> set[str]:
    """All but what SQLite leaves beside a log that somebody has read."""
    return {path.name for path in run.iterdir()} - {"log.db-shm", "log.db-wal"}


def test_where_nothing_can_be_locked_nothing_is_written(run: Path, tmp_path: Path) -> None:
    """In one sentence, and before anything is made."""
    before = files_of(run)
    said = without_unix(
        f"run --dir {tmp_path / 'runs'}", f"resume {run}", f"fork {run} --until step 1", "doctor", "eval x.yaml"
    )
    assert said.count("this system has no lock (flock) that keeps a second writer out of a run") >= 3
    assert "bug in skillopt-es" not in said, said
    assert files_of(run) == before
    assert not (tmp_path / "runs").exists()


def test_a_clone_is_the_package_from_its_root() -> None:
    """`python -m skillopt_es` where only the dependencies are installed."""
    site = Path(click.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-S", "-m", "skillopt_es", "verify", "--help"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--anchor" in done.stdout
