"""What is built from this tree can be installed and used on its own."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from attrs import evolve
from support.desk import Desk

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow  # `.ci/run` builds and installs a wheel each time
FOLDERS = ("skillopt_es", "adapters", "configs", "events", "projections")
DATA = (".css", ".js", ".json", ".jsonl", ".md", ".png", ".txt", ".xlsx", ".yaml")


def tracked() -> list[str]:
    """The files of this tree that git knows or does not ignore."""
    words = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("needs a git checkout: what is not tracked must not be built")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a wheel and an sdist, built from the tracked files alone."""
    pytest.importorskip("build")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def install(built: Path, folder: Path) -> Path:
    """A fresh environment that sees the dependencies of this one, with the source distribution in it; its command."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    dependencies = Path(pytest.__file__).parents[1]
    [distribution] = built.glob("*.tar.gz")
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        site,
        distribution,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    command = folder / "bin" / "skillopt-es"
    command.write_text(f"#!{folder}/bin/python\nimport sys\nfrom skillopt_es.cli.main import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return command


def test_the_demo_runs_from_an_installed_distribution(built: Path, desk: Desk, tmp_path: Path) -> None:
    """With its prompts, configs and adapters from there, not from this tree; `.ci/run` installs a wheel."""
    command = install(built, tmp_path / "venv")
    words = [tmp_path / "venv" / "bin" / "python", "-c", "import skillopt_es.events as e; print(e.__path__[0])"]
    where = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    assert Path(where).is_relative_to(tmp_path)
    done = evolve(desk, command=command).run("run", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert done.json["status"] == "completed"
    assert done.json["best"]["value"] > 0.9
    project = evolve(desk, command=command).run("init", "mine")
    assert project.code == 0
    assert (tmp_path / "mine" / "grader.py").exists()


def test_the_wheel_holds_what_is_needed_and_nothing_else(built: Path) -> None:
    """One namespace, typed, with data files, without tests."""
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"skillopt_es"}
    for needed in (
        "skillopt_es/py.typed",
        "skillopt_es/configs/base.yaml",
        "skillopt_es/configs/demo/tasks.jsonl",
        "skillopt_es/configs/demo/spreadsheetbench/dataset.json",
        "skillopt_es/configs/demo/spreadsheetbench/spreadsheet/total-01/1_total-01_input.xlsx",
        "skillopt_es/configs/init/grader.py.txt",
        "skillopt_es/events/catalog.py",
    ):
        assert needed in names
    beside = [Path(name) for name in tracked() if name.split("/")[0] in FOLDERS and Path(name).suffix in DATA]
    data = {str(path if path.parts[0] == "skillopt_es" else Path("skillopt_es") / path) for path in beside}
    assert len(data) > 50
    assert data <= names
    packages = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "skillopt_es").rglob("*.py")}
    assert packages <= {str(Path(name).parent) for name in names}


def test_the_sdist_holds_everything_but_the_workshop(built: Path) -> None:
    """All five folders, licence, readme, change log, all tests and docs: whoever packages it can test it."""
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    workshop = {name for name in tracked() if name.startswith(".")}  # .ci, .gitignore
    assert not set(tracked()) - workshop - names
