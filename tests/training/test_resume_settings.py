"""Resuming may change how the world is reached, never what is decided; a pause always has a way out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunPaused, RunResumed
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import ChatReply, ChatRequest
from skillopt_es.session import read_state, resume, start
from skillopt_es.training.check import check
from skillopt_es.training.rollout import unit_slot
from skillopt_es.training.tasks import Unit


def test_a_pause_for_cut_replies_ends_with_a_higher_limit(tmp_path: Path) -> None:
    """The recorded cut answers are asked anew; the new limit is in the log, and every decision still follows."""

    def cut(request: ChatRequest) -> str | ChatReply:
        short = request.max_tokens < 1000 and "id: v3" in request.messages[1].content
        return ChatReply(text="righ", finish="length") if short else target_reply(request)

    world = ScriptedWorld(target=ScriptedModel("scripted target", cut))
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path, ["env.max_completion_tokens=10"]), run, world.session()))
    assert isinstance(events_of(run)[-1], RunPaused)
    raised = ("env.max_completion_tokens=2000",)
    asyncio.run(resume(run, world.session(ask_again=True, overrides=raised)))
    assert read_state(run).status == "completed"
    [resumed] = [event for event in events_of(run) if isinstance(event, RunResumed)]
    assert [(setting.key, setting.value) for setting in resumed.overrides] == [("env.max_completion_tokens", 2000)]
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None


@pytest.mark.parametrize(
    "key", ["train.batch_size=2", "evaluation.gate_metric=soft", "model.target=other", "env.name=x"]
)
def test_what_decides_cannot_change(key: str, tmp_path: Path) -> None:
    """The error says what can."""
    run = tmp_path / "run"
    stop = ScriptedWorld()
    with pytest.raises(BaseException, match="stopped"):
        asyncio.run(start(config(tmp_path), run, stop.session(stopping=lambda: stop.calls > 3)))
    before = len(events_of(run))
    with pytest.raises(ConfigError, match="keeps it"):
        asyncio.run(resume(run, ScriptedWorld().session(overrides=(key,))))
    assert len(events_of(run)) == before


def test_items_cannot_take_the_slots_of_others() -> None:
    """Whatever an id looks like, its slot is one part under `item`, and no two ids share one."""
    ids = ["failure-0", "a", "a/again", "a/turn-2", "a%2Fagain", "../x", "item/a"]
    tree = SkillTree(files={"SKILL.md": ""})
    slots = [unit_slot(Unit(place="e1/s1/b0", purpose="train", item=item, skill=tree, seed=1)) for item in ids]
    assert len(set(slots)) == len(ids)
    assert all(slot.startswith("e1/s1/b0/item/") and slot.count("/") == 4 for slot in slots)
