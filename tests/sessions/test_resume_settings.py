"""Resuming may change how the world is reached, never what is decided; a pause always has a way out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import NOON, ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.audit.check import check
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RolloutCompleted, RunPaused, RunStarted, SkillScored
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.ports import ChatReply, ChatRequest, Usage
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

RAISED = ("env.max_completion_tokens=20000",)


def cut_below(limit: int) -> ScriptedWorld:
    """A target that is cut off at every lower limit, on one validation item."""

    def cut(request: ChatRequest) -> str | ChatReply:
        if request.max_tokens < limit and "id: v3" in request.messages[1].content:
            return ChatReply(text="righ", finish="length", usage=Usage(output=request.max_tokens))
        return target_reply(request)

    return ScriptedWorld(target=ScriptedModel("scripted target", cut))


def is_sound(run: Path) -> bool:
    """Whether every decision follows from the evidence."""
    with EventLog.open(run) as log:
        return asyncio.run(check(log, Journal(log.reader), run)).mismatch is None


def test_a_pause_for_cut_replies_ends_with_a_higher_limit_in_a_fork(tmp_path: Path) -> None:
    """A limit that nobody chose leaves such items without a result, so no result rests on it; `resume` keeps it."""
    world, run = cut_below(20_000), tmp_path / "run"
    asyncio.run(start(config(tmp_path), run, world.session()))
    paused = events_of(run)[-1]
    assert isinstance(paused, RunPaused)
    assert "`fork --set env.max_completion_tokens=N`" in paused.message
    with pytest.raises(ConfigError, match=r"env\.max_completion_tokens: a run that has begun keeps it") as refused:
        asyncio.run(resume(run, world.session(ask_again=True, overrides=RAISED)))
    assert "`skillopt-es fork run --set env.max_completion_tokens=…" in refused.value.hint
    fork = tmp_path / "fork"
    make_fork(run, len(events_of(run)), fork, overrides=RAISED, now=lambda: NOON)
    asyncio.run(resume(fork, world.session()))
    assert read_state(fork).status == "completed"
    assert is_sound(fork)


def test_a_limit_that_was_chosen_stays_as_long_as_results_rest_on_it(tmp_path: Path) -> None:
    """Cut replies are graded at it: skills measured with another one cannot be compared, not even in a fork."""
    world, run = cut_below(20_000), tmp_path / "run"
    asyncio.run(start(config(tmp_path, ["env.max_completion_tokens=64"]), run, world.session()))
    events = events_of(run)
    assert any(isinstance(event, RolloutCompleted) and event.truncated for event in events)
    measured = next(seq for seq, event in enumerate(events, 1) if isinstance(event, SkillScored))
    with pytest.raises(ConfigError, match="is 64, and the skills measured so far were measured with it"):
        make_fork(run, measured, tmp_path / "late", overrides=RAISED, now=lambda: NOON)
    make_fork(run, 1, tmp_path / "early", overrides=RAISED, now=lambda: NOON)
    asyncio.run(resume(tmp_path / "early", world.session()))
    assert is_sound(tmp_path / "early")


def test_a_lower_limit_is_no_patience_either(tmp_path: Path) -> None:
    """What was measured had more room."""
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path), run, ScriptedWorld().session()))
    measured = next(seq for seq, event in enumerate(events_of(run), 1) if isinstance(event, SkillScored))
    lower = ["env.max_completion_tokens=64"]
    with pytest.raises(ConfigError, match="is 16384, and the skills measured so far"):
        make_fork(run, measured, tmp_path / "fork", overrides=lower, now=lambda: NOON)


def test_the_default_written_down_is_a_choice(tmp_path: Path) -> None:
    """It is recorded when the run starts, whatever our default is when somebody reads the log."""
    world, written = cut_below(20_000), ["env.max_completion_tokens=16384"]
    for name, settings, chosen in (("own", written, True), ("ours", [], False)):
        run = tmp_path / name
        asyncio.run(start(config(tmp_path, settings), run, world.session()))
        first = events_of(run)[0]
        assert isinstance(first, RunStarted)
        assert first.limit_chosen is chosen
        rows = [event for event in events_of(run) if isinstance(event, RolloutCompleted) and event.item == "v3"]
        assert {row.truncated for row in rows} == {chosen}
        assert is_sound(run)


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
