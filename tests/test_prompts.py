"""Prompts have versions: a run keeps those that it began with, and a released version never changes."""

from __future__ import annotations

import asyncio
import hashlib
from importlib import resources
from pathlib import Path

import pytest
from support.logs import events_of
from support.params import parametrized
from support.scripted import config
from support.scripted_modes import MODES, SKILL, rewriting_reply, rewriting_world

from skillopt_es.audit.check import check
from skillopt_es.errors import Interrupted
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest
from skillopt_es.prompts import LATEST, system_prompt
from skillopt_es.sessions import session as module
from skillopt_es.sessions.session import resume, start

DIGESTS = {
    1: "0916a2a3a05152b4",
    2: "a64a9ad9abae1453",
    3: "a634c93187442382",
    4: "88205667525a5c57",
    5: "47f2803699ab0b55",
}


@pytest.mark.parametrize("version", DIGESTS)
def test_a_released_version_never_changes(version: int) -> None:
    """Recorded answers were given to these very texts: reword a prompt in the folder of a new version."""
    folder = resources.files("skillopt_es.prompts") / f"v{version}"
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    assert digest.hexdigest()[:16] == DIGESTS[version]


def test_every_version_has_a_digest() -> None:
    """The latest one, too."""
    assert max(DIGESTS) == LATEST


def test_a_version_has_the_prompts_of_those_before_it() -> None:
    """Only what changed lies in its folder."""
    assert system_prompt("ranking", 2) == system_prompt("ranking", 1)
    assert system_prompt("rewrite_skill", 2) != system_prompt("rewrite_skill", 1)


@parametrized("version", DIGESTS, by_default=2)
def test_a_run_keeps_the_prompts_that_it_began_with(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are recorded and sent, the check composes them again, and a later software resumes with them."""
    monkeypatch.setattr(module, "LATEST", version)
    (tmp_path / "SKILL.md").write_text(SKILL)
    keys = [f"optimizer.skill_update_mode={MODES[0]}", "env.skill_init=SKILL.md", "train.num_epochs=1"]
    rewrites = {system_prompt("rewrite_skill", number) for number in DIGESTS}
    sent: list[str] = []

    def answered(request: ChatRequest) -> str:
        sent.extend({request.messages[0].content} & rewrites)
        return rewriting_reply(request)

    run, world = tmp_path / "run", rewriting_world(answered)
    with pytest.raises(Interrupted):
        asyncio.run(start(config(tmp_path, keys), run, world.session(stopping=lambda: bool(sent))))
    monkeypatch.setattr(module, "LATEST", LATEST)
    before = len(sent)
    asyncio.run(resume(run, world.session()))
    began = events_of(run)[0]
    assert isinstance(began, RunStarted)
    assert began.prompts == version
    assert 0 < before < len(sent)
    assert set(sent) == {system_prompt("rewrite_skill", version)}
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None
