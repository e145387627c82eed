"""`skillopt-es run` in an empty folder: the first thing anybody does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.desk import Desk, Done
from support.logs import events_of

from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    Event,
    MetaSkillWritten,
    RunCompleted,
    RunStarted,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.verify import verify
from skillopt_es.sessions.session import read_state


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, Done]:
    """A folder in which the demo was run once, under the name `first`, and what was printed."""
    desk = Desk(tmp_path_factory.mktemp("demo"))
    return desk, desk.run("run", "--run", "first")


@pytest.fixture(scope="module")
def first(demo: tuple[Desk, Done]) -> Path:
    """The demo's run folder."""
    desk, _ = demo
    return desk.folder / "runs" / "first"


def test_the_demo_trains_without_key_or_network(demo: tuple[Desk, Done], first: Path) -> None:
    """It exits with 0, ends its run, and its log is whole."""
    _, done = demo
    assert done.code == 0
    assert isinstance(events_of(first)[-1], RunCompleted)
    assert verify(first).ok


def test_the_demo_makes_the_skill_better(first: Path) -> None:
    """Validation and test scores both end far above where they began."""
    state = read_state(first)
    assert state.completed is not None
    assert state.completed.test_initial is not None
    assert state.completed.test_best is not None
    assert state.completed.test_best.hard > state.completed.test_initial.hard + 0.5
    assert state.best is not None
    assert state.best.value is not None
    assert state.started is not None
    baseline = state.measured[state.started.skill.hash].score.hard
    assert state.best.value > baseline + 0.5


@pytest.mark.parametrize(
    "shown",
    [
        lambda event: isinstance(event, CandidateGated) and event.verdict.action == "accept_new_best",
        lambda event: isinstance(event, CandidateGated) and event.verdict.action == "reject",
        lambda event: isinstance(event, StepSkipped),
        lambda event: isinstance(event, SlowUpdateApplied) and event.verdict.action == "placeholder",
        lambda event: isinstance(event, SlowUpdateApplied) and event.verdict.action == "reject",
        lambda event: isinstance(event, SlowUpdateApplied) and event.verdict.action.startswith("accept"),
        lambda event: isinstance(event, MetaSkillWritten) and event.result == "written",
        lambda event: isinstance(event, RunCompleted) and event.test_best is not None,
    ],
    ids=[
        "accepted",
        "rejected",
        "skipped",
        "slow-placeholder",
        "slow-rejected",
        "slow-accepted",
        "meta-skill",
        "test-scores",
    ],
)
def test_the_demo_shows_what_can_happen(first: Path, shown: Callable[[Event], bool]) -> None:
    """Each kind of decision is in its log."""
    assert any(map(shown, events_of(first)))


def test_results_go_to_stdout_and_progress_to_stderr(demo: tuple[Desk, Done]) -> None:
    """Neither has a line of the other."""
    _, done = demo
    assert done.out.startswith("run         first (completed)\n")
    assert "best skill  runs/first/best/SKILL.md" in done.out
    assert "epoch 1: 4 batches" in done.err
    assert "step 1: accept new best" in done.err
    assert not set(done.out.splitlines()) & set(done.err.splitlines())
    assert "\x1b" not in done.out + done.err


def test_the_written_skill_is_the_best_of_the_log(first: Path) -> None:
    """`best/SKILL.md` has the bytes of the best skill that the log knows."""
    best = read_state(first).best
    assert best is not None
    assert (first / "best" / "SKILL.md").read_bytes() == best.skill.text.encode()


def test_json_is_one_document_on_stdout(desk: Desk, first: Path) -> None:
    """It says what the log says; `--quiet` leaves nothing else."""
    done = desk.run("run", "--json", "--quiet", "--run", "other")
    assert (done.code, done.err) == (0, "")
    state = read_state(first)
    assert state.best is not None
    assert done.json["run"] == "other"
    assert done.json["status"] == "completed"
    assert done.json["best"]["hash"] == state.best.skill.hash
    assert done.json["accepted"] == state.counts.accepted
    assert Path(desk.folder, done.json["best"]["file"]).read_text() == state.best.skill.text


def test_a_second_run_is_another_folder(desk: Desk) -> None:
    """Without a name each run gets its own, also within a second."""
    for _ in range(2):
        assert desk.run("run", "--quiet", "--set", "train.num_epochs=1", "--set", "env.limit=2").code == 0
    runs = list((desk.folder / "runs").iterdir())
    assert len(runs) == 2
    assert all(run.name.startswith("demo-") for run in runs)


def test_an_existing_name_is_refused(demo: tuple[Desk, Done], first: Path) -> None:
    """It exits with 2, says what to type instead, and touches nothing."""
    desk, _ = demo
    before = (first / "log.db").read_bytes()
    done = desk.run("run", "--run", "first", "--quiet")
    assert (done.code, done.out) == (2, "")
    assert done.complaints == ["error: there is already a run in runs/first"]
    assert "`skillopt-es resume first` continues it; `--name` names another" in done.err
    assert (first / "log.db").read_bytes() == before


@pytest.mark.parametrize("name", ["../escape", "", "a b", "/tmp/x", ".hidden", "a" * 101])
def test_a_name_that_is_no_folder_name_is_refused(desk: Desk, name: str) -> None:
    """It exits with 2 before anything is made."""
    done = desk.run("run", "--run", name)
    assert done.code == 2
    assert len(done.complaints) == 1
    assert not (desk.folder / "runs").exists()


def test_dir_moves_the_runs(desk: Desk) -> None:
    """The run and what is said about it are there, and `resume` finds it there."""
    done = desk.run("run", "--dir", "else where", "--run", "one", "--set", "train.num_epochs=1")
    assert done.code == 0
    assert "skillopt-es replay one --until step 2 --dir 'else where'" in done.out
    assert (desk.folder / "else where" / "one" / "log.db").exists()
    assert not (desk.folder / "runs").exists()
    again = desk.run("resume", "one", "--dir", "else where", "--json")
    assert (again.code, again.json["status"]) == (0, "completed")


def test_resuming_a_completed_run_changes_nothing(demo: tuple[Desk, Done], first: Path) -> None:
    """The same result is printed again, and no event is added."""
    desk, done = demo
    head = len(events_of(first))
    again = desk.run("resume", "first")
    assert (again.code, again.out) == (0, done.out)
    assert len(events_of(first)) == head


def test_best_promoted_or_gated_the_best_is_never_below_the_final_one(first: Path) -> None:
    """Whatever came last, no later skill has a higher validation value than the best."""
    state = read_state(first)
    assert state.best is not None
    assert state.best.value is not None
    values = [e.verdict.candidate_value for e in events_of(first) if isinstance(e, CandidateGated)]
    values += [e.value for e in events_of(first) if isinstance(e, BestPromoted)]
    assert state.best.value >= max(value for value in values if value is not None)


def test_the_log_says_what_was_trained(first: Path) -> None:
    """Its first event holds config, skill and split, so that the run stands alone."""
    started = events_of(first)[0]
    assert isinstance(started, RunStarted)
    assert started.config["model"]["backend"] == "simulated"  # type: ignore[index,call-overload]
    assert (len(started.splits.train), len(started.splits.val), len(started.splits.test)) == (48, 40, 40)
    assert started.skill.text
