"""Attempts carry a label, text that nobody vouches for is fenced, and the label travels to the lines it led to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve, field, frozen
from support.audits import regated
from support.logs import events_of
from support.scripted import (
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
    target_reply,
    unreachable,
)
from support.tamper import cut_off, rewritten, seqs_of

from skillopt_es.audit.blame import BLAME_TYPES, BlamedLine, blame, blamed_lines
from skillopt_es.audit.check import check
from skillopt_es.engine.differences import CheckReport
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import (
    CandidateGated,
    RolloutCompleted,
    RunStarted,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree, Trust
from skillopt_es.ports import AgentStep, Ask, ChatReply, ChatRequest, Episode, Item, Splits
from skillopt_es.projections.trust import support_of, untrusted_attempts
from skillopt_es.report.facts import Depth, facts_of
from skillopt_es.runs.reading import Reading
from skillopt_es.sessions.session import resume, run_started, start

SHORT = ("train.num_epochs=1", "optimizer.use_slow_update=false", "evaluation.eval_test=false")


@frozen
class DoubtfulEnvironment(ScriptedEnvironment):
    """Items of which some say that nobody vouches for them, and attempts that met a page of the web."""

    untrusted: frozenset[str] = frozenset()
    met_pages: frozenset[str] = frozenset()
    inputs: dict[str, str] = field(factory=dict)

    def load(self) -> Splits:
        """With the labels and the inputs' digests."""
        return evolve(ScriptedEnvironment.load(self), untrusted=self.untrusted, inputs=self.inputs)

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """As ever, with the label."""
        episode = await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        return evolve(episode, trust="untrusted") if item.id in self.met_pages else episode


def trained(folder: Path, environment: ScriptedEnvironment, *more: str) -> tuple[Path, list[str]]:
    """A run over these items, and what analysts were asked."""
    asked: list[str] = []

    def reply(request: ChatRequest) -> str:
        asked.extend([request.messages[1].content] if request.stage == "analyst" else [])
        return optimizer_reply(request)

    world = ScriptedWorld(environment=environment, optimizer=ScriptedModel("scripted optimizer", reply))
    asyncio.run(start(config(folder, (*SHORT, *more)), folder / "run", world.session()))
    return folder / "run", asked


def labels(run: Path) -> dict[str, Trust]:
    """Each item's label."""
    return {event.item: event.trust for event in events_of(run) if isinstance(event, RolloutCompleted)}


def lines_of(run: Path) -> list[BlamedLine]:
    """The current skill, line by line."""
    with EventLog.open(run) as log:
        found = blame(log.read(types=BLAME_TYPES))
        untrusted = untrusted_attempts(log.read(types=("RolloutCompleted",)))
    assert found is not None
    return list(blamed_lines(found, found.current, "SKILL.md", {}, untrusted))


def test_the_label_is_of_the_item_or_of_the_attempt(tmp_path: Path) -> None:
    """And of all of them where the config says so; without any of it, everything is the user's own."""
    environment = DoubtfulEnvironment(untrusted=frozenset({"t1"}), met_pages=frozenset({"t2"}))
    found = labels(trained(tmp_path / "a", environment)[0])
    assert {item for item, label in found.items() if label == "untrusted"} == {"t1", "t2"}
    assert set(labels(trained(tmp_path / "b", ScriptedEnvironment())[0]).values()) == {"trusted"}
    every = labels(trained(tmp_path / "c", ScriptedEnvironment(), "env.trust=untrusted")[0])
    assert set(every.values()) == {"untrusted"}


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ((), "trusted"),
        (("model.target_agent_network=true",), "untrusted"),
        (("model.target_agent_web_search=true",), "untrusted"),
    ],
)
def test_what_an_agent_did_on_the_web_is_untrusted(tmp_path: Path, settings: tuple[str, ...], label: Trust) -> None:
    """Where it may use it, and did anything at all; also when the answer comes from the journal."""

    def agent(request: ChatRequest) -> ChatReply:
        steps = (AgentStep(kind="tool", text="fetched a page"),) if request.messages[-1].content.endswith("t1") else ()
        return ChatReply(text=target_reply(request), finish="stop", steps=steps)

    world = ScriptedWorld(target=ScriptedModel("agent", agent))
    asyncio.run(start(config(tmp_path, (*SHORT, *settings)), tmp_path / "run", world.session()))
    found = labels(tmp_path / "run")
    assert (found.pop("t1"), set(found.values())) == (label, {"trusted"})
    seq = seqs_of(tmp_path / "run", RolloutCompleted, lambda event: event.item == "t1")[0]
    again = cut_off(tmp_path / "run", tmp_path / "cut", seq - 1)
    asyncio.run(resume(again, ScriptedWorld(target=ScriptedModel("agent", unreachable)).session()))
    assert labels(again)["t1"] == label


@pytest.mark.parametrize("trace", [True, False])
def test_analysts_see_what_an_agent_did_unless_the_config_says_otherwise(tmp_path: Path, trace: bool) -> None:
    """The log has it either way."""

    def agent(request: ChatRequest) -> ChatReply:
        step = AgentStep(kind="command", text="cat notes.txt", output="a long story")
        return ChatReply(text=target_reply(request), finish="stop", steps=(step,))

    asked: list[str] = []

    def advised(request: ChatRequest) -> str:
        asked.append(request.messages[1].content)
        return optimizer_reply(request)

    models = {"target": ScriptedModel("agent", agent), "optimizer": ScriptedModel("big", advised)}
    settings = (*SHORT, f"model.target_agent_trace={str(trace).lower()}")
    asyncio.run(start(config(tmp_path, settings), tmp_path / "run", ScriptedWorld(**models).session()))
    assert any("a long story" in text for text in asked) == trace


def test_analysts_are_told_what_nobody_vouches_for(tmp_path: Path) -> None:
    """In front of its fence, and of no other; prompts without such text are as they were."""
    doubtful, plain = DoubtfulEnvironment(untrusted=frozenset({"t1"})), ScriptedEnvironment()
    _, asked = trained(tmp_path / "a", doubtful)
    assert any("untrusted trajectory\nitem: t1\n" in text for text in asked)
    for text in asked:
        assert text.count("Nobody vouches for") == text.count(" untrusted trajectory\n") == text.count("item: t1\n")
    assert not any("vouches" in text for text in trained(tmp_path / "b", plain)[1])


def test_lines_that_only_untrusted_attempts_support_are_named(tmp_path: Path) -> None:
    """Also through merges; the first skill's lines stand on nothing but the user."""
    run, _ = trained(tmp_path / "a", ScriptedEnvironment(), "env.trust=untrusted")
    assert {line.behind.support for line in lines_of(run) if line.behind.patches} == {"untrusted"}
    half = frozenset(f"t{number}" for number in range(0, 12, 2))
    run, _ = trained(tmp_path / "b", DoubtfulEnvironment(untrusted=half))
    rows = {event.item: event.trust for event in events_of(run) if isinstance(event, RolloutCompleted)}
    written = [line for line in lines_of(run) if line.behind.items]
    assert written
    for line in written:
        assert line.behind.support == support_of(rows[item] for item in line.behind.items)


def test_who_asks_for_the_skill_alone_is_told_the_same(tmp_path: Path) -> None:
    """Without reading the attempts that nobody doubts."""
    run, _ = trained(tmp_path, DoubtfulEnvironment(met_pages=frozenset(f"t{number}" for number in range(6))))
    with Reading.of(run) as reading:
        depths: tuple[Depth, ...] = ("whole", "skill", "items")
        whole, skill, items = (facts_of(reading, run, depth) for depth in depths)
    assert whole.untrusted
    assert skill.untrusted == whole.untrusted
    assert skill.blame == whole.blame
    assert skill.line_usage == whole.line_usage
    assert not skill.results.validation
    assert items.results == whole.results


def test_one_trusted_attempt_is_enough() -> None:
    """Nothing at all is the user's own."""
    assert support_of([]) == support_of(["trusted"]) == "trusted"
    assert support_of(["trusted", "untrusted"]) == "mixed"
    assert support_of(["untrusted", "untrusted"]) == "untrusted"


def test_one_input_under_two_ids_is_told_or_refused(tmp_path: Path) -> None:
    """With both ids and their splits; within one split it is nobody's business."""
    shared = DoubtfulEnvironment(inputs={"t1": "a", "x2": "a", "t3": "b", "t4": "b"})
    run, _ = trained(tmp_path / "a", shared)
    [first, *_] = events_of(run)
    assert isinstance(first, RunStarted)
    assert any("x2 (test) = t1 (train)" in note and "t3" not in note for note in first.notes)
    with pytest.raises(DataError, match=r"under different ids: x2 \(test\) = t1 \(train\)"):
        trained(tmp_path / "b", shared, "env.same_input=refuse")


def test_an_item_in_two_splits_is_refused(tmp_path: Path) -> None:
    """Whatever environment loaded it."""
    splits = ScriptedEnvironment().load()
    with pytest.raises(DataError, match="t0"):
        run_started(config(tmp_path), evolve(splits, test=[*splits.test, splits.train[0]]), tmp_path / "run")


EVERY = frozenset(f"t{number}" for number in range(12))
CLAUSE = ("evaluation.no_untrusted_only=true", "optimizer.slow_update_gate_with_selection=true")


def checked(run: Path) -> CheckReport:
    """What `replay --check` finds."""
    with EventLog.open(run) as log:
        return asyncio.run(check(log, Journal(log.reader), run))


def test_what_only_untrusted_attempts_support_is_refused_untried(tmp_path: Path) -> None:
    """With its name; guidance, too; later analysts are not told of it, and the check derives every refusal."""
    long = ("train.num_epochs=2", "optimizer.use_slow_update=true")
    run, asked = trained(tmp_path, DoubtfulEnvironment(untrusted=EVERY), *CLAUSE, *long)
    events = events_of(run)
    skipped = [event for event in events if isinstance(event, StepSkipped)]
    assert skipped
    assert {event.reason for event in skipped} == {"untrusted_only"}
    assert all("only untrusted attempts support e" in event.detail for event in skipped)
    assert not [event for event in events if isinstance(event, SkillScored) and event.place.endswith("/gate")]
    guided = [event for event in events if isinstance(event, SlowUpdateApplied) and event.epoch == 2]
    assert [(event.verdict.action, event.verdict.reason) for event in guided] == [("reject", "untrusted_only")]
    assert not any("Rejected" in text for text in asked)
    assert checked(run).ok


def test_with_trusted_support_the_gate_decides(tmp_path: Path) -> None:
    """Some of the candidates stand on both; the clause off, all of them are gated."""
    half = DoubtfulEnvironment(untrusted=frozenset(f"t{number}" for number in range(0, 12, 2)))
    run, _ = trained(tmp_path / "a", half, *CLAUSE)
    assert [event for event in events_of(run) if isinstance(event, CandidateGated)]
    assert checked(run).ok
    assert "untrusted" not in {line.behind.support for line in lines_of(run)}
    run, _ = trained(tmp_path / "b", DoubtfulEnvironment(untrusted=EVERY))
    assert not [event for event in events_of(run) if isinstance(event, StepSkipped)]


def test_a_recorded_verdict_over_untrusted_parts_does_not_follow(tmp_path: Path) -> None:
    """Whoever changes a label in the log is found by the refusals that it would have led to."""
    run, _ = trained(tmp_path, DoubtfulEnvironment(untrusted=EVERY), *CLAUSE)
    [first, *_] = seqs_of(run, StepSkipped)
    changed = rewritten(run, tmp_path / "lie", first, lambda event: evolve(event, reason="unchanged", detail=""))  # type: ignore[call-arg]
    report = checked(changed)
    assert report.mismatch is not None
    assert report.mismatch.seq == first


def test_a_clause_that_refuses_everything_is_refused(tmp_path: Path) -> None:
    """At the start, with what to do."""
    with pytest.raises(ConfigError, match=r"no_untrusted_only refuses whatever comes"):
        trained(tmp_path, ScriptedEnvironment(), *CLAUSE, "env.trust=untrusted")


def test_another_rule_can_be_asked_what_it_would_refuse(tmp_path: Path) -> None:
    """Every candidate of a run over untrusted items; and of a run that refused them, what cannot be told."""
    run, _ = trained(tmp_path / "a", DoubtfulEnvironment(untrusted=EVERY))
    taken = [
        event.step for event in events_of(run) if isinstance(event, CandidateGated) and event.verdict.action != "reject"
    ]
    found = regated(run, ("evaluation.no_untrusted_only=true",))
    verdicts = [verdict for verdict in found.verdicts if verdict.kind == "candidate"]
    assert {verdict.derived for verdict in verdicts} == {"untrusted_only"}
    assert [verdict.number for verdict in verdicts if verdict.changed] == taken
    refused, _ = trained(tmp_path / "b", DoubtfulEnvironment(untrusted=EVERY), *CLAUSE)
    assert not [verdict for verdict in regated(refused).verdicts if verdict.changed]
    first = regated(refused, ("evaluation.no_untrusted_only=false",)).parting
    assert first is not None
    assert (first.derived, first.why) == (None, "the candidate was never measured")
