"""
Folding: events per second and memory, over a made log of any length. `python tests/bench/bench_fold.py [EVENTS]`

Prints the rate for a quarter, half and all of the events: a linear fold keeps its rate.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    RunStarted,
    SkillScored,
)
from skillopt_es.events.values import Batch, Edit, GateVerdict, Measured, Minibatch, Purpose, Score, SkillTree, SplitIds

TRAIN = tuple(f"t{index}" for index in range(40))
VAL = tuple(f"v{index}" for index in range(200))
SKILL = SkillTree(files={"SKILL.md": "# Skill\n"})
SCORE = Score(hard=0.5, soft=0.5, measured=200)


def rollouts(place: str, purpose: Purpose, items: tuple[str, ...], skill: str) -> Iterator[Event]:
    """One evaluation's rollouts."""
    for item in items:
        yield RolloutCompleted(
            place=place, purpose=purpose, item=item, skill=skill, outcome=Measured(0.0, 0.0), task_type="", turns=1
        )


def scored(place: str, purpose: Purpose, skill: str) -> Event:
    """Its sum."""
    split = "train" if purpose == "train" else "val"
    return SkillScored(place=place, purpose=purpose, split=split, skill=skill, score=SCORE, value=0.5, by_type={})


def made_log(steps: int) -> Iterator[Event]:
    """A legal log of one long epoch in which every candidate is rejected: 248 events a step."""
    splits = SplitIds(train=TRAIN, val=VAL, test=(), digests={})
    yield RunStarted(
        software="x",
        config={},
        algorithm="classic",
        folder=".",
        skill=SKILL,
        splits=splits,
        steps_per_epoch=steps,
        total_steps=steps,
    )
    yield from rollouts("baseline", "selection", VAL, SKILL.hash)
    yield scored("baseline", "selection", SKILL.hash)
    yield EpochPlanned(epoch=1, batches=tuple(Batch(seed=step, items=TRAIN) for step in range(steps)))
    for step in range(1, steps + 1):
        yield from one_step(step)


def one_step(step: int) -> Iterator[Event]:
    """A step's events."""
    place = f"e1/s{step}"
    yield from rollouts(f"{place}/b0", "train", TRAIN, SKILL.hash)
    yield scored(f"{place}/b0", "train", SKILL.hash)
    group = Minibatch(id=f"{place}/b0/failure-0", kind="failure", place=f"{place}/b0", items=TRAIN)
    yield MinibatchesPlanned(step=step, groups=(group,))
    edit = Edit(id=f"{group.id}#1", op="append", content=f"rule {step}")
    yield PatchProposed(patch=group.id, step=step, kind="failure", items=TRAIN, result="edits", edits=(edit,))
    yield EditsRanked(step=step, budget=4, pool=(edit.id,), chosen=(edit.id,))
    candidate = SKILL.with_text(f"# Skill\n\nrule {step}\n")
    yield CandidateBuilt(step=step, parent=SKILL.hash, candidate=candidate, reports=())
    yield from rollouts(f"{place}/gate", "selection", VAL, candidate.hash)
    yield scored(f"{place}/gate", "selection", candidate.hash)
    verdict = GateVerdict(
        action="reject", metric="hard", candidate_score=SCORE, candidate_value=0.5, current_score=SCORE,
        current_value=0.5, best_value=0.5, compared=200,
    )  # fmt: skip
    yield CandidateGated(step=step, candidate=candidate.hash, verdict=verdict)


def counted(events: Iterator[Event], seen: list[int]) -> Iterator[Event]:
    """The same events, counted."""
    for event in events:
        seen[0] += 1
        yield event


if __name__ == "__main__":
    steps = int(sys.argv[1]) // 248 if len(sys.argv) > 1 else 4032
    for share in (4, 2, 1):
        began = time.process_time()
        making = [0]
        for _ in counted(made_log(steps // share), making):
            pass
        made = time.process_time() - began
        seen = [0]
        began = time.process_time()
        fold(counted(made_log(steps // share), seen))
        taken = time.process_time() - began - made
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{seen[0]:>9,} events: {seen[0] / taken:>9,.0f} folded per CPU second, {memory:.0f} MB at most")
