"""
What `train.speculate` saves in wall time and what it wastes, at acceptance rates of about 0.2, 0.5 and 0.8.

    python tests/bench/bench_speculation.py

Models in this process answer after 50 ms. An edit is good with the given chance; each good one solves one more of 40
validation items, so it is accepted, and any other is rejected. 40 steps of 24 tasks.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from attrs import frozen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.logs import events_of
from support.scripted import (
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    chance,
    config,
    optimizer_reply,
)

from skillopt_es.events.catalog import CandidateGated
from skillopt_es.ports import ALONE, ChatReply, ChatRequest, Course
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.session import start

DELAY = 0.05


class SlowModel(ScriptedModel):
    """Answers after the delay."""

    async def complete(self, request: ChatRequest, course: Course = ALONE) -> ChatReply:
        """The scripted answer, later."""
        await asyncio.sleep(DELAY)
        return await super().complete(request, course)


def target_reply(request: ChatRequest) -> str:
    """Right for as many validation items as there are good lines."""
    skill, user = request.messages[0].content, request.messages[-1].content
    item = re.search(r"id: v(\d+)", user)
    return "right" if item is not None and int(item[1]) < skill.count("- good") else "wrong"


def optimizer_with(rate: float) -> ScriptedModel:
    """Proposes one line a step, good with this chance."""

    def answer(request: ChatRequest) -> str:
        user = request.messages[1].content
        if request.stage != "analyst":
            return optimizer_reply(request)
        word = "good" if chance(user) < rate else "other"
        edits = [{"op": "append", "target": "", "content": f"- {word} {chance(user):.6f}"}]
        return json.dumps({"failure_summary": [], "patch": {"reasoning": "one line", "edits": edits}})

    return SlowModel("scripted optimizer", answer)


@frozen
class Figures:
    """One run."""

    wall: float
    accepted: int
    gates: int
    calls: int
    wasted: int


def run(rate: float, *, workers: int, speculate: bool) -> Figures:
    """One run's figures."""
    world = ScriptedWorld(
        environment=ScriptedEnvironment(train=240, val=40, test=4),
        target=SlowModel("scripted target", target_reply),
        optimizer=optimizer_with(rate),
    )
    settings = {
        "train.batch_size": 24,
        "train.num_epochs": 4,
        "gradient.minibatch_size": 24,
        "optimizer.use_slow_update": False,
        "optimizer.use_meta_skill": False,
        "env.workers": workers,
        "train.speculate": speculate,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        overrides = [f"{key}={value}" for key, value in settings.items()]
        begin = time.perf_counter()
        asyncio.run(start(config(folder, overrides), folder / "run", world.session()))
        wall = time.perf_counter() - begin
        gates = [event for event in events_of(folder / "run") if isinstance(event, CandidateGated)]
        used = spent(folder / "run")
        accepted = sum(gate.verdict.action != "reject" for gate in gates)
        return Figures(wall, accepted, len(gates), used.usage.total.calls, used.ahead.wasted.calls)


def main() -> None:
    """One line a set-up."""
    print("workers  accepted   wall with / without   calls with / without   wasted")
    for workers in (64, 24):
        for rate in (0.2, 0.5, 0.8):
            plain, ahead = (run(rate, workers=workers, speculate=on) for on in (False, True))
            print(
                f"{workers:7d}  {ahead.accepted:2d} of {ahead.gates:2d}"
                f"   {ahead.wall:5.1f} / {plain.wall:5.1f} s = {ahead.wall / plain.wall:.2f}"
                f"   {ahead.calls} / {plain.calls}   {ahead.wasted} ({ahead.wasted / ahead.calls:.0%})"
            )


if __name__ == "__main__":
    main()
