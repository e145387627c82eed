"""An optimizer that copies items into the skill: refused with the item's name, and derived again as it was refused."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from attrs import evolve, frozen
from support.forgetful import ON, forgetful_target, noting_reply
from support.logs import events_of
from support.scripted import (
    Answer,
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
    target_reply,
)
from support.scripted_modes import rewriting_reply

from skillopt_es.audit.check import check
from skillopt_es.events.catalog import AppendixExtended, CandidateBuilt, Event, SlowUpdateProposed, StepSkipped
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import Ask, ChatRequest, Episode, Item, TrajectoryRecord
from skillopt_es.sessions.session import start

STORY = "the tale of item {} is told by nobody else, in words that belong to it alone, and so goes on for a while"
COPIED = re.compile(r"(the tale of item (\w+) is told by nobody else, in words that belong to it alone)")


@frozen
class Storied(ScriptedEnvironment):
    """Each item has a text of its own, and an answer that no other has."""

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """As scripted, with the item's text among what analysts see."""
        episode = await ScriptedEnvironment.attempt(self, item, skill, ask, seed=seed)
        story = TrajectoryRecord("user", STORY.format(item.id))
        return evolve(
            episode, task=STORY.format(item.id), records=(*episode.records, story), answers=(f"answer {item.id}",)
        )


def copying(request: ChatRequest, reply: str) -> str:
    """The reply with a copy of the first item that the question shows, in every text that goes into the skill."""
    found = COPIED.search(request.messages[1].content)
    if found is None:
        return reply
    said = json.loads(reply)
    for edit in said.get("patch", {}).get("edits", [])[:1]:
        edit["content"] += f". {found[1]}"
    for draft in said.get("patch", {}).get("skill_candidates", []):
        draft["new_skill"] += f"\n{found[1]}\n"
    if said.get("appendix_notes"):
        said["appendix_notes"][0] = f"Mind: {found[1]}"
    if "slow_update_content" in said:
        said["slow_update_content"] += f"\n- for the tale of item {found[2]} say answer {found[2]}"
    return json.dumps(said)


def copying_optimizer(request: ChatRequest) -> str:
    """The scripted optimizer, copying."""
    return copying(request, optimizer_reply(request))


def train(folder: Path, *overrides: str, reply: Answer = copying_optimizer, lapses: bool = False) -> list[Event]:
    """The events of a run whose optimizer copies; all its decisions are derived again."""
    world = ScriptedWorld(
        environment=Storied(),
        optimizer=ScriptedModel("copying optimizer", reply),
        target=ScriptedModel("target", forgetful_target if lapses else target_reply),
    )
    asyncio.run(start(config(folder, overrides), folder / "run", world.session()))
    with EventLog.open(folder / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), folder / "run")).ok
    return events_of(folder / "run")


def texts(events: list[Event]) -> str:
    """All skills that were ever built."""
    return "\n".join(event.candidate.text for event in events if isinstance(event, CandidateBuilt))


def test_an_edit_that_copies_an_item_is_left_out(tmp_path: Path) -> None:
    """Its report names the item and the words; the other edits are applied."""
    events = train(tmp_path)
    reports = [report for event in events if isinstance(event, CandidateBuilt) for report in event.reports]
    refused = [report for report in reports if report.status == "refused_leak"]
    assert refused
    assert all(re.match(r"item t\d+: 12 of its words in a row: “the tale of item t", report.note) for report in refused)
    assert any(report.status.startswith("applied") for report in reports)
    assert "tale" not in texts(events)


def test_without_the_check_it_goes_in(tmp_path: Path) -> None:
    """As in the original."""
    assert "told by nobody else" in texts(train(tmp_path, "optimizer.leak_span=0"))


def test_a_longer_span_lets_it_pass(tmp_path: Path) -> None:
    """The key is the number of words."""
    assert "told by nobody else" in texts(train(tmp_path, "optimizer.leak_span=40"))


def test_a_draft_that_copies_an_item_changes_nothing(tmp_path: Path) -> None:
    """The step ends without a candidate, and says why."""
    events = train(
        tmp_path,
        "optimizer.skill_update_mode=full_rewrite_minibatch",
        reply=lambda request: copying(request, rewriting_reply(request)),
    )
    assert "tale" not in texts(events)
    skipped = [event for event in events if isinstance(event, StepSkipped) and "refused_leak" in event.detail]
    built = [report.status for event in events if isinstance(event, CandidateBuilt) for report in event.reports]
    assert "refused_leak" in built
    assert skipped


def test_a_note_that_copies_an_item_is_left_out(tmp_path: Path) -> None:
    """Its report says of which item."""
    events = train(tmp_path, ON, lapses=True, reply=lambda request: copying(request, noting_reply(request)))
    reports = [report for event in events if isinstance(event, AppendixExtended) for report in event.reports]
    refused = [report for report in reports if report.status == "refused_leak"]
    assert refused
    assert all(report.why.startswith("item t") for report in refused)
    assert "tale" not in texts(events)


@pytest.mark.parametrize("again", ["true", "false"])
def test_guidance_that_tells_an_answer_is_asked_for_again(tmp_path: Path, again: str) -> None:
    """And is not taken when it tells it again."""
    events = train(tmp_path, f"optimizer.ask_again={again}")
    proposed = [event for event in events if isinstance(event, SlowUpdateProposed)]
    assert proposed
    for event in proposed:
        assert event.result == "unusable"
        assert re.match(
            r"refused_leak: it copies item t\d+: its answer \(“answer t\d+”\) with its question", event.note
        )
        assert len(event.calls) == (2 if again == "true" else 1)
