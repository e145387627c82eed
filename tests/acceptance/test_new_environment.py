"""An environment by entry point: written by the command, really installed, tested and trained on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.command import command, environment
from support.ready import PATIENCE


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `weather-report`, and what installing it made in `site`."""
    home = tmp_path_factory.mktemp("plugin")
    done = command("new-environment", "weather-report", cwd=home)
    assert done.code == 0, done.err
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
               "--disable-pip-version-check", "--target", "site", "./weather-report"]  # fmt: skip
    subprocess.run(install, cwd=home, check=True, capture_output=True, timeout=PATIENCE)
    return home


def with_plugin(home: Path) -> dict[str, str]:
    """The variables of a machine that has it installed."""
    return environment(PYTHONPATH=str(home / "site"))


def test_its_own_tests_pass(project: Path) -> None:
    """As they were written."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "weather-report"]
    env = with_plugin(project)
    done = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_config_finds_it_by_its_name(project: Path) -> None:
    """Its data load, its keys are known and others refused."""
    config = project / "weather-report" / "config.yaml"
    done = command("data", "check", config, "--json", cwd=project, env=with_plugin(project))
    assert (done.code, done.json["counts"]) == (0, {"train": 2, "val": 1, "test": 1})
    config.write_text(config.read_text().replace("  workers: 8", "  workers: 8\n  rolle: x"))
    wrong = command("data", "check", config, cwd=project, env=with_plugin(project))
    assert wrong.code == 2
    assert "env.rolle: environment 'weather-report' has no such option" in wrong.err
    assert "did you mean env.role?" in wrong.err
    config.write_text(config.read_text().replace("  rolle: x\n", ""))


def test_a_run_trains_on_it(project: Path) -> None:
    """With simulated models, which know nothing of it, to the end."""
    config = project / "weather-report" / "config.yaml"
    words = ("run", config, "--set", "model.backend=simulated", "--run", "one", "--json")
    done = command(*words, cwd=project, env=with_plugin(project))
    assert (done.code, done.json["status"]) == (0, "completed")
    assert command("replay", "one", "--check", cwd=project, env=with_plugin(project)).code == 0


def test_without_it_the_name_is_unknown(project: Path) -> None:
    """The message says what is installed."""
    done = command("data", "check", "weather-report/config.yaml", cwd=project)
    assert done.code == 2
    assert "no such adapter is installed" in done.err


@pytest.mark.parametrize("name", ["Weather", "../x", "a b", "tasks", "1st", "a--b", "class", ""])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    """And nothing is written."""
    done = command("new-environment", name, cwd=tmp_path)
    assert done.code == 2
    assert not [*tmp_path.iterdir()]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A folder with anything in it is left alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    assert command("new-environment", "weather", "mine", cwd=tmp_path).code == 2
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]
