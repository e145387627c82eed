"""Scripted runs of every kind that the audit has to understand, each trained once a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from skillopt_es.events.catalog import Recorded
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.session import start
from support.forgetful import AFTER_VERDICT, ON, forgetful_world
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply
from support.scripted_modes import MODES, SKILL, rewriting_world

KINDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "guidance at a gate": ("optimizer.slow_update_gate_with_selection=true",),
    "no gate": ("evaluation.use_gate=false",),
    "autonomous": ("optimizer.lr_control_mode=autonomous",),
    "notes": (ON, "train.seed=7"),
    "late advice": (),
    "fewer notes": (ON, "optimizer.skill_aware_consolidate_threshold=2"),
    "notes after the verdict": (ON, AFTER_VERDICT),
    **{mode: (f"optimizer.skill_update_mode={mode}", "env.skill_init=SKILL.md") for mode in MODES},
}
REWRITING = tuple(MODES)
_BY_DEFAULT = {"plain", "guidance at a gate", "notes after the verdict", REWRITING[0]}
MOST_SLOW = [pytest.param(kind, marks=() if kind in _BY_DEFAULT else pytest.mark.slow) for kind in KINDS]
"""Every kind as a parameter: those that have most in them by default."""


def world_of(kind: str) -> ScriptedWorld:
    """The world that a kind of run is trained in."""
    if kind in REWRITING:
        return rewriting_world()
    if kind == "late advice":
        return ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", _tongue_tied))
    return forgetful_world() if "notes" in kind else ScriptedWorld()


def _tongue_tied(request: ChatRequest) -> str:
    """The scripted optimizer, which has nothing to say at the end of epoch 2."""
    silent = request.slot.removesuffix("/again") in ("e2/slow/advice", "e2/meta")
    return "no" if silent else optimizer_reply(request)


def trained(kind: str, folder: Path) -> Path:
    """The folder of a run of this kind."""
    config(folder)  # makes the folder
    (folder / "SKILL.md").write_text(SKILL)
    asyncio.run(start(config(folder, KINDS[kind]), folder / "run", world_of(kind).session()))
    return folder / "run"


def records_of(folder: Path) -> list[Recorded]:
    """All that a run recorded."""
    with EventLog.open(folder) as log:
        return list(log.read())


Audited = Callable[[str], Path]
