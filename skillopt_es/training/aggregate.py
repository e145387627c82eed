"""Aggregate: patches become one, level by level; where the model does not help, they are joined as they are."""

from __future__ import annotations

import json
from functools import partial

from attrs import evolve

from skillopt_es.events.catalog import PatchesMerged
from skillopt_es.events.values import Edit, Evidence
from skillopt_es.projections.trainer import StepState, TrainerState
from skillopt_es.training.calls import Calls
from skillopt_es.training.consult import consult
from skillopt_es.training.prompt_text import memory_section, question, skill_section
from skillopt_es.training.replies import MERGE_SCHEMA, MergeReply, read_merge
from skillopt_es.training.run_data import RunData
from skillopt_es.training.tasks import MergeJob


async def merge(job: MergeJob, state: TrainerState, run: RunData, calls: Calls) -> PatchesMerged:
    """One merge's edits; `fallback` says why when they are the inputs joined in order."""
    assert state.step is not None
    assert state.current is not None
    assert state.epoch is not None
    groups = [_edits(state.step, name) for name in job.inputs]
    labels = {f"E{number}": edit for number, edit in enumerate((e for group in groups for e in group), start=1)}
    source: Evidence = "success" if job.group == "success" else "failure"
    request = question(
        run.config,
        slot=job.merge,
        stage="merge",
        prompt=f"merge_{job.group}",
        sections=(
            memory_section(state.epoch.meta_skill),
            skill_section(state.current.skill),
            f"## Proposed edits: {len(groups)} proposals" + (f", merge level {job.level}" if job.level else ""),
            _as_json(job, groups),
        ),
        schema=MERGE_SCHEMA,
    )
    read = partial(read_merge, merge=job.merge, inputs=labels, source=source)
    consulted = await consult(calls, request, read, again=run.config.optimizer.ask_again)
    reply = consulted.value or MergeReply(edits=_joined(job.merge, tuple(labels.values())), reasoning="")
    return PatchesMerged(
        merge=job.merge,
        step=state.step.number,
        group=job.group,
        level=job.level,
        inputs=job.inputs,
        edits=reply.edits,
        reasoning=reply.reasoning,
        fallback=consulted.why,
        calls=consulted.calls,
    )


def _edits(step: StepState, name: str) -> tuple[Edit, ...]:
    return step.merges[name].edits if name in step.merges else step.patches[name].edits


def _as_json(job: MergeJob, groups: list[tuple[Edit, ...]]) -> str:
    """The proposals with a label for each edit, counted through."""
    number = 0
    rows = []
    for position, group in enumerate(groups):
        edits = []
        for edit in group:
            number += 1
            edits.append(
                {
                    "label": f"E{number}",
                    "op": edit.op,
                    "target": edit.target,
                    "content": edit.content,
                    "support_count": edit.support,
                    "source_type": edit.source,
                }
            )
        name = ("failures", "successes")[position] if job.group == "final" else f"proposal {position + 1}"
        rows.append({"from": name, "edits": edits})
    return json.dumps(rows, indent=1, ensure_ascii=False)


def _joined(merge: str, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """All inputs in order, under this merge's ids."""
    return tuple(
        evolve(edit, id=f"{merge}#{number}", origins=(edit.id,), origins_assumed=False)
        for number, edit in enumerate(edits, start=1)
    )
