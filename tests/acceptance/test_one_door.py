"""Every command, every page and every function of Python that uses a run refuses one that `verify` would reject."""

from __future__ import annotations

import ast
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
from support.in_process import Cli, Done, called
from support.params import parametrized
from support.tamper import seqs_of

import skillopt_es
from skillopt_es.cli.main import cli as commands
from skillopt_es.events.catalog import CandidateGated
from skillopt_es.events.errors import LogError
from skillopt_es.events.schema import LOG_FILE

ROOT = Path(skillopt_es.__file__).parent

# What each command is given where RUN is the run: those that take none say why.
WORDS: dict[str, tuple[str, ...]] = {
    "resume": ("RUN", "--quiet"),
    "continue": ("RUN", "--name", "on", "--dir", "HERE", "--quiet"),
    "steer": ("RUN", "stop", "--why", "a test", "--wait", "0"),
    "fork": ("RUN", "--name", "forked"),
    "replay": ("RUN",),
    "log": ("RUN",),
    "runs": ("--dir", "RUNS"),
    "status": ("RUN",),
    "show": ("RUN", "1"),
    "compare": ("RUN", "OTHER"),
    "regate": ("RUN", "--set", "evaluation.gate_metric=soft"),
    "gate calibrate": ("RUN",),
    "rescore": ("RUN", "--set", "env.grader=contains"),
    "lineage": ("RUN",),
    "explain": ("RUN", "step", "1"),
    "why-not": ("RUN",),
    "blame": ("RUN",),
    "skills": ("RUN",),
    "diff": ("RUN", "step", "1", "step", "2"),
    "retract": ("RUN", "--item", "ITEM"),
    "bisect": ("RUN", "--item", "ITEM"),
    "report": ("RUN", "--out", "OUT"),
    "usage": ("RUN",),
    "verify": ("RUN",),
    "eval": ("--run", "RUN", "--split", "val", "--limit", "1", "--dir", "EVALS"),
    "export": ("RUN", "OUT"),
    "freeze": ("RUN", "--out", "OUT"),
    "install": ("RUN", "--to", "SKILLS", "--name", "mine"),
    "adopt": ("RUN",),
    "handoff answer": ("RUN", "0123456789", "FILE"),
    "handoff list": ("RUN",),
}
TAKES_NO_RUN = {
    "run": "begins one; --again is tested below",
    "sweep run": "its runs are those of its own folder; tests/sweeps",
    "sweep status": "reads the log of a sweep",
    "schedule": "prints text",
    "estimate": "earlier runs are only its experience; tested below",
    "ui": "its pages are tested below",
    "thaw": "its file has a hash of its own",
    "uninstall": "goes by receipts",
    "import": "reads a folder of the original",
    "import-tasks": "reads data",
    "data build": "reads data",
    "data check": "reads data",
    "data fetch-plan": "reads data",
    "harvest propose": "its calls are no run",
    "harvest review": "reads a file of its own",
    "harvest scan": "reads conversations",
    "harvest tasks": "reads a file of its own",
    "init": "writes a project",
    "new-environment": "writes a package",
    "doctor": "reads a config",
}
CUT = r"the log ends at event 200|events are missing"
# These show damaged runs. They end with 1 and a sentence on stderr, but for two whose result says it.
ON_STDOUT = {"verify": 1, "runs": 0}


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    """Each command by its whole name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from leaves(found, f"{name} {each}".strip())
    else:
        yield name


def sql(run: Path, *statements: str) -> None:
    """What somebody does who drops the triggers first, and puts them back."""
    with closing(sqlite3.connect(run / LOG_FILE)) as connection, connection:
        triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for statement in (*(f"drop trigger {name}" for name, _ in triggers), *statements):
            connection.execute(statement)
        for _, text in triggers:
            connection.execute(text)


def cut(run: Path) -> None:
    """The end of the log is missing."""
    sql(run, "delete from events where seq > 200")


def edited(run: Path) -> None:
    """One verdict is another one."""
    seq = seqs_of(run, CandidateGated)[1]
    sql(run, f"update events set data = replace(data, 'accept', 'eccept') || ' ' where seq = {seq}")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands in this process."""
    return called(capsys)


@pytest.fixture
def places(demo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What stands for the words in capitals: a run of its own that may be damaged, and a whole one."""
    monkeypatch.chdir(tmp_path)
    run = shutil.copytree(demo_run, tmp_path / "runs" / "demo", ignore=shutil.ignore_patterns("log.db-*"))
    other = shutil.copytree(demo_run, tmp_path / "other", ignore=shutil.ignore_patterns("log.db-*"))
    item = skillopt_es.open_run(run).state().started.splits.val[0]  # type: ignore[union-attr]
    (tmp_path / "answer").write_text("yes", encoding="utf-8")
    names = {"FILE": str(tmp_path / "answer")} | {
        each: str(tmp_path / each.lower()) for each in ("HERE", "OUT", "EVALS", "SKILLS")
    }
    return {**names, "RUN": str(run), "RUNS": str(run.parent), "OTHER": str(other), "ITEM": item}


def places_of(places: dict[str, str]) -> set[Path]:
    """All files, but for those that SQLite makes beside a log for a reader."""
    return {each for each in Path(places["HERE"]).parent.rglob("*") if not each.name.startswith("log.db-")}


def called_with(cli: Cli, command: str, places: dict[str, str]) -> Done:
    """A command of the table."""
    return cli(*command.split(), *(places.get(word, word) for word in WORDS[command]))


def test_each_command_is_in_one_of_the_tables() -> None:
    """A new one has to say whether it reads a run, and is then tested."""
    assert sorted([*WORDS, *TAKES_NO_RUN]) == sorted(leaves(commands))


@parametrized("command", WORDS, by_default=8)
def test_a_log_without_its_end_is_not_used(command: str, cli: Cli, places: dict[str, str]) -> None:
    """One sentence and exit code 1; nothing is written."""
    cut(Path(places["RUN"]))
    before = sorted(places_of(places))
    done = called_with(cli, command, places)
    said = done.out if command in ON_STDOUT else done.err
    assert done.code == ON_STDOUT.get(command, 1), done
    assert re.search(CUT, said), done
    if command != "report":  # which says on its page, too, where it ends
        assert sorted(places_of(places)) == before


@parametrized("command", WORDS, by_default=8)
def test_an_edited_row_is_not_used(command: str, cli: Cli, places: dict[str, str]) -> None:
    """Either the command says so, or it does not read that row and prints what it prints of a whole run."""
    run = Path(places["RUN"])
    edited(run)
    done = called_with(cli, command, places)
    said = done.out if command in ON_STDOUT else done.err
    if "was changed after it was recorded" in said:
        assert done.code == ON_STDOUT.get(command, 1), done
        return
    shutil.rmtree(run)
    shutil.copytree(places["OTHER"], run)
    for name in ("HERE", "OUT", "EVALS", "SKILLS"):
        shutil.rmtree(places[name], ignore_errors=True)
    whole = called_with(cli, command, places)
    assert (done.code, done.out) == (whole.code, whole.out)
    assert command in ("show", "usage", "bisect", "handoff list", "handoff answer"), "it should have read that row"


def test_a_fork_from_before_the_damage_is_a_whole_run(cli: Cli, places: dict[str, str]) -> None:
    """It is made with a warning, can be verified and resumed; a moment that is gone is refused."""
    cut(Path(places["RUN"]))
    lost = cli("fork", places["RUN"], "--until", "step", "9", "--name", "late")
    assert (lost.code, (Path(places["RUNS"]) / "late").exists()) == (1, False), lost
    early = cli("fork", places["RUN"], "--until", "step", "1", "--name", "early")
    assert (early.code, bool(re.search(CUT, early.err))) == (0, True), early
    forked = str(Path(places["RUNS"]) / "early")
    assert cli("resume", forked, "--quiet").code == 0
    assert cli("verify", forked).code == 0


@pytest.mark.parametrize(
    "damage",
    [
        "update calls set input_tokens = input_tokens + 1 where n = 7",
        "update forms set request = request || ' ' where id = 1",
        "update blobs set size = size + 1 where rowid = 3",
    ],
)
def test_a_fork_takes_over_nothing_that_was_changed(cli: Cli, places: dict[str, str], damage: str) -> None:
    """Also what no event says: calls, their forms and texts. No half of a fork is left."""
    sql(Path(places["RUN"]), damage)
    done = cli("fork", places["RUN"], "--until", "step", "1", "--name", "early")
    assert (done.code, (Path(places["RUNS"]) / "early").exists()) == (1, False), done
    assert "damaged" in done.err or "changed" in done.err, done


def test_another_run_is_not_begun_with_its_config(cli: Cli, places: dict[str, str]) -> None:
    """`run --again` reads the first event and what changed its settings since."""
    cut(Path(places["RUN"]))
    done = cli("run", "--again", places["RUN"], "--name", "again", "--dry-run")
    assert (done.code, bool(re.search(CUT, done.err))) == (1, True), done


def test_an_estimate_learns_nothing_from_a_damaged_run(cli: Cli, places: dict[str, str]) -> None:
    """It is as if that run were not there."""
    without = cli("estimate", "--dir", places["HERE"]).out
    assert cli("estimate", "--dir", places["RUNS"]).out != without
    cut(Path(places["RUN"]))
    assert cli("estimate", "--dir", places["RUNS"]).out == without


def test_python_does_not_use_it_either(places: dict[str, str]) -> None:
    """Each function of a run."""
    run = skillopt_es.open_run(places["RUN"])
    cut(run.folder)
    uses: list[Callable[[], object]] = [
        run.state,
        lambda: list(run.events()),
        lambda: run.skill("best"),
        lambda: run.skill("initial"),
        run.test_score,
        run.summary,
        run.lineage,
        run.blame,
        run.usage,
        run.rows,
        lambda: run.status,
        lambda: list(run.follow()),
        lambda: skillopt_es.resume(run),
        lambda: skillopt_es.train_on(run, name="on"),
        lambda: skillopt_es.compare(run),
        lambda: skillopt_es.evaluate(run, splits=["val"]),
        lambda: run.explain(1),
        lambda: run.fork("step 1"),
        lambda: run.export(run.folder.parent / "skill"),
    ]
    for use in uses:
        with pytest.raises(LogError, match=CUT):
            use()
    assert not run.verify().ok


def test_every_page_of_a_damaged_run_says_so(places: dict[str, str]) -> None:
    """Also those that show another part of it."""
    asking = pytest.importorskip("support.asking", reason="the page needs the extra `ui`")
    run = Path(places["RUN"])
    cut(run)
    page = asking.Asking(directory=run.parent)
    for path in ("", "/scores", "/items", f"/item?item={places['ITEM']}", "/skill", "/refused", "/cost", "/config",
                 "/events", "/event/3", "/step/1"):  # fmt: skip
        shown = page.get(f"/run/demo{path}").text
        assert "the log ends at event 200" in shown, path
    assert "the log ends at event 200" in page.get("/").text
    shutil.copytree(places["OTHER"], run.parent / "other")
    assert "the log ends at event 200" in page.get("/compare?run=demo&run=other").text


OPENED_ELSEWHERE = {
    "runs/reading.py": "the door itself",
    "runs/overview.py": "a part of the door: its overview says what is wrong",
    "ui/stream.py": "what is new on a page that says what is wrong",
    "audit/erasing.py": "which runs hold a text that is to be erased: damaged ones, too",
    "sweeps/children.py": "whether a run has begun; `resume` opens it",
    "testing/algorithms.py": "logs that it has just written",
}


def test_no_other_module_opens_a_log() -> None:
    """`EventLog.open` checks rows, not whether the log is whole."""
    found = set()
    for file in ROOT.rglob("*.py"):
        name = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "open" and ast.unparse(node.value) == "EventLog":
                found.add(name)
    assert found == set(OPENED_ELSEWHERE)
