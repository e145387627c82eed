"""The scripted world with items that now and then fail or pass whatever the skill says; every call draws anew."""

from __future__ import annotations

import re

from attrs import evolve

from skillopt_es.ports import ChatRequest, Message
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, chance, optimizer_reply, target_reply


def flaky_reply(request: ChatRequest) -> str:
    """What the target says; three of ten items are drawn by the place of the call."""
    found = re.search(r"id: (\w+)", request.messages[-1].content)
    assert found is not None
    if chance(f"flaky {found[1]}") < 0.3:
        return "right" if chance(f"{request.slot} {found[1]}") < 0.5 else "wrong"
    return target_reply(request)


def without_scores(request: ChatRequest) -> str:
    """What the optimizer says, whatever scores it is told."""
    told = request.messages[1].content
    user = Message("user", re.sub(r"\(score [^)]*\)", "", told))
    return optimizer_reply(evolve(request, messages=(request.messages[0], user)))


def flaky_world(train: int = 12, val: int = 20, test: int = 0) -> ScriptedWorld:
    """Few training items, and validation items of which some flip."""
    return ScriptedWorld(
        environment=ScriptedEnvironment(train=train, val=val, test=test),
        target=ScriptedModel("flaky target", flaky_reply),
        optimizer=ScriptedModel("scripted optimizer", without_scores),
    )
