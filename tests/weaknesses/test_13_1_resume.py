"""Crashes and resuming: what a run knows comes from its log alone, however often and wherever it goes on."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
import yaml
from attrs import define, frozen
from support.desk import Desk
from support.logs import call_slots, decisions_of, events_of
from support.scripted import NOON, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply, ticking

from skillopt_es.config import load_config
from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.work import Work
from skillopt_es.errors import DataError, Interrupted
from skillopt_es.events.catalog import (
    EditsRanked,
    Event,
    MinibatchesPlanned,
    RolloutCompleted,
    RunResumed,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import Ask, ChatRequest, Episode, Item
from skillopt_es.projections.state import AnyState
from skillopt_es.projections.summary import summarize
from skillopt_es.projections.usage import usage_of
from skillopt_es.sessions.session import read_state, resume, start
from skillopt_es.sessions.wiring import Session
from skillopt_es.skill.schedule import edit_budget

Questions = dict[str, tuple[str, ...]]
SHORT = ["train.num_epochs=1", "env.limit=12"]


def remembering(asked: Questions) -> ScriptedModel:
    """The scripted optimizer, which notes what it is asked where."""

    def answer(request: ChatRequest) -> str:
        asked[request.slot] = tuple(message.content for message in request.messages)
        return optimizer_reply(request)

    return ScriptedModel("scripted optimizer", answer)


def train(folder: Path, world: ScriptedWorld, *overrides: str) -> Path:
    """The folder of a run that nobody disturbed."""
    asyncio.run(start(config(folder, overrides), folder / "run", world.session()))
    return folder / "run"


def train_with_stops(folder: Path, world: ScriptedWorld, *overrides: str, every: int) -> Path:
    """The folder of a run that was stopped after each few calls and resumed until it was done."""
    run = folder / "run"
    limit = [every]
    impatient = world.session(stopping=lambda: world.calls >= limit[0])
    work = start(config(folder, overrides), run, impatient)
    for _ in range(200):
        try:
            if asyncio.run(work).status == "completed":
                return run
        except Interrupted:
            limit[0] = world.calls + every
        work = resume(run, impatient)
    raise AssertionError("it never ended")


@frozen
class Pair:
    """The same run twice, once in one go and once with many stops, and what the optimizer was asked in each."""

    whole: Path
    stopped: Path
    whole_questions: Questions
    stopped_questions: Questions


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Three epochs with forced slow updates and an optimizer memory."""
    folder = tmp_path_factory.mktemp("pair")
    whole, stopped = Questions(), Questions()
    return Pair(
        train(folder / "a", ScriptedWorld(optimizer=remembering(whole)), "train.batch_size=3"),
        train_with_stops(
            folder / "b", ScriptedWorld(optimizer=remembering(stopped)), "train.batch_size=3", every=12
        ),
        whole,
        stopped,
    )  # fmt: skip


def test_a_stopped_run_asks_the_optimizer_what_an_undisturbed_one_asks(pair: Pair) -> None:
    """Word for word, with the attempts of earlier steps and the trajectories of the comparison; so it decides alike."""
    assert any("Earlier steps of this epoch" in messages[1] for messages in pair.whole_questions.values())
    assert any(slot.endswith("meta") for slot in pair.whole_questions)
    assert pair.stopped_questions == pair.whole_questions
    assert decisions_of(pair.stopped) == decisions_of(pair.whole)


def test_resuming_changes_nothing_of_what_is_known(pair: Pair) -> None:
    """Skills, scores, origins, attempts, memory and position are the same before and after a writer takes over."""
    state = None
    resumed = 0
    for event in events_of(pair.stopped):
        before, state = state, evolve(state, event)
        if isinstance(event, RunResumed):
            resumed += 1
            assert (state.current, state.best, state.measured) == (before.current, before.best, before.measured)
            assert (state.algorithm.buffer, state.algorithm.meta_skill) == (
                before.algorithm.buffer,
                before.algorithm.meta_skill,
            )
            assert (state.algorithm.epoch, state.algorithm.step, state.steps_done) == (
                before.algorithm.epoch,
                before.algorithm.step,
                before.steps_done,
            )
    assert resumed > 10


def test_an_epochs_guidance_and_a_steps_budget_come_once(pair: Pair) -> None:
    """However often the run was resumed: one slow update an epoch, at most one budget a step, in their order."""
    events = events_of(pair.stopped)
    assert [event.epoch for event in events if isinstance(event, SlowUpdateApplied)] == [1, 2, 3]
    steps = [event.step for event in events if isinstance(event, EditsRanked)]
    assert steps
    assert steps == sorted(set(steps))


def test_every_score_belongs_to_the_skill_its_items_were_tried_under(pair: Pair) -> None:
    """A place of the algorithm holds the results of one skill, and each item once."""
    skills: dict[str, set[str]] = {}
    items: dict[str, Counter[str]] = {}
    for event in events_of(pair.stopped):
        if isinstance(event, RolloutCompleted):
            skills.setdefault(event.place, set()).add(event.skill)
            items.setdefault(event.place, Counter())[event.item] += 1
        if isinstance(event, SkillScored):
            assert skills[event.place] == {event.skill}
            assert set(items[event.place].values()) == {1}


def test_a_resumed_run_sums_up_all_of_it(pair: Pair) -> None:
    """Baseline, steps and epochs stand in the summary as in an undisturbed run, and every call is counted once."""
    whole, stopped = (summarize(events_of(run)) for run in (pair.whole, pair.stopped))
    assert stopped.baseline is not None
    assert (stopped.baseline, stopped.lines, stopped.tests) == (whole.baseline, whole.lines, whole.tests)
    with EventLog.open(pair.stopped) as log:
        usage = usage_of(Journal(log.reader).read())
    assert usage.total.calls == len(call_slots(pair.whole))


# --- scores, budgets -----------------------------------------------------------------------------------------------


@frozen
class Penalty(ScriptedEnvironment):
    """Grades on a scale that ends at 0."""

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """A right answer is 0, a wrong one -1."""
        episode = await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        assert isinstance(episode.outcome, Measured)
        hard = episode.outcome.hard
        return Episode(outcome=Measured(hard, hard - 1), task="", records=episode.records, failure=episode.failure)


@pytest.mark.parametrize("metric", ["hard", "soft"])
def test_a_score_of_zero_or_less_is_a_score_after_resuming(metric: str, tmp_path: Path) -> None:
    """The baseline is 0 or -1, is measured once, and the run goes on from it."""
    world = ScriptedWorld(environment=Penalty(train=6, val=6))
    settings = ("train.num_epochs=1", f"evaluation.gate_metric={metric}")
    run = train_with_stops(tmp_path, world, *settings, every=8)
    events = events_of(run)
    assert any(isinstance(event, RunResumed) for event in events)
    [baseline] = [event for event in events if isinstance(event, SkillScored) and event.place == "baseline"]
    assert baseline.value == {"hard": 0.0, "soft": -1.0}[metric]
    assert len([slot for slot in call_slots(run) if slot.startswith("baseline/")]) == 6


@pytest.mark.parametrize("every", [1000, 17])
def test_budgets_follow_the_step_over_skips_and_stops(every: int, tmp_path: Path) -> None:
    """Two skipped steps and many stops later a step has the budget of its own number."""

    def late(request: ChatRequest) -> str:
        idle = request.stage == "analyst" and request.slot.startswith(("e1/s1/", "e1/s2/"))
        return '{"patch": {"edits": []}}' if idle else optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", late))
    settings = ("optimizer.learning_rate=6", "optimizer.lr_scheduler=linear", "train.num_epochs=2")
    events = events_of(train_with_stops(tmp_path, world, *settings, every=every))
    assert [event.step for event in events if isinstance(event, StepSkipped)][:2] == [1, 2]
    ranked = [event for event in events if isinstance(event, EditsRanked)]
    budgets = [edit_budget("linear", highest=6, lowest=1, step=event.step, total_steps=6) for event in ranked]
    assert [event.budget for event in ranked] == budgets
    assert (ranked[0].step, ranked[0].budget) == (3, 4)


# --- where a run lies, and what it was told ------------------------------------------------------------------------


def project(folder: Path) -> Path:
    """A copy of the demo's files; its config."""
    shutil.copytree(Path(str(resources.files("skillopt_es.configs") / "demo")), folder)
    return folder / "demo.yaml"


@define
class StopAtFirstPlan:
    """Asks for a stop once the first step's trajectories are drawn into groups."""

    reached: bool = False

    def planned(self, work: Work, state: AnyState) -> None:
        """Nothing to do."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Looks for the plan."""
        self.reached = self.reached or isinstance(event, MinibatchesPlanned)

    def called(self, row: CallRow) -> None:
        """Nothing to do."""


def stopped_in_the_middle(file: Path) -> Path:
    """A run of one epoch of a project, stopped in its first step; its folder."""
    stop = StopAtFirstPlan()
    run = file.parent / "runs" / "one"
    begun = Session(now=ticking(), clock=lambda: 0.0, observers=(stop,), stopping=lambda: stop.reached)
    with pytest.raises(Interrupted):
        asyncio.run(start(load_config(file, SHORT), run, begun))
    return run


def test_a_run_that_was_moved_with_its_project_goes_on(tmp_path: Path) -> None:
    """No path in its log is absolute, so it finds its data where they are now."""
    run = stopped_in_the_middle(project(tmp_path / "here"))
    assert str(tmp_path) not in repr(events_of(run))
    there = (tmp_path / "here").rename(tmp_path / "there")
    asyncio.run(resume(there / "runs" / "one", Session(now=ticking(), clock=lambda: 0.0)))
    assert read_state(there / "runs" / "one").status == "completed"
    assert not (tmp_path / "here").exists()


def test_a_run_that_was_moved_without_its_data_is_refused_and_can_be_read(tmp_path: Path) -> None:
    """It says which file is missing, trains on nothing else, and still tells all it knows."""
    run = stopped_in_the_middle(project(tmp_path / "here"))
    known = read_state(run)
    (tmp_path / "else" / "where").mkdir(parents=True)
    alone = run.rename(tmp_path / "else" / "where" / "one")
    with pytest.raises(DataError, match=r"there is no file .*tasks.jsonl"):
        asyncio.run(resume(alone, Session(now=ticking(), clock=lambda: 0.0)))
    assert read_state(alone) == known


def test_a_run_keeps_to_the_config_and_skill_it_started_with(tmp_path: Path) -> None:
    """What config file and skill file say later is for the next run."""
    file = project(tmp_path / "one")
    run = stopped_in_the_middle(file)
    other = yaml.safe_load(file.read_text(encoding="utf-8"))
    other["train"] = {"num_epochs": 9, "batch_size": 5, "seed": 1}
    other["evaluation"] = {"gate_metric": "soft"}
    file.write_text(yaml.safe_dump(other), encoding="utf-8")
    (file.parent / "SKILL.md").write_text("# Another skill\n", encoding="utf-8")
    asyncio.run(resume(run, Session(now=lambda: NOON, clock=lambda: 0.0)))
    again = project(tmp_path / "two")
    whole = again.parent / "runs" / "one"
    asyncio.run(start(load_config(again, SHORT), whole, Session(now=lambda: NOON, clock=lambda: 0.0)))
    assert decisions_of(run) == decisions_of(whole)


def test_a_run_refuses_to_go_on_with_other_data(tmp_path: Path) -> None:
    """One task was changed since: the split is named and nothing is asked."""
    file = project(tmp_path / "one")
    run = stopped_in_the_middle(file)
    asked = len(call_slots(run))
    tasks = file.parent / "tasks.jsonl"
    first, rest = tasks.read_text(encoding="utf-8").split("\n", 1)
    row = json.loads(first)
    tasks.write_text(json.dumps({**row, "input": f"{row['input']} Hurry."}) + f"\n{rest}", encoding="utf-8")
    with pytest.raises(DataError, match="the train items are not those the run started with"):
        asyncio.run(resume(run, Session(now=ticking(), clock=lambda: 0.0)))
    assert len(call_slots(run)) == asked


def test_no_text_is_read_or_written_in_the_encoding_of_the_machine(tmp_path: Path) -> None:
    """Python warns of every file that is opened without one; here that is an error."""
    desk = Desk(tmp_path, {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONUTF8": "0", "LC_ALL": "C"})
    done = desk.run("run", "--run", "one", "--quiet", "--set", "train.num_epochs=1", "--set", "env.limit=6")
    assert done.code == 0, done.err
    assert (tmp_path / "runs" / "one" / "best" / "SKILL.md").exists()


def test_a_test_score_belongs_to_the_text_it_is_reported_for(tmp_path: Path) -> None:
    """The reported test scores are those of the texts that the last event names."""
    events: list[Event] = events_of(train(tmp_path, ScriptedWorld()))
    tests = {event.skill: event.score for event in events if isinstance(event, SkillScored) and event.purpose == "test"}
    state = read_state(tmp_path / "run")
    done = state.completed
    assert done is not None
    assert state.started is not None
    named = (state.started.skill.hash, done.best, done.final)
    assert tuple(tests[skill] for skill in named) == (done.test_initial, done.test_best, done.test_final)


def test_a_completed_run_takes_no_more_epochs(tmp_path: Path) -> None:
    """Resuming it asks nothing and adds nothing."""
    run = train(tmp_path, ScriptedWorld(), "train.num_epochs=1")
    before = events_of(run)
    (tmp_path / "config.yaml").write_text("train: {num_epochs: 5}\n", encoding="utf-8")
    world = ScriptedWorld()
    asyncio.run(resume(run, world.session()))
    assert world.calls == 0
    assert events_of(run) == before
