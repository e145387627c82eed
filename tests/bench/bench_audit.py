"""
The commands that audit a run, over a made log: `python tests/bench/bench_audit.py [EVENTS]` (default 100,000).

Prints the wall time of each as a process of its own, start-up included, and of blame's walk alone.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench_fold import SCORE, TRAIN, VAL, rollouts, scored

from skillopt_es.audit.blame import BLAME_TYPES, blame
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RunStarted,
)
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Batch, Edit, GateVerdict, Minibatch, SkillTree, SplitIds
from skillopt_es.events.writer import RunWriter
from skillopt_es.skill.edits import apply_edits

RULES = 60  # how many a skill has in the end; later ones take the place of older ones
GROUPS = 8


def made_log(steps: int) -> Iterator[Event]:
    """A legal log of one long epoch; two of three candidates are accepted, each with four edits."""
    skill = SkillTree(files={"SKILL.md": "# Skill\n\nYou answer questions.\n"})
    splits = SplitIds(train=TRAIN, val=VAL, test=(), digests={})
    yield RunStarted(
        software="x",
        config={},
        algorithm="classic",
        folder=".",
        skill=skill,
        splits=splits,
        steps_per_epoch=steps,
        total_steps=steps,
    )
    yield from rollouts("baseline", "selection", VAL, skill.hash)
    yield scored("baseline", "selection", skill.hash)
    yield EpochPlanned(epoch=1, batches=tuple(Batch(seed=step, items=TRAIN) for step in range(steps)))
    for step in range(1, steps + 1):
        skill = yield from one_step(step, skill)


def _edit(name: str, number: int) -> Edit:
    content = f"- Rule {number}: " + "say what is asked for and nothing else, in the form that the question names. " * 2
    if number < RULES:
        return Edit(id=name, op="append", content=content)
    return Edit(id=name, op="replace", content=f"- Rule {number}:", target=f"- Rule {number - RULES}:")


def one_step(step: int, skill: SkillTree) -> Iterator[Event]:
    """A step's events; returns the skill that is current after it."""
    place = f"e1/s{step}"
    yield from rollouts(f"{place}/b0", "train", TRAIN, skill.hash)
    yield scored(f"{place}/b0", "train", skill.hash)
    size = len(TRAIN) // GROUPS
    groups = [
        Minibatch(f"{place}/b0/failure-{at}", "failure", f"{place}/b0", TRAIN[at * size : (at + 1) * size])
        for at in range(GROUPS)
    ]
    yield MinibatchesPlanned(step=step, groups=tuple(groups))
    taken = (step - 1) - (step - 1) // 3  # steps before this one that were accepted
    for group in groups:
        edits = tuple(_edit(f"{group.id}#{at}", taken * 4 + at) for at in range(4))
        yield PatchProposed(patch=group.id, step=step, kind="failure", items=group.items, result="edits", edits=edits)
    merge = f"{place}/merge/final"
    merged = tuple(
        Edit(id=f"{merge}#{at}", op=each.op, content=each.content, target=each.target,
             origins=tuple(f"{group.id}#{at}" for group in groups))
        for at, each in enumerate(_edit("", taken * 4 + at) for at in range(4))
    )  # fmt: skip
    names = tuple(edit.id for edit in merged)
    yield PatchesMerged(
        merge=merge, step=step, group="final", level=0, inputs=tuple(group.id for group in groups), edits=merged
    )
    yield EditsRanked(step=step, budget=4, pool=names, chosen=names)
    candidate, reports = apply_edits(skill, merged)
    yield CandidateBuilt(step=step, parent=skill.hash, candidate=candidate, reports=reports)
    yield from rollouts(f"{place}/gate", "selection", VAL, candidate.hash)
    yield scored(f"{place}/gate", "selection", candidate.hash)
    accepted = step % 3 != 0
    verdict = GateVerdict(
        action="accept_new_best" if accepted else "reject", new_best=accepted, metric="hard", candidate_score=SCORE,
        candidate_value=0.5, current_score=SCORE, current_value=0.5, best_value=0.5, compared=200, won=VAL[:5],
    )  # fmt: skip
    yield CandidateGated(step=step, candidate=candidate.hash, verdict=verdict)
    return candidate if accepted else skill


def write(folder: Path, events: list[Event]) -> None:
    """A log on disk."""

    async def append(writer: RunWriter) -> None:
        for start in range(0, len(events), 1000):
            await writer.append(events[start : start + 1000], expected=start)

    with RunWriter.create(folder, run_id="made", name="made", now=lambda: datetime.now(UTC)) as writer:
        asyncio.run(append(writer))


def timed(*words: str) -> float:
    """The wall time of a command, the best of three."""
    command = [sys.executable, "-m", "skillopt_es.cli.main", *words]
    times = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


def main(count: int) -> None:
    """Makes the log and measures."""
    steps = max(3, count // 257)
    events = list(made_log(steps))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs" / "made"
        write(folder, events)
        with EventLog.open(folder) as log:
            began = time.perf_counter()
            found = blame(log.read(types=BLAME_TYPES))
            walked = time.perf_counter() - began
        assert found is not None
        print(f"{len(events):,} events, {steps} steps, {len(found.best.makers['SKILL.md'])} lines")
        print(f"  blame, the walk alone: {walked:.2f} s")
        run = str(folder)
        half = str(steps // 2)
        for words in (
            ("blame", run),
            ("blame", run, "--at", "step", half),
            ("explain", run, "step", half),
            ("explain", run, "--item", "v3"),
            ("why-not", run),
            ("bisect", run, "--item", "v3"),
            ("lineage", run),
            ("diff", run, "step", half),
        ):
            print(f"  {' '.join(words).replace(run, 'RUN'):<28} {timed(*words):.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
