"""A scripted world in which the target forgets rules that it has, until a note reminds it of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

from skillopt_es.ports import ChatReply, ChatRequest
from support.scripted import (
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    chance,
    optimizer_reply,
    target_reply,
)

Reply = dict[str, object]
ON = "optimizer.use_skill_aware_reflection=true"
AFTER_VERDICT = "skillopt.follow=[notes_after_verdict]"
KNOWS_SOME = "# Skill\n\n- know apple\n- know birch\n- know cedar\n"
KNOWS_ALL = f"{KNOWS_SOME}- know daisy\n- know elder\n- know fern\n"


def forgetful_target(request: ChatRequest) -> str:
    """As the scripted target, but wrong on two of five items whose kind no note names."""
    skill, user = request.messages[0].content, request.messages[-1].content
    kind = user.split()[1]
    forgets = chance(f"forgets {user}") < 0.4 and f"mind {kind}" not in skill.casefold()
    return "wrong" if forgets else target_reply(request)


def noting(request: ChatRequest) -> Reply:
    """As the scripted optimizer, with a note on every kind that the skill knows and the target forgot."""
    user = request.messages[1].content
    if request.stage == "appendix":
        kinds = sorted(set(re.findall(r"[Mm]ind (\w+)", user)))
        return {"reasoning": "joined", "appendix_notes": [", ".join(f"mind {kind}" for kind in kinds)]}
    reply: Reply = json.loads(optimizer_reply(request))
    if request.stage == "analyst":
        skill = user.split("~~~~")[1]
        wrong = set(re.findall(r"kind: (\w+), wanted: right, got: wrong", user))
        forgotten = sorted(kind for kind in wrong if f"know {kind}" in skill)
        missing = wrong - set(forgotten)
        reply["failure_summary"] = [
            {
                "failure_type": kind,
                "count": 1,
                "description": "d",
                "cause": "SKILL_DEFECT" if kind in missing else "lapse",
            }
            for kind in sorted(wrong)
        ]
        # Two analysts have two wordings of one note.
        word = "Mind" if request.slot.endswith("0") else " mind "
        reply["appendix_notes"] = [f"{word} {kind}." for kind in forgotten]
        if "success" in request.slot:
            reply["appendix_notes"] = ["Keep on answering right."]
    return reply


def noting_reply(request: ChatRequest) -> str:
    """The reply as text."""
    return json.dumps(noting(request))


def silent_reply(request: ChatRequest) -> str:
    """The same reply without a word of notes or causes."""
    reply = noting(request)
    reply.pop("appendix_notes", None)
    rows = reply.get("failure_summary", [])
    assert isinstance(rows, list)
    for row in rows:
        del row["cause"]
    return json.dumps(reply)


def forgetful_world(
    optimizer: Callable[[ChatRequest], str | ChatReply] = noting_reply,
    *,
    environment: ScriptedEnvironment | None = None,
    shuffle: random.Random | None = None,
) -> ScriptedWorld:
    """The world, with this optimizer."""
    return ScriptedWorld(
        environment=environment or ScriptedEnvironment(train=16, val=12, test=6),
        target=ScriptedModel("forgetful target", forgetful_target, shuffle=shuffle),
        optimizer=ScriptedModel("noting optimizer", optimizer, shuffle=shuffle),
    )
