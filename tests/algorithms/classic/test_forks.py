"""A fork shares what its parent did, pays for none of it, and goes on alone: the same way, or another one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from attrs import evolve
from support.logs import decisions_of, events_of
from support.params import parametrized
from support.scripted import NOON, Answer, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply
from support.tamper import rewritten, seqs_of

from skillopt_es.audit.check import check
from skillopt_es.engine.differences import CheckReport
from skillopt_es.errors import BackendError, ConfigError, Divergence, NotInRun
from skillopt_es.events.catalog import CandidateGated, Event, RunForked, RunResumed
from skillopt_es.events.errors import RunExists
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import CallFailed, ChatRequest
from skillopt_es.runs.lookup import Moment, seq_of
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

SMALL = ("train.num_epochs=2", "train.batch_size=3", "optimizer.slow_update_gate_with_selection=true")


def world() -> ScriptedWorld:
    """A run of about a hundred events."""
    return ScriptedWorld(environment=ScriptedEnvironment(train=6, val=6, test=3))


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run; read it, never write to it."""
    folder = tmp_path_factory.mktemp("forks")
    asyncio.run(start(config(folder, SMALL), folder / "parent", world().session()))
    return folder / "parent"


def at(run: Path, moment: Moment) -> int:
    """The event that a moment ends with."""
    with EventLog.open(run) as log:
        return seq_of(log, moment)


def forked(run: Path, seq: int, name: str, *overrides: str) -> Path:
    """A fork beside a run; its folder."""
    folder = run.parent / name
    shutil.rmtree(folder, ignore_errors=True)
    return make_fork(run, seq, folder, overrides=overrides, now=lambda: NOON).folder


def gone_on(run: Path, there: ScriptedWorld | None = None) -> ScriptedWorld:
    """The world after a run has been resumed in it, to its end."""
    there = there or world()
    asyncio.run(resume(run, there.session()))
    assert read_state(run).status == "completed"
    return there


def checked(run: Path) -> CheckReport:
    """What `replay --check` finds."""
    with EventLog.open(run) as log:
        return asyncio.run(check(log, Journal(log.reader), run))


def stored(run: Path) -> list[tuple[object, ...]]:
    """What the log says, byte for byte, without the comings and goings of writers."""
    with EventLog.open(run) as log:
        rows = log.reader.rows("select type, version, data from events order by seq")
    return [row for row in rows if row[0] not in ("RunForked", "RunResumed", "RunPaused")]


def assert_whole(run: Path) -> None:
    """The log is what was written, and every decision in it follows."""
    assert verify(run).ok, verify(run).problems
    report = checked(run)
    assert report.ok, report.mismatch
    assert report.events == len(events_of(run))


# --- no change -----------------------------------------------------------------------------------------------------


def test_without_a_change_it_goes_on_as_its_parent_did_from_any_event(parent: Path) -> None:
    """Byte for byte, and no question is asked again."""
    last = len(events_of(parent))
    for seq in range(1, last, 9):
        fork = forked(parent, seq, "same")
        there = gone_on(fork)
        assert stored(fork) == stored(parent), seq
        assert there.calls == 0, seq
        assert spent(fork).usage.total.calls == 0
    assert_whole(fork)


def test_what_is_shared_is_the_parents_to_the_last_hash(parent: Path) -> None:
    """The chain goes on from the parent's head, and the parent stays as it is."""
    before = (parent / "log.db").read_bytes()
    seq = at(parent, ("step", 2))
    fork = forked(parent, seq, "shared")
    with EventLog.open(parent) as one, EventLog.open(fork) as other:
        shared, copied = list(one.read(until=seq)), list(other.read())
        assert copied[:-1] == shared
        assert copied[-1].prev_hash == shared[-1].hash
        opening = copied[-1].event
        assert opening == RunForked(
            software=opening.software,  # type: ignore[attr-defined]
            parent="parent",
            parent_id=one.run.run_id,
            seq=seq,
            inherited=len(Journal(one.reader)),
            values={},
        )
        assert (other.run.parent_run, other.run.parent_head) == (one.run.run_id, shared[-1].hash)
    assert (parent / "log.db").read_bytes() == before
    assert_whole(fork)


def test_a_fork_can_be_forked(parent: Path) -> None:
    """Also without ever having gone on."""
    first = forked(parent, at(parent, ("step", 1)), "first")
    second = forked(first, len(events_of(first)), "second")
    gone_on(first)
    third = forked(first, at(first, ("step", 3)), "third")
    for run in (second, third):
        assert gone_on(run).calls == 0
        assert stored(run) == stored(parent)
        assert_whole(run)


def test_a_running_run_can_be_forked(parent: Path, tmp_path: Path) -> None:
    """Its writer is not disturbed, and what it does later is its own."""
    run, forks = tmp_path / "run", []

    class Forking:
        def planned(self, *_: object) -> None: ...
        def called(self, *_: object) -> None: ...
        def happened(self, seq: int, event: Event, state: object) -> None:
            if isinstance(event, CandidateGated) and event.step == 2:
                forks.append(forked(run, seq, "fork"))

    asyncio.run(start(config(tmp_path, SMALL), run, world().session(observers=(Forking(),))))
    [fork] = forks
    assert stored(run) == stored(parent)
    assert gone_on(fork).calls == spent(fork).usage.total.calls > 0
    assert stored(fork) == stored(parent)
    assert_whole(fork)


def test_a_killed_fork_is_whole_or_not_there(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind that could be taken for a fork."""
    monkeypatch.setattr("skillopt_es.events.create.insert_rows", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        forked(parent, 5, "never")
    monkeypatch.undo()
    assert not (parent.parent / "never" / "log.db").exists()
    assert_whole(forked(parent, 5, "never"))


# --- another way ---------------------------------------------------------------------------------------------------


@parametrized(
    ("moment", "overrides"),
    [
        (("step", 1), ("evaluation.gate_metric=mixed", "evaluation.gate_mixed_weight=0.25")),
        (("epoch", 1), ("evaluation.gate_metric=soft",)),
        (("step", 1), ("evaluation.use_gate=false",)),
        (("step", 1), ("evaluation.use_semantic_density=true", "evaluation.semantic_density_weight=0.5")),
        (("epoch", 1), ("optimizer.learning_rate=1", "optimizer.lr_scheduler=constant")),
        (("step", 1), ("train.seed=7",)),
        (("epoch", 1), ("gradient.minibatch_size=1", "evaluation.eval_test=false")),
        (("step", 1), ("optimizer.use_slow_update=false", "optimizer.use_meta_skill=false")),
    ],
    by_default=2,
)
def test_what_decides_can_change(parent: Path, moment: Moment, overrides: tuple[str, ...]) -> None:
    """Between two steps; all that follows is decided by the new settings, and can be derived again."""
    seq = at(parent, moment)
    fork = forked(parent, seq, "changed", *overrides)
    there = gone_on(fork)
    assert events_of(fork)[:seq] == events_of(parent)[:seq]
    assert spent(fork).usage.total.calls == there.calls
    assert_whole(fork)
    again = forked(fork, len(events_of(fork)) - 1, "changed-again")
    assert gone_on(again).calls == 0
    assert_whole(again)


def test_measured_skills_count_anew_where_the_gates_rule_changes(parent: Path) -> None:
    """The first gate of the fork compares both skills by the new rule, with the scores of old."""
    fork = forked(parent, at(parent, ("step", 1)), "soft", "evaluation.gate_metric=soft")
    state = read_state(fork)
    assert state.forked is not None
    assert state.forked.values == {skill: found.score.soft for skill, found in state.measured.items()}
    assert state.current is not None
    assert state.current.score is not None
    assert state.current.value == state.current.score.soft
    gone_on(fork)
    gated = next(event for event in events_of(fork) if _soft(event))
    assert isinstance(gated, CandidateGated)
    assert state.best is not None
    assert gated.verdict.best_value == state.best.value


def _soft(event: Event) -> bool:
    return isinstance(event, CandidateGated) and event.verdict.metric == "soft"


def test_a_forged_value_is_found(parent: Path) -> None:
    """What measured skills count follows from what was measured."""
    fork = forked(parent, at(parent, ("step", 1)), "forged", "evaluation.gate_metric=soft")

    [seq] = seqs_of(fork, RunForked)
    copy = rewritten(fork, fork.parent / "forged-copy", seq, lambda event: evolve(event, values={}))
    report = checked(copy)
    assert report.mismatch is not None
    assert "values" in str(report.mismatch)


def test_another_question_at_the_same_place_is_a_new_call_and_later_a_divergence(parent: Path) -> None:
    """What the parent was answered to another question is no contradiction; what the fork itself was answered is."""
    seq = at(parent, ("step", 1))
    fork = forked(parent, seq, "other", "model.optimizer=other")

    def locked(request: ChatRequest) -> str:
        if request.slot.endswith("failure-0"):
            raise CallFailed("auth", "the key was withdrawn")
        return optimizer_reply(request)

    def asked_as(name: str, answer: Answer = optimizer_reply) -> ScriptedWorld:
        return ScriptedWorld(environment=world().environment, optimizer=ScriptedModel(name, answer))

    there = asked_as("another optimizer", locked)
    with pytest.raises(BackendError, match="withdrawn"):
        asyncio.run(resume(fork, there.session()))
    assert len(there.optimizer.asked) > 1
    with pytest.raises(Divergence):
        asyncio.run(resume(fork, asked_as("a third optimizer").session()))
    gone_on(fork, asked_as("another optimizer"))
    assert_whole(fork)


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("train.batch_size=2", "all steps were planned"),
        ("train.num_epochs=9", "all steps were planned"),
        ("env.limit=3", "the tasks"),
        ("env.skill_init=x.md", "the first skill"),
        ("model.target=other", "another target model"),
        ("evaluation.sel_env_num=2", "other validation items"),
        ("evaluation.gate_metric=best", "gate_metric"),
        ("evaluation.nothing=1", "nothing"),
    ],
)
def test_what_the_prefix_contradicts_cannot_change(parent: Path, override: str, says: str) -> None:
    """The error says why, and nothing is made."""
    with pytest.raises(ConfigError, match=says) as caught:
        forked(parent, at(parent, ("step", 2)), "refused", override)
    assert "--set" in str(caught.value)
    assert not (parent.parent / "refused").exists()


def test_a_step_is_decided_by_one_rule(parent: Path) -> None:
    """In the middle of it only what decides nothing can change."""
    seq = at(parent, ("step", 1)) + 2
    with pytest.raises(ConfigError, match="step 2 is under way") as caught:
        forked(parent, seq, "half", "evaluation.gate_metric=soft")
    assert caught.value.hint.startswith("`--until step 1`")
    fork = forked(parent, seq, "half", "env.workers=2", "rollout.max_failed_share=0.5")
    assert gone_on(fork).calls == 0
    assert_whole(fork)


def test_a_complete_run_has_nothing_to_do_another_way(parent: Path) -> None:
    """Its end is no fork point; and a name that is taken is not taken twice."""
    with pytest.raises(ConfigError, match="is complete"):
        forked(parent, len(events_of(parent)), "late")
    with pytest.raises(RunExists):
        make_fork(parent, 5, parent, now=lambda: NOON)
    empty = parent.parent / "empty"
    RunWriter.create(empty, run_id="e", name="empty", now=lambda: NOON).close()
    with pytest.raises(NotInRun):
        forked(empty, 0, "of-nothing")


def test_the_comings_of_writers_are_the_only_difference(parent: Path) -> None:
    """A fork's log is its parent's, its own first event, and one coming."""
    fork = forked(parent, at(parent, ("step", 2)), "only")
    gone_on(fork)
    assert decisions_of(fork) == decisions_of(parent)
    comings = [type(event) for event in events_of(fork) if isinstance(event, RunForked | RunResumed)]
    assert comings == [RunForked, RunResumed]
