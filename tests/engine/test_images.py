"""A run whose questions show images: each is in the log once, and part of what a recorded answer belongs to."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from attrs import frozen
from support.chat import question
from support.crashes import Crash
from support.pictures import page
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.engine.call_records import recorded_request
from skillopt_es.engine.work import Work
from skillopt_es.errors import ConfigError, Divergence
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import SkillTree, digest_of
from skillopt_es.events.verify import verify
from skillopt_es.ports import Ask, ChatReply, Episode, Image, Item, Message
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.session import resume, start

PAGE, OTHER = page(["42"]), page(["43"])


@frozen
class Pictured(ScriptedEnvironment):
    """The scripted environment, with one picture beside every question."""

    requires = frozenset({"text", "images"})
    picture: bytes = PAGE

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """As without the picture."""

        async def shown(messages: list[Message]) -> ChatReply:
            system, user = messages
            return await ask([system, Message("user", user.content, images=(Image("image/png", self.picture),))])

        return await ScriptedEnvironment.attempt(self, item, skill, shown, seed=seed)  # type: ignore[arg-type]


class Seeing(ScriptedModel):
    """A scripted model that takes images."""

    provides = frozenset({"text", "messages", "images"})


def world(picture: bytes = PAGE) -> ScriptedWorld:
    return ScriptedWorld(environment=Pictured(picture=picture), target=Seeing("scripted target", target_reply))


def test_an_image_is_stored_once_and_named_by_each_request(tmp_path: Path) -> None:
    """With its bytes; verify misses it when it is gone."""
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path, ["train.num_epochs=1"]), run, world().session()))
    with EventLog.open(run) as log:
        requests = [json.loads(str(row[0])) for row in log.reader.rows("select request from forms order by id")]
        [stored] = log.reader.rows("select codec, size from log_blobs where digest = ?", (digest_of(PAGE),))
    assert stored[1] == len(PAGE)
    named = [request["images"] for request in requests if "images" in request]
    assert named == [[[1, "image/png", "auto", "#"]]] * len(named)
    assert named
    assert verify(run).ok
    with closing(sqlite3.connect(run / LOG_FILE)) as connection:
        for (trigger,) in connection.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            connection.execute(f"drop trigger {trigger}")
        connection.execute("delete from blobs where digest = ?", (bytes.fromhex(digest_of(PAGE)),))
        connection.commit()
    assert any("image" in problem.message for problem in verify(run).problems)


class CrashAtFirstCall:
    """The session dies after the first call is in the journal, before anything follows from it."""

    def planned(self, work: Work, state: AnyState) -> None:
        """Nothing to do."""

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Nothing to do."""

    def called(self, row: CallRow) -> None:
        """Crashes."""
        raise Crash("crashed")


def test_another_image_is_another_request(tmp_path: Path) -> None:
    """A run is not resumed with answers about other pictures."""
    with pytest.raises(Crash, match="crashed"):
        asyncio.run(start(config(tmp_path), tmp_path / "run", world().session(observers=(CrashAtFirstCall(),))))
    with pytest.raises(Divergence, match="another request"):
        asyncio.run(resume(tmp_path / "run", world(OTHER).session()))
    asyncio.run(resume(tmp_path / "run", world().session()))


def test_a_request_without_images_is_recorded_as_ever() -> None:
    """Only then is a key of them there."""
    plain = question()
    assert set(recorded_request(plain).said) == {"messages", "params"}
    for detail in ("auto", "low"):
        shown = question(messages=(Message("user", "?", images=(Image("image/png", PAGE, detail),)),))  # type: ignore[arg-type]
        assert recorded_request(shown).said["images"] == [[0, "image/png", detail, digest_of(PAGE)]]


def test_a_model_without_eyes_does_not_start(tmp_path: Path) -> None:
    """And nothing is recorded."""
    blind = ScriptedWorld(environment=Pictured())
    with pytest.raises(ConfigError, match="needs images"):
        asyncio.run(start(config(tmp_path), tmp_path / "run", blind.session()))
    assert not (tmp_path / "run").exists()
