"""`retract --apply`, then `resume`, `replay --check` and `verify`: each form of it, in each algorithm that trains."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.in_process import Cli, called

from skillopt_es.events.catalog import Recorded, RolloutCompleted
from skillopt_es.events.log import EventLog


def _train_search(folder: Path) -> None:
    from support.scripted import ticking

    from skillopt_es.config import load_config
    from skillopt_es.sessions.session import start
    from skillopt_es.sessions.wiring import Session

    config = load_config(None, ["train.algorithm=search"])
    asyncio.run(start(config, folder / "runs" / "demo", Session(now=ticking(), clock=lambda: 0.0)))


@pytest.fixture
def run_of(
    demo_run: Path, skills_demo: Path, once: Callable[[str, Callable[[Path], object]], Path], tmp_path: Path
) -> Callable[[str], Path]:
    """A copy of a complete run of an algorithm's demo, as `runs/demo`."""

    def copied(algorithm: str) -> Path:
        if algorithm == "search":
            found = once("demo-of-search", _train_search) / "runs" / "demo"
        else:
            found = {"classic": demo_run, "skills": skills_demo / "runs" / "demo"}[algorithm]
        return Path(shutil.copytree(found, tmp_path / "runs" / "demo"))

    return copied


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over those runs."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", tmp_path / "runs")


Row = tuple[int, RolloutCompleted]


def results(folder: Path) -> list[Row]:
    """All results, each with the number of its event."""
    with EventLog.open(folder) as log:
        return [_row(recorded) for recorded in log.read(types=("RolloutCompleted",))]


def _row(recorded: Recorded) -> Row:
    assert isinstance(recorded.event, RolloutCompleted)
    return recorded.seq, recorded.event


def forms(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """What is retracted, by what is particular about it: an item of each split, results of early and late steps."""
    train = [row for row in rows if row[1].purpose == "train"]
    [first, *_], [*_, last] = train, train
    found = {
        "train item, early": ("--item", first[1].item),
        "train item, late": ("--item", _met_last(train).item),
        "validation item": ("--item", next(row for _, row in rows if row.purpose == "selection").item),
        "test item": ("--item", next(row for _, row in rows if row.purpose == "test").item),
        "first result, by event": ("--trajectory", str(first[0])),
        "last result, by slot": ("--trajectory", f"{last[1].place}/item/{last[1].item}"),
    }
    stages: dict[str, Row] = {}
    for row in train:  # the last result of each kind of place: a batch, a screen, a further draw
        parts = row[1].place.split("/")
        stages["/".join(part.rstrip("0123456789") for part in parts[2:])] = row
    found |= {f"result at {stage}": ("--trajectory", str(seq)) for stage, (seq, _) in stages.items()}
    between = [row for row in train if _between(row, train)]
    if between:
        found["result between two others under one text"] = ("--trajectory", str(between[-1][0]))
    return found


def _met_last(train: Sequence[Row]) -> RolloutCompleted:
    first = {row.item: row for _, row in reversed(train)}
    return max(first.values(), key=[each for _, each in train].index)


def _between(row: Row, train: Sequence[Row]) -> bool:
    """Whether an item was tried under the same text before, and in a later step."""
    same = [seq for seq, each in train if (each.item, each.skill) == (row[1].item, row[1].skill)]
    return same[0] < row[0] < same[-1]


SOME = {
    "classic": ("train item, early",),
    "search": ("validation item", "result between two others under one text"),
    "skills": ("last result, by slot",),
}
"""What each test run tries; CI's exhaustive tests try the other forms in every algorithm."""


@pytest.mark.parametrize(
    ("algorithm", "others"),
    [*((each, False) for each in SOME), *(pytest.param(each, True, marks=pytest.mark.slow) for each in SOME)],
)
def test_each_fork_goes_on_to_its_end(algorithm: str, others: bool, run_of: Callable[[str], Path], cli: Cli) -> None:
    """It never meets the evidence again, its decisions are derived again, and `verify` vouches for it."""
    folder = run_of(algorithm)
    found = forms(results(folder))
    for number, form in enumerate([each for each in found if (each in SOME[algorithm]) != others]):
        name, words = f"fork-{number}", found[form]
        made = cli("retract", "demo", *words, "--apply", "--reason", "wrong", "--name", name)
        assert made.code == 0, (form, made.err)
        for command in (("resume", name, "--quiet"), ("replay", name, "--check"), ("verify", name)):
            done = cli(*command)
            assert done.code == 0, (form, command, done.err)
        met = {(row.place, row.item) for _, row in results(folder.parent / name)}
        if words[0] == "--item":
            assert words[1] not in {item for _, item in met}, form
        else:
            again = cli("retract", "demo", *words, "--json").json
            assert (again["place"], again["item"]) not in met, form


def test_there_are_results_of_every_kind_in_a_search(run_of: Callable[[str], Path]) -> None:
    """Or the test above would try less than it says."""
    found = forms(results(run_of("search")))
    places = ("b", "b/repeat-", "screen/edit-", "screen/edit-/repeat-", "screen/together/repeat-")
    assert {f"result at {place}" for place in places} <= set(found)
    assert "result between two others under one text" in found
