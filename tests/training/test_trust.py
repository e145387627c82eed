"""Attempts carry a label, text that nobody vouches for is fenced, and the label travels to the lines it led to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import evolve, field, frozen
from support.logs import events_of
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.audit.blame import BLAME_TYPES, blame
from skillopt_es.audit.line_costs import BlamedLine, blamed_lines
from skillopt_es.errors import DataError
from skillopt_es.events.catalog import RolloutCompleted, RunStarted
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree, Trust
from skillopt_es.ports import Ask, ChatRequest, Episode, Item, Splits
from skillopt_es.projections.trust import support_of, untrusted_attempts
from skillopt_es.session import start
from skillopt_es.start import run_started

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
