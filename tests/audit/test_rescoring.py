"""Another grader over recorded answers: the recorded one changes nothing, any other is exact until analysts part."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.audited import MOST_SLOW, Audited, world_of
from support.audits import regated, rescored
from support.logs import events_of
from support.params import parametrized
from support.scripted import (
    NOON,
    PartialEnvironment,
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
    target_reply,
)

from skillopt_es.adapters.environments.alfworld.environment import Alfworld
from skillopt_es.adapters.environments.spreadsheetbench.environment import SpreadsheetBench
from skillopt_es.audit.descent import Evidence
from skillopt_es.audit.erasing import erase_evidence
from skillopt_es.audit.rescoring import Rescoring
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.catalog import CandidateGated, RolloutCompleted, SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Failed, Measured, SkillTree
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import Ask, CallFailed, ChatRequest, Episode, Item, Message
from skillopt_es.runs.lookup import seq_of
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import resume, start

SMALL = ("train.batch_size=3", "train.num_epochs=2", "optimizer.slow_update_gate_with_selection=true")
SIZES = {"train": 6, "val": 6, "test": 3}


@frozen
class Lenient(ScriptedEnvironment):
    """Passes any answer to some items."""

    lenient: tuple[str, ...] = ()

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Graded otherwise."""
        episode = await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        return evolve(episode, outcome=Measured(1.0, 1.0), failure="") if item.id in self.lenient else episode


def lenient(*items: str) -> ScriptedEnvironment:
    """An environment of the usual size."""
    return Lenient(**SIZES, lenient=items)


def world(environment: ScriptedEnvironment | None = None) -> ScriptedWorld:
    """A small run's world."""
    return ScriptedWorld(environment=environment or ScriptedEnvironment(**SIZES))


def trained(folder: Path, *overrides: str, there: ScriptedWorld | None = None) -> Path:
    """A complete run; its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(start(config(folder, (*SMALL, *overrides)), folder / "run", (there or world()).session()))
    return folder / "run"


def by(run: Path, environment: ScriptedEnvironment, *overrides: str) -> Rescoring:
    """What this environment says of the run's answers; no model may be asked."""
    there = ScriptedWorld(environment=environment)
    found = asyncio.run(rescored(run, overrides, world=there.session().world))
    assert there.calls == 0
    return found


def assert_as_recorded(run: Path, environment: ScriptedEnvironment) -> None:
    """Every grade, every score and every verdict comes out as it is recorded."""
    found = by(run, environment)
    events = events_of(run)
    assert len(found.grades) == sum(bool(e.calls) for e in events if isinstance(e, RolloutCompleted))
    assert not any(grade.changed for grade in found.grades)
    assert [each.derived for each in found.regated.evaluations] == [
        event.score for event in events if isinstance(event, SkillScored)
    ]
    assert found.regated == regated(run)
    assert found.regated.read is None


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), size=st.integers(1, 4), gate=st.booleans())
def test_the_recorded_grader_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int, gate: bool
) -> None:
    """Whatever the order of the tasks, the size of a step and the gate."""
    rule = f"evaluation.use_gate={str(gate).lower()}"
    run = trained(tmp_path_factory.mktemp("rescore"), f"train.seed={seed}", f"train.batch_size={size}", rule)
    assert_as_recorded(run, ScriptedEnvironment(**SIZES))


@pytest.mark.parametrize("kind", MOST_SLOW)
def test_the_recorded_grader_changes_nothing_in_any_kind_of_run(audited: Audited, kind: str) -> None:
    """Rewrites, notes, late advice and all."""
    assert_as_recorded(audited(kind), world_of(kind).environment)


def test_the_recorded_grader_changes_nothing_in_the_demo(demo_run: Path) -> None:
    """With the real environment and its real grader."""
    found = asyncio.run(rescored(demo_run))
    assert len(found.grades) == 880
    assert not any(grade.changed for grade in found.grades)
    assert found.regated == regated(demo_run)


def test_what_was_never_answered_stays_as_it_was(tmp_path: Path) -> None:
    """A late answer counts as 0 by every grader, and an outage is no result by any."""
    there = ScriptedWorld(environment=ScriptedEnvironment(**SIZES), target=ScriptedModel("late target", _late))
    run = trained(tmp_path, "rollout.max_failed_share=0.5", "rollout.max_failed_share_train=0.9", there=there)
    assert any(isinstance(event.outcome, Failed) for event in events_of(run) if isinstance(event, RolloutCompleted))
    assert_as_recorded(run, ScriptedEnvironment(**SIZES))


def _late(request: ChatRequest) -> str:
    if " id: v1" in request.messages[-1].content:
        raise CallFailed("timeout", "too late")
    if " id: v2" in request.messages[-1].content:
        raise CallFailed("transport", "gone")
    return target_reply(request)


def test_a_forks_answers_are_graded_too(tmp_path: Path) -> None:
    """Also where its settings changed on the way, such as the seed."""
    run = trained(tmp_path)
    with EventLog.open(run) as log:
        seq = seq_of(log, ("step", 1))
    fork = make_fork(run, seq, tmp_path / "fork", overrides=("train.seed=9",), now=lambda: NOON).folder
    asyncio.run(resume(fork, world().session()))
    assert_as_recorded(fork, ScriptedEnvironment(**SIZES))


@parametrized("item", ["v0", "v3", "v5"], by_default=1)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_exact_comes_true(tmp_path: Path, item: str, seed: int) -> None:
    """A run with the other grader from its start decides so, up to and with the first verdict that changes."""
    run = trained(tmp_path / "recorded", f"train.seed={seed}")
    other = trained(tmp_path / "other", f"train.seed={seed}", there=world(lenient(item)))
    found = by(run, lenient(item))
    assert {grade.item for grade in found.grades if grade.changed} == {item}
    assert found.regated.read is None  # no analyst sees a validation item
    told = [each for each in found.regated.verdicts if each.zone == "exact" and each.kind == "candidate"]
    if found.regated.told is not None:
        told = [each for each in told if each.number <= found.regated.told]
    came = [event for event in events_of(other) if isinstance(event, CandidateGated)][: len(told)]
    assert [(each.derived != "reject", each.value, each.against) for each in told] == [
        (event.verdict.action != "reject", event.verdict.candidate_value, event.verdict.current_value) for event in came
    ]
    assert told


def test_an_evaluations_score_is_added_up_again(tmp_path: Path) -> None:
    """One more item of six passes from the start."""
    found = by(trained(tmp_path), lenient("v0"))
    [first, *_] = found.regated.evaluations
    assert (first.purpose, first.recorded.hard) == ("selection", 0.0)
    assert first.derived.hard == pytest.approx(1 / 6)
    assert first.derived.measured == 6


def test_after_analysts_would_have_read_another_grade_it_is_an_estimate(tmp_path: Path) -> None:
    """Though no verdict may change."""
    run = trained(tmp_path)
    found = by(run, lenient("t2"))
    [first, *_] = [grade for grade in found.grades if grade.changed]
    assert found.regated.read == first.seq
    assert all((each.zone == "exact") == (each.seq < first.seq) for each in found.regated.verdicts)


def test_partial_grades_are_grades(tmp_path: Path) -> None:
    """No item is as it was."""
    found = by(trained(tmp_path), PartialEnvironment(**SIZES))
    assert all(grade.changed for grade in found.grades)


# --- what cannot be told -------------------------------------------------------------------------------------------


@frozen
class Otherwise(ScriptedEnvironment):
    """Asks something else about some items."""

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """A question that nobody answered, of one kind."""
        if item.task_type != "apple":
            return await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        await ask([Message("user", "what kind is this?")])
        raise AssertionError("there is no answer to that")


def test_what_would_have_been_asked_otherwise_cannot_be_told(tmp_path: Path) -> None:
    """And nothing after it is exact."""
    found = by(trained(tmp_path), Otherwise(**SIZES), "env.grader=other")
    unknown = [grade for grade in found.grades if grade.derived is None]
    assert {grade.item for grade in unknown} == {"t0", "v0", "x0"}
    assert found.regated.read == unknown[0].seq
    assert all(each.zone == "estimate" for each in found.regated.verdicts)


@frozen
class Broken(ScriptedEnvironment):
    """Its grader gives no grade."""

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Always broken."""
        return Episode(outcome=Failed("grader", "it crashed"), task="", records=(), failure="grader")


def test_a_grader_that_breaks_says_nothing(tmp_path: Path) -> None:
    """In one sentence, with its reason."""
    with pytest.raises(ConfigError, match="it crashed"):
        by(trained(tmp_path), Broken(**SIZES))


def test_items_that_are_not_there_cannot_be_told(tmp_path: Path) -> None:
    """Other data have other items."""
    found = by(trained(tmp_path), ScriptedEnvironment(train=6, val=4, test=3))
    assert {grade.item for grade in found.grades if grade.derived is None} == {"v4", "v5"}


def test_an_answer_that_was_erased_cannot_be_told(tmp_path: Path) -> None:
    """As long as no other item gave the same, that is."""
    there = ScriptedWorld(
        environment=ScriptedEnvironment(**SIZES),
        target=ScriptedModel("t", lambda request: f"{target_reply(request)} {request.messages[-1].content}"),
        optimizer=ScriptedModel("o", optimizer_reply),
    )
    run = trained(tmp_path, there=there)
    erase_evidence(run, Evidence("v0"), reason="private", by="me", now=lambda: NOON)
    found = by(run, ScriptedEnvironment(**SIZES))
    assert {(grade.item, "erased" in grade.why) for grade in found.grades if grade.changed} == {("v0", True)}
    assert found.regated == regated(run)  # the recorded grader gave the recorded grade
    other = by(run, ScriptedEnvironment(**SIZES), "env.grader=other")
    assert not any(each.zone == "exact" for each in other.regated.verdicts)


@pytest.mark.parametrize("environment", [Alfworld, SpreadsheetBench])
def test_a_world_that_is_part_of_the_grade_is_refused(tmp_path: Path, environment: type) -> None:
    """Games and programs are not run for this; so is every environment that does not say."""
    assert not hasattr(environment, "regrades")
    with pytest.raises(ConfigError, match="cannot be graded again"):
        by(trained(tmp_path), ScriptedEnvironment(**SIZES, regrades=False))


def test_only_how_it_is_graded_can_be_asked(demo_run: Path) -> None:
    """Not what decides, and not another environment."""
    for key in ("evaluation.gate_metric=soft", "train.seed=3", "env.name=searchqa"):
        with pytest.raises(ConfigError, match="only how answers are graded"):
            asyncio.run(rescored(demo_run, (key,)))


def test_a_run_that_never_began_has_no_answers(tmp_path: Path) -> None:
    """One sentence."""
    RunWriter.create(tmp_path / "run", run_id="r", name="run", now=lambda: NOON).close()
    with pytest.raises(NotInRun, match="before it began"):
        asyncio.run(rescored(tmp_path / "run"))
