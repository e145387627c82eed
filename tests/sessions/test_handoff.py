"""Questions for whoever answers them: the run pauses when all is asked, and goes on with the recorded answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.logs import call_slots, decisions_of, events_of
from support.params import parametrized
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply

from skillopt_es.adapters.models.handoff import Handoff
from skillopt_es.audit.check import check
from skillopt_es.errors import DataError, NotInRun
from skillopt_es.events.catalog import RunPaused
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Stage
from skillopt_es.ports import ChatModel, ChatReply, ChatRequest
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.handoff import FOLDER, Question, questions, record_answer
from skillopt_es.sessions.session import resume, start

SMALL = ("train.num_epochs=1", "train.batch_size=3", "env.workers=2")
ENVIRONMENT = ScriptedEnvironment(train=6, val=4, test=2)


def plainly(reply: Callable[[ChatRequest], str]) -> Callable[[ChatRequest], ChatReply]:
    """The reply without a count of tokens, as an answer from outside has none."""
    return lambda request: ChatReply(text=reply(request), finish="stop")


def world(target: ChatModel | None = None, optimizer: ChatModel | None = None) -> ScriptedWorld:
    """The scripted world; a model that is left out is the scripted one, under the name of a handed-off one."""
    return ScriptedWorld(
        environment=ENVIRONMENT,
        target=target or ScriptedModel("handoff t", plainly(target_reply)),  # type: ignore[arg-type]
        optimizer=optimizer or ScriptedModel("handoff o", plainly(optimizer_reply)),  # type: ignore[arg-type]
    )


def begun(tmp_path: Path, made: ScriptedWorld) -> tuple[Path, AnyState]:
    """A run as far as it comes without answers."""
    folder = tmp_path / "run"
    return folder, asyncio.run(start(config(tmp_path, SMALL), folder, made.session()))


def answer_of(question: Question) -> str:
    """What the scripted models would say."""
    stage: Stage = question.call.stage  # type: ignore[assignment]
    request = ChatRequest(slot="", stage=stage, messages=question.messages, max_tokens=1)
    return target_reply(request) if stage == "rollout" else optimizer_reply(request)


def answer_all(folder: Path) -> int:
    """Somebody answers what waits; how much that was."""
    waiting = questions(folder)
    for each in waiting:
        record_answer(folder, each.key, answer_of(each) + "\n", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return len(waiting)


def test_the_run_pauses_when_all_that_can_be_asked_is_asked(tmp_path: Path) -> None:
    """However few workers there are, every item of the first evaluation waits; the pause has a reason of its own."""
    folder, state = begun(tmp_path, world(target=Handoff("t")))
    assert state.paused == RunPaused(reason="handoff", message="4 questions wait for their answers")
    assert events_of(folder)[-1] == state.paused
    waiting = questions(folder)
    assert [each.call.slot for each in waiting] == sorted(f"baseline/item/v{number}" for number in range(4))
    assert call_slots(folder) == []
    assert {file.name for file in (folder / FOLDER).iterdir()} == {
        f"{each.key}.{suffix}" for each in waiting for suffix in ("json", "md")
    }
    page = (folder / FOLDER / f"{waiting[0].key}.md").read_text()
    assert "kind: apple id: v0" in page


@parametrized("roles", ["target", "optimizer", "both"], by_default=1)
def test_a_run_that_is_answered_by_hand_ends_like_any_other(tmp_path: Path, roles: str) -> None:
    """Pause, answers, resume, until it is complete: the same decisions, each question asked once."""
    other = tmp_path / "other"
    asyncio.run(start(config(other, SMALL), other / "run", world().session()))
    made = world(
        target=Handoff("t") if roles != "optimizer" else None, optimizer=Handoff("o") if roles != "target" else None
    )
    folder, state = begun(tmp_path, made)
    rounds = 0
    while state.paused is not None and state.paused.reason == "handoff":
        assert answer_all(folder) > 0
        state = asyncio.run(resume(folder, made.session()))
        rounds += 1
        assert rounds < 40
    assert state.completed is not None
    assert questions(folder) == []
    assert decisions_of(folder)[1:] == decisions_of(other / "run")[1:]
    assert sorted(call_slots(folder)) == sorted(set(call_slots(folder))) == sorted(call_slots(other / "run"))
    with EventLog.open(folder) as log:
        assert asyncio.run(check(log, Journal(log.reader), folder)).ok


def test_answering_some_leaves_the_others(tmp_path: Path) -> None:
    """A resumed run asks only for what is missing; an answer is not asked for again."""
    made = world(target=Handoff("t"))
    folder, _ = begun(tmp_path, made)
    first = questions(folder)[0]
    record_answer(folder, first.key[:6], "right", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    assert len(questions(folder)) == 3
    state = asyncio.run(resume(folder, made.session()))
    assert state.paused is not None
    assert state.paused.message == "3 questions wait for their answers"
    assert first.key not in {each.key for each in questions(folder)}


def test_what_cannot_be_an_answer_is_refused(tmp_path: Path) -> None:
    """An empty text, an unknown key, a question that was changed."""

    def now() -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    folder, _ = begun(tmp_path, world(target=Handoff("t")))
    key = questions(folder)[0].key
    with pytest.raises(DataError, match="an answer must not be empty"):
        record_answer(folder, key, " \n", now)
    with pytest.raises(NotInRun, match="no question zzz waits in run"):
        record_answer(folder, "zzz", "right", now)
    file = folder / FOLDER / f"{key}.json"
    row = json.loads(file.read_text())
    row["messages"][1]["content"] = "kind: cherry"
    file.write_text(json.dumps(row))
    with pytest.raises(DataError, match="was changed"):
        record_answer(folder, key, "right", now)
    file.write_text("[]")
    with pytest.raises(DataError, match="is not a question"):
        questions(folder)
    asyncio.run(resume(folder, world(target=Handoff("t")).session()))
    assert key in {each.key for each in questions(folder)}
