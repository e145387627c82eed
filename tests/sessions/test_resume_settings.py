"""Resuming may change how the world is reached, never what is decided; a pause always has a way out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.audit.check import check
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RunPaused, RunResumed
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.ports import ChatReply, ChatRequest, Usage
from skillopt_es.sessions.session import read_state, resume, start


def test_a_pause_for_cut_replies_ends_with_a_higher_limit(tmp_path: Path) -> None:
    """The recorded cut answers are asked anew; the new limit is in the log, and every decision still follows."""

    def cut(request: ChatRequest) -> str | ChatReply:
        short = request.max_tokens < 1000 and "id: v3" in request.messages[1].content
        cut_short = ChatReply(text="righ", finish="length", usage=Usage(output=4))  # the endpoint's own limit
        return cut_short if short else target_reply(request)

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
    slots = [Place("e1/s1/b0").of_item(item) for item in ids]
    assert len(set(slots)) == len(ids)
    assert all(slot.startswith("e1/s1/b0/item/") and slot.count("/") == 4 for slot in slots)


def test_a_wrong_value_at_resume_is_the_users_mistake_and_not_the_logs(tmp_path: Path) -> None:
    """The log is sound, and nothing is recorded."""
    run = paused_run(tmp_path)
    before = len(events_of(run))
    for wrong in ("env.workers=x", "model.attempts=0", "prices.unit=USD"):
        with pytest.raises(ConfigError, match=wrong.partition("=")[0]):
            asyncio.run(resume(run, ScriptedWorld().session(overrides=(wrong,))))
    assert len(events_of(run)) == before


def test_a_setting_for_a_run_that_is_complete_is_refused(tmp_path: Path) -> None:
    """It would change nothing; a wrong key is refused as ever, and without any the run is left as it is."""
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path), run, ScriptedWorld().session()))
    with pytest.raises(ConfigError, match="is complete"):
        asyncio.run(resume(run, ScriptedWorld().session(overrides=("env.workers=3",))))
    with pytest.raises(ConfigError, match="foo"):
        asyncio.run(resume(run, ScriptedWorld().session(overrides=("foo.bar=3",))))
    assert asyncio.run(resume(run, ScriptedWorld().session())).status == "completed"


def paused_run(folder: Path) -> Path:
    """A run that stopped at its baseline."""
    world = ScriptedWorld(target=ScriptedModel("scripted target", lambda request: ChatReply(text="r", finish="length")))
    asyncio.run(start(config(folder), folder / "run", world.session()))
    assert isinstance(events_of(folder / "run")[-1], RunPaused)
    return folder / "run"
