"""A fork without an item: nothing in it was written by anybody who had seen the item, and it goes on like any run."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from support.audits import regated
from support.logs import events_of
from support.params import parametrized
from support.scripted import NOON, ScriptedEnvironment, ScriptedWorld, config
from support.tamper import rewritten, seqs_of

from skillopt_es.audit.blame import blame
from skillopt_es.audit.check import check
from skillopt_es.audit.descent import Evidence, descent
from skillopt_es.audit.retracting import Retracted, retracted
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    PatchProposed,
    RolloutCompleted,
    RunForked,
    SkillScored,
    SlowUpdateProposed,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

SMALL = ("train.num_epochs=2", "train.batch_size=2", "optimizer.slow_update_gate_with_selection=true")


def world() -> ScriptedWorld:
    """A run of about a hundred events."""
    return ScriptedWorld(environment=ScriptedEnvironment(train=6, val=6, test=3))


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run; read it, never write to it."""
    folder = tmp_path_factory.mktemp("retract")
    asyncio.run(start(config(folder, SMALL), folder / "parent", world().session()))
    return folder / "parent"


def without(run: Path, evidence: Evidence, name: str = "without") -> Retracted:
    """The fork that was made."""
    folder = run.parent / name
    shutil.rmtree(folder, ignore_errors=True)
    return retracted(run, evidence, folder, reason="wrong label", by="somebody", now=lambda: NOON)


def gone_on(run: Path) -> ScriptedWorld:
    """The world after the run has been resumed in it, to its end."""
    there = world()
    asyncio.run(resume(run, there.session()))
    assert read_state(run).status == "completed"
    return there


def assert_whole(run: Path) -> None:
    """The log is what was written, and every decision in it follows."""
    assert verify(run).ok, verify(run).problems
    with EventLog.open(run) as log:
        report = asyncio.run(check(log, Journal(log.reader), run))
    assert report.ok, report.mismatch
    assert report.events == len(events_of(run))


def mentions(event: Event, item: str) -> bool:
    """Whether an event is about an item."""
    match event:
        case RolloutCompleted():
            return event.item == item
        case PatchProposed() | ComparisonDrawn():
            return item in event.items
        case SlowUpdateProposed():
            return any(pair.item == item for pair in event.pairs)
        case _:
            return False


@parametrized("item", ["t0", "t3", "t5", "v0", "v4", "x1"], by_default=3)
def test_the_fork_never_meets_the_item(parent: Path, item: str) -> None:
    """Whichever split it is of; and its log is whole, checked and judged like any other."""
    assert any(mentions(event, item) for event in events_of(parent))
    made = without(parent, Evidence(item))
    assert [type(event) for event in events_of(made.fork.folder)[-2:]] == [RunForked, EvidenceRetracted]
    gone_on(made.fork.folder)
    assert not any(mentions(event, item) for event in events_of(made.fork.folder))
    assert_whole(made.fork.folder)
    assert not any(verdict.changed for verdict in regated(made.fork.folder).verdicts)
    with EventLog.open(made.fork.folder) as log:
        rows = list(log.read())
    assert descent(Evidence(item), rows).derived == ()
    assert blame(rows) is not None


def test_what_stays_the_same_is_not_paid_for_again(parent: Path) -> None:
    """A test item changes no step: only what was answered before is asked, and the skill is the same."""
    made = without(parent, Evidence("x1"))
    assert gone_on(made.fork.folder).calls == 0
    best, other = read_state(parent).best, read_state(made.fork.folder).best
    assert best is not None
    assert other is not None
    assert best.skill == other.skill
    scores = [event for event in events_of(made.fork.folder) if isinstance(event, SkillScored)]
    assert {event.score.measured for event in scores if event.purpose == "test"} == {2}


def test_one_trajectory_can_be_left_out_alone(parent: Path) -> None:
    """Then the item is tried again in later epochs, and at that place never."""
    [first, *_] = [event for event in events_of(parent) if isinstance(event, RolloutCompleted) and event.item == "t3"]
    assert first.purpose == "train"
    made = without(parent, Evidence("t3", first.place))
    gone_on(made.fork.folder)
    places = [e.place for e in events_of(made.fork.folder) if isinstance(e, RolloutCompleted) and e.item == "t3"]
    assert places
    assert first.place not in places
    assert_whole(made.fork.folder)


def test_a_batch_of_retracted_items_alone_is_left_out(tmp_path: Path) -> None:
    """The step then looks at nothing, or at its other batch."""
    settings = ("train.num_epochs=1", "train.batch_size=1", "train.accumulation=2")
    asyncio.run(start(config(tmp_path, settings), tmp_path / "run", world().session()))
    [plan] = [event for event in events_of(tmp_path / "run") if isinstance(event, EpochPlanned)]
    first = without(tmp_path / "run", Evidence(plan.batches[0].items[0]), "first").fork.folder
    both = without(first, Evidence(plan.batches[1].items[0]), "both").fork.folder
    gone_on(both)
    assert_whole(both)


def test_where_nothing_met_it_there_is_nothing_to_rebuild(tmp_path: Path, parent: Path) -> None:
    """In a run that is over; and what is retracted is so once."""
    asyncio.run(start(config(tmp_path, (*SMALL, "evaluation.eval_test=false")), tmp_path / "run", world().session()))
    with pytest.raises(ConfigError, match="nothing to rebuild"):
        without(tmp_path / "run", Evidence("x1"))
    fork = without(parent, Evidence("t3")).fork.folder
    with pytest.raises(ConfigError, match="already retracted in without"):
        without(fork, Evidence("t3"), "again")


def test_a_result_of_the_gate_is_retracted_with_its_item(parent: Path) -> None:
    """Two skills would be compared on other items."""
    with pytest.raises(ConfigError, match="validation"):
        without(parent, Evidence("v0", "baseline"))


def test_the_only_item_of_a_split_stays(tmp_path: Path) -> None:
    """A run needs one."""
    there = ScriptedWorld(environment=ScriptedEnvironment(train=2, val=1, test=1))
    asyncio.run(start(config(tmp_path, SMALL), tmp_path / "run", there.session()))
    with pytest.raises(ConfigError, match="only item of the validation split"):
        without(tmp_path / "run", Evidence("v0"))


def test_what_nothing_met_yet_is_left_out_from_now_on(tmp_path: Path) -> None:
    """A run that has only begun goes on without it."""
    asyncio.run(start(config(tmp_path, SMALL), tmp_path / "run", world().session()))
    fork = make_fork(tmp_path / "run", 1, tmp_path / "fork", now=lambda: NOON).folder
    made = without(fork, Evidence("t3"), "early")
    gone_on(made.fork.folder)
    assert not any(mentions(event, "t3") for event in events_of(made.fork.folder))


def test_a_fork_that_hides_its_retraction_does_not_follow(parent: Path, tmp_path: Path) -> None:
    """`replay --check` misses the item."""
    fork = without(parent, Evidence("t3")).fork.folder
    gone_on(fork)
    [seq] = seqs_of(fork, EvidenceRetracted)
    moved = rewritten(fork, tmp_path / "moved", seq, lambda event: None)
    with EventLog.open(moved) as log:
        report = asyncio.run(check(log, Journal(log.reader), moved))
    assert not report.ok


# --- what goes back to it ------------------------------------------------------------------------------------------


def test_descent_has_all_and_only_what_names_it(parent: Path) -> None:
    """Every patch whose analyst saw the item, and every proposal that goes back to such a patch."""
    with EventLog.open(parent) as log:
        rows = list(log.read())
    found = descent(Evidence("t0"), rows)
    by_kind = {kind: {each.name for each in found.derived if each.kind == kind} for kind in ("patch", "proposal")}
    events = [row.event for row in rows]
    patches = [event for event in events if isinstance(event, PatchProposed) and "t0" in event.items]
    assert by_kind["patch"] == {event.patch for event in patches}
    assert {edit.id for event in patches for edit in event.edits} <= by_kind["proposal"]
    results = [each for each in found.derived if each.kind == "result"]
    assert len(results) == sum(mentions(event, "t0") for event in events if isinstance(event, RolloutCompleted))
    assert found.taken
    assert any(line.step in found.taken for line in found.lines)
    assert all(line.seq in {row.seq for row in rows} for line in found.lines)


def test_a_validation_item_is_behind_verdicts(parent: Path) -> None:
    """It wrote nothing, and counted in each."""
    with EventLog.open(parent) as log:
        found = descent(Evidence("v0"), log.read())
    kinds = {each.kind for each in found.derived}
    assert "verdict" in kinds
    assert not kinds & {"patch", "proposal", "candidate"}
    assert found.lines == ()


def test_a_trajectory_has_less_behind_it_than_its_item(parent: Path) -> None:
    """Only what was made at its place."""
    with EventLog.open(parent) as log:
        rows = list(log.read())
    whole = descent(Evidence("t0"), rows)
    places = {row.event.place for row in rows if isinstance(row.event, RolloutCompleted) and row.event.item == "t0"}
    parts = [descent(Evidence("t0", place), rows) for place in places]
    assert {each for part in parts for each in part.derived if each.kind == "patch"} == {
        each for each in whole.derived if each.kind == "patch"
    }
    assert all(len(part.derived) < len(whole.derived) for part in parts)
