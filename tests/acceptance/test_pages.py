"""Every command of README and docs runs as it stands, in order, in one folder a page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from attrs import frozen
from support.command import COMMAND, Clerk, edit, environment
from support.command import command as installed_command
from support.doc_commands import ROOT, blocks_that_hide_commands, commands_in_tables, shell_commands
from support.downloads import MADE
from support.model_server import ModelServer
from support.params import each_of
from support.ready import PATIENCE

PLAIN = re.compile(r"[\w ./=:@,+-]+")  # means the same to a shell and to `split`
DEMO_TASKS = ROOT / "configs" / "demo" / "tasks.jsonl"
GENERATED = {"docs/commands.md"}  # a page of forms, not of commands
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]
WITH_COMMANDS = [page for page in PAGES if page not in GENERATED and shell_commands(page)]


@frozen
class Desk:
    """A reader's folder, shell and model endpoint."""

    folder: Path
    server: ModelServer
    variables: Mapping[str, str]

    def types(self, line: str) -> subprocess.CompletedProcess[str]:
        """The line, to its end: in a shell, unless it is a plain command of ours and nothing else."""
        if line.startswith("skillopt-es ") and PLAIN.fullmatch(line) and not (self.folder / "site").exists():
            plain = {name: value for name, value in self.variables.items() if name != "PYTHONPATH"}
            done = installed_command(*line.split()[1:], cwd=self.folder, env={**plain, "PYTHONWARNINGS": "error"})
            return subprocess.CompletedProcess(line, done.code, done.out, done.err)
        words = ["bash", "-ec", line]
        return subprocess.run(
            words, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=PATIENCE, check=False
        )


# What the reader of a page has before its first command.
def _no_files(desk: Desk) -> None:
    """Nothing."""


def _corrected_labels(desk: Desk) -> None:
    (desk.folder / "fixed.jsonl").write_bytes(DEMO_TASKS.read_bytes())


def _downloads(name: str) -> Callable[[Desk], None]:
    def make(desk: Desk) -> None:
        source, checkout = MADE[name](desk.folder / "made")
        (desk.folder / "DOWNLOADS").mkdir()
        source.rename(desk.folder / "DOWNLOADS" / name)
        if checkout is not None:
            checkout.rename(desk.folder / "SKILLOPT_CHECKOUT")

    return make


def _questions_to_answer(desk: Desk) -> None:
    assert desk.types("skillopt-es init mine").returncode == 0
    config = yaml.safe_load((desk.folder / "mine" / "config.yaml").read_text())
    config["model"] |= {"base_url": desk.server.base_url, "target_backend": "handoff", "target": "me"}
    config["env"]["data_path"] = "mine/tasks.jsonl"
    config["env"]["skill_init"] = "mine/SKILL.md"
    config["env"]["grader"] = "exact"
    (desk.folder / "config.yaml").write_text(yaml.safe_dump(config))
    (desk.folder / "answer.txt").write_text("P2\n")


def _a_sweep(desk: Desk) -> None:
    for name in ("SKILL.md", "tasks.jsonl"):
        (desk.folder / name).write_bytes((DEMO_TASKS.parent / name).read_bytes())
    (desk.folder / "config.yaml").write_text((DEMO_TASKS.parent / "demo.yaml").read_text())
    (desk.folder / "sweep.yaml").write_text("config: config.yaml\nseeds: [47, 48]\n")


def _conversations(desk: Desk) -> None:
    shutil.copytree(ROOT / "tests/adapters/conversations/written", desk.folder, dirs_exist_ok=True)
    _a_sweep(desk)
    done = desk.types("skillopt-es run config.yaml --name my-run --quiet --set train.num_epochs=1")
    assert done.returncode == 0, done.stderr


def _judged_tasks(desk: Desk) -> None:
    _a_sweep(desk)
    config = yaml.safe_load((desk.folder / "config.yaml").read_text())
    config["model"] |= {"judge": "a-judge"}
    config["env"] |= {"grader": "judge", "rubric": {"right": "It says what the reference says."}}
    (desk.folder / "config.yaml").write_text(yaml.safe_dump(config))


def _tables(desk: Desk) -> None:
    (desk.folder / "questions.csv").write_text("question,answer\nSay 1,1\n")
    (desk.folder / "reviews.tsv").write_text("body\tlabel\nGood\t1\n")


BEFORE: Mapping[str, Callable[[Desk], None]] = {
    "docs/audit.md": _corrected_labels,
    "docs/data.md": _tables,
    "docs/harnesses.md": _questions_to_answer,
    "docs/judges.md": _judged_tasks,
    "docs/harvest.md": _conversations,
    "docs/sweeps.md": _a_sweep,
    **{f"docs/benchmarks/{name}.md": _downloads(name) for name in MADE},
}
BENCH = f"'{sys.executable}' '{ROOT / 'tests' / 'bench' / 'bench_learning.py'}'"
KEY_OF = "skillopt-es handoff list mine --json | grep -m 1 '\"key\"' | cut -d '\"' -f 4"


def _built(name: str) -> str:
    return f"skillopt-es data build {name} --from DOWNLOADS/{name} --out data/{name}_split"


# What runs in a line's place: .ci/run does README's first two in fresh clones; tests/exports has extras and servers.
INSTEAD: Mapping[str, Mapping[str, str]] = {
    "docs/sql.md": {  # its script lies beside ours only where both were installed there
        each.line: each.line.replace("sqlite-utils", f"'{sys.executable}' -m sqlite_utils", 1)
        for each in shell_commands("docs/sql.md")
        if each.line.startswith("sqlite-utils")
    },
    "README.md": {
        "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/skillopt-es run": "skillopt-es run",
        "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest -n auto": "true",
        "export OPENAI_API_KEY=...": "true",  # it is in the desk's environment
    },
    "docs/exports.md": {
        "skillopt-es export my-run --format mlflow --tracking-uri sqlite:///mlflow.db": "true",
        "skillopt-es export my-run --format otel --endpoint http://localhost:4318": "true",
        "datasette look/run.db runs/my-run/log.db --metadata look/metadata.yaml": "true",
    },
    "docs/harnesses.md": {
        "skillopt-es handoff answer mine KEY answer.txt": f"skillopt-es handoff answer mine $({KEY_OF}) answer.txt"
    },
    # Its tests are run with a project of `init` by tests/cassettes/test_plugin.py.
    "docs/testing.md": {"pytest --skillopt-record": "true", "pytest": "true"},
    # The page is served until somebody ends it; tests/ui looks at it, and steers a run that is at work.
    "docs/ui.md": {
        # a free port: the usual one may be somebody else's on this machine
        each.line: f"timeout 5 {each.line} --port 0 || test $? -eq 124" if each.line == "skillopt-es ui" else "true"
        for each in shell_commands("docs/ui.md")
    },
    "docs/harvest.md": {"skillopt-es harvest review": "echo k | skillopt-es harvest review"},
    # A reader has all that was released; what is made here is less, so it comes with its own list.
    **{f"docs/benchmarks/{name}.md": {_built(name): f"{_built(name)} --ids SKILLOPT_CHECKOUT"} for name in MADE},
    # In a clone of this repository, where the bench is; a tenth of it here.
    "docs/learning.md": {
        line: "true" if "gepa==" in line else f"{BENCH} --worlds rules --seeds 1 --algorithms classic"
        for line in (each.line for each in shell_commands("docs/learning.md"))
    },
    "docs/search.md": {
        "skillopt-es run config.yaml --set train.algorithm=search --set budget.max_calls=300": "skillopt-es run --quiet"
        " --set train.algorithm=search --set budget.max_calls=300",
    },
    # CI installs Ray in a place of its own, and tries it there.
    "docs/scale.md": {each.line: "true" for each in shell_commands("docs/scale.md")},
    # tests/test_one_page.py makes the file of this page, and runs it.
    "docs/one-page.md": {each.line: f"exit {each.code}" for each in shell_commands("docs/one-page.md")},
    # tests/algorithms builds the package of this page and trains by it.
    "docs/algorithms.md": {each.line: "true" for each in shell_commands("docs/algorithms.md")},
    "docs/environments.md": {
        "export OPENAI_API_KEY=...": "true",
        "pip install -e weather pytest && pytest weather": "pip install -q --no-deps --no-build-isolation --no-index "
        "--target site ./weather && python -m pytest -q -p no:cacheprovider weather",
    },
}


def _with_our_endpoint(desk: Desk) -> None:
    for config in desk.folder.glob("*/config.yaml"):
        if "https://api.openai.com/v1" in config.read_text():
            edit(config, "https://api.openai.com/v1", desk.server.base_url)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty folder, with an endpoint that plays both models."""
    with ModelServer(Clerk(ROOT / "configs" / "init" / "tasks.jsonl")) as server:
        path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
        variables = environment(PATH=path, HOME=str(tmp_path), PYTHONPATH=str(tmp_path / "site"), PYTHONWARNINGS="")
        yield Desk(tmp_path, server, variables)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page == "README.md" else pytest.mark.slow) for page in WITH_COMMANDS]
)
def test_the_commands_of_a_page_run_in_order(page: str, desk: Desk) -> None:
    """Each ends as the page says: well, or with the exit code of its remark."""
    BEFORE.get(page, _no_files)(desk)
    for command in shell_commands(page):
        done = desk.types(INSTEAD.get(page, {}).get(command.line, command.line))
        assert done.returncode == command.code, f"{command.line}\n{done.stdout[-2000:]}\n{done.stderr}"
        _with_our_endpoint(desk)


@pytest.mark.slow
def test_every_question_of_the_audit_page_is_answered(desk: Desk) -> None:
    """Each command of its table, on complete runs by the names that it uses."""
    for line in (
        *(f"skillopt-es run --run {name} --quiet" for name in ("one-run", "another-run", "a-fork", "my-run")),
        "skillopt-es install my-run --name my-skill --to claude",
    ):
        assert desk.types(line).returncode == 0, line
    commands = commands_in_tables("docs/audit.md")
    assert len(commands) > 20
    for command in commands:
        done = desk.types(command.line)
        assert done.returncode == 0, f"{command.line}\n{done.stdout[-2000:]}\n{done.stderr}"
        assert done.stdout


@each_of("page", PAGES)
def test_a_block_of_commands_says_that_it_is_one(page: str) -> None:
    """Else nothing would run it."""
    assert not blocks_that_hide_commands(page)


def test_what_runs_in_a_lines_place_has_such_a_line() -> None:
    """Else it is left over from a page that has changed."""
    left = {
        (page, line)
        for page, lines in INSTEAD.items()
        for line in lines
        if line not in {command.line for command in shell_commands(page)}
    }
    left -= {(f"docs/benchmarks/{name}.md", _built(name)) for name in MADE}  # some of them name --ids
    assert not left
